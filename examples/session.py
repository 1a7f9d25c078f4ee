import asyncio

from claude_agent_sdk import ResultMessage

from cc_session import Session, sealed_options


async def main() -> None:
    async with await Session.open(sealed_options(system_prompt="Answer in one word.")) as session:
        for question in ("What is the capital of France?", "And of Japan?"):
            async for message in session.ask(question):
                if isinstance(message, ResultMessage):
                    print(message.result)


asyncio.run(main())
