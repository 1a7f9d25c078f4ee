import asyncio

from cc_session import TurnError, query, sealed_options


async def main() -> None:
    options = sealed_options(system_prompt="Answer in one word.")
    for question in ("What is the capital of France?", "What is the capital of Japan?"):
        try:
            turn = await query(question, options)
        except TurnError as error:
            print(error)
        else:
            print(f"{turn.text} ({turn.usage.output_tokens} tokens, {turn.cost_usd:.6f} USD)")


asyncio.run(main())
