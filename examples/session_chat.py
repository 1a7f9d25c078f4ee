import asyncio
import sys
from collections.abc import Iterator

from claude_agent_sdk import StreamEvent

from cc_session import Session, TurnError, TurnTimeoutError, sealed_options


def questions() -> Iterator[str]:
    """Yield typed lines up to an empty line; or two questions, if stdin is not a terminal."""
    if not sys.stdin.isatty():
        yield from ("What is the capital of France?", "And of Japan?")
        return
    while question := input("> "):
        yield question


async def answer(session: Session, question: str) -> None:
    """Print the answer while it arrives. Leaving early, as Ctrl-C does, interrupts the turn."""
    async with session.stream(question, timeout=120, max_cost_usd=0.5) as messages:
        async for message in messages:
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                print(message.event["delta"].get("text", ""), end="", flush=True)
    print(f"  ({messages.turn.usage.output_tokens} tokens, {messages.turn.cost_usd:.4f} US dollars)")


async def main() -> None:
    async with await Session.open(sealed_options(system_prompt="Answer in one sentence.")) as session:
        for question in questions():
            try:
                await answer(session, question)
            except (TurnError, TurnTimeoutError) as error:
                print(f"\n{error}")  # the conversation continues


asyncio.run(main())
