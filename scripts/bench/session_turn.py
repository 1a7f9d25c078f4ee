"""Compare a warm turn in a session with a bare turn in the SDK's client (SES-79).

Both use a live process with the same options over the loopback API, which answers at once. Turns alternate, so that
other programs affect both, and both conversations grow alike.
"""

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from cc_loopback import LoopbackServer
from cc_session import Session, sealed_options

from .harness import Bound, Effort, Figure, Group, Suite, alternated

WARM_UP = 20
TURNS = 400

BARE, OURS = "bare turn of the SDK's client", "Session.run"


async def measure(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    async with LoopbackServer(lambda _body: "Hello.") as api:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=api.env())
        for partial in (True, False):
            options.include_partial_messages = partial
            times = await compare(options, effort)
            title = f"Warm turn {'with' if partial else 'without'} events"
            figures += Group(title).figures(times, BARE, {OURS: Bound(1.3, of="ratio")})
    return figures


async def compare(options: ClaudeAgentOptions, effort: Effort) -> dict[str, list[float]]:
    client = ClaudeSDKClient(options)
    await client.connect()
    session = await Session.open(options)

    async def bare() -> None:
        await client.query("Hello?")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage) and message.result != "Hello.":
                raise RuntimeError(f"not the answer: {message}")

    async def ours() -> None:
        if (await session.run("Hello?")).text != "Hello.":
            raise RuntimeError("not the answer")

    try:
        return await alternated({BARE: bare, OURS: ours}, effort.times(TURNS, 4), effort.times(WARM_UP))
    finally:
        await session.close()
        await client.disconnect()


SUITE = Suite("session_turn", "A warm turn in a session and in the SDK's client", measure)
