import asyncio

from cc_session import Session, sealed_options


async def main() -> None:
    async with await Session.open(sealed_options(system_prompt="Answer in one word.")) as session:
        for question in ("What is the capital of France?", "And of Japan?"):
            print((await session.run(question)).text)


asyncio.run(main())
