"""Test older and newer versions of the Claude Code CLI, each from a claude-agent-sdk wheel.

    uv run scripts/check_cli_versions.py [--write] [VERSION ...]

Drives each CLI through the public API against a loopback API: with an API key, and with a fake OAuth token. Prints a
table; with --write, it also writes `docs/reference/cli-versions.md` and the list for `cc-model doctor`.
A version takes 50 s on two slow cores. The wheel has 80 to 160 MB, and stays in uv's cache.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
from anthropic import APIError, AsyncAnthropic
from claude_agent_sdk.types import SystemPromptCustom
from pydantic_ai import Agent

from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from cc_session import Session, sealed_options
from cc_types import ControlRequestError
from commands import CheckError, finish, wheel
from commands import run as run_command
from workspace import ROOT, markdown_table, write_table

sys.path.append(str(ROOT / "integration-tests" / "support"))

from api_script import Reply, Respond, call, echo, steps, stopped, text, thought
from both_ways import BothWays, Run
from kept_texts import VARIANTS, differences
from processes import at_rest
from scenarios.content import SEEN, an_image_alone
from scenarios.histories import three_turns
from scenarios.outputs import PARIS
from scenarios.settings import a_tool_that_must_be_called, sampling_that_changes
from scenarios.streams import A_TURN, LONG, text_as_it_grows_and_as_deltas, the_same_turn_without_streaming
from scenarios.tools import lucky_number

PAGE = ROOT / "docs" / "reference" / "cli-versions.md"
TESTED = ROOT / "packages" / "cc-model" / "src" / "cc_model" / "doctor" / "tested.py"
# A year, from the first CLI with --bare on.
VERSIONS = [
    "0.1.50", "0.1.66", "0.1.81", "0.2.100", "0.2.110", "0.2.120", "0.2.122", "0.2.140", "0.2.155", "0.2.170",
    "0.2.186", "newest",
]  # fmt: skip
LOGINS: dict[str, Login] = {"API key": "api-key", "OAuth token": "oauth"}
# Two model families, since a CLI has separate defaults for some models.
MODEL, OTHER_MODEL = "claude-sonnet-4-6", "claude-opus-4-8"
# Seconds for a step; a CLI that waits for missing input waits for ever.
STEP_SECONDS = 30.0

MODULE = '''\
"""The versions of the CLI that are exact with each login, oldest first; written by `scripts/check_cli_versions.py`."""

__all__ = ["TESTED_CLIS"]
'''


SCENARIOS: dict[str, tuple[str, Run, Respond]] = {
    "text": (MODEL, sampling_that_changes, echo),
    "another model": (OTHER_MODEL, three_turns, echo),
    "tools": (MODEL, the_same_turn_without_streaming, A_TURN),
    "stream": (MODEL, text_as_it_grows_and_as_deltas, steps(LONG)),
    "image": (MODEL, an_image_alone, SEEN),
    "structured": (MODEL, a_tool_that_must_be_called, steps([call("final_result", **PARIS)])),
}
ANSWERS = {
    "max_tokens": stopped("max_tokens", text("And so")),
    "context window": stopped("model_context_window_exceeded", text("And so")),
    "pause_turn": stopped("pause_turn", text("Wait.")),
    "refusal": stopped("refusal", text("No.")),
    "empty": stopped("end_turn"),
    "thinking alone": stopped("end_turn", thought("Hm.")),
    "no call": stopped("tool_use", text("I call.")),
}
# The answer's HTTP status, and the number of events before the connection breaks.
FAULTS: dict[str, tuple[int | None, int | None]] = {
    "cut after a block": (None, 5),
    "cut in a block": (None, 3),
    "overloaded": (529, None),
    "not found": (404, None),
}


def always(reply: Reply) -> Respond:
    return lambda _body: reply


async def exact(api: LoopbackServer, provider: ClaudeCodeProvider, login: Login) -> str:
    """Count the scenarios with equal results both ways, and name the others."""
    async with AsyncAnthropic(api_key="loopback", base_url=api.url, max_retries=0) as client:
        both = BothWays(api, client, provider, login)
        differ: list[str] = []
        for name, (model, run, respond) in SCENARIOS.items():
            direct = await both.watch(run, both.direct(model), respond)
            async with asyncio.timeout(STEP_SECONDS):
                through = await both.watch(run, both.through(model), respond)
            if (through.outcome, through.bodies) != (direct.outcome, direct.bodies):
                differ.append(name)
    return of(len(SCENARIOS), differ)


async def warm(api: LoopbackServer, provider: ClaudeCodeProvider, _login: Login) -> str:
    """Count process starts for successive agents with different instructions."""
    starts, runs = provider.transport.stats().starts, 6
    for index in range(runs):
        await Agent(ClaudeCodeModel(MODEL, provider=provider), instructions=f"You are {index % 3}.").run("Hello.")
    return f"{provider.transport.stats().starts - starts} for {runs}"


async def prompts_on_a_warm_process(api: LoopbackServer, provider: ClaudeCodeProvider, login: Login) -> str:
    """Change a session's system prompt, where the CLI sends it with every login."""
    await provider.warm()
    cli = psutil.Process(provider.transport.pids[0]).exe()
    options = sealed_options(model=MODEL, env=api.env(login), cli_path=cli)
    options.system_prompt = SystemPromptCustom(type="custom", prompt="You are one.", snapshot=False)
    async with await Session.open(options) as session:
        await session.run("Hello.")
        with suppress(ControlRequestError):
            await session.control("set_model", model=MODEL, system_prompt="You are two.", only_if_model_is_current=True)
        await session.run("Hello.")
    # The CLI may add sentences before it.
    return "yes" if api.requests[-1]["system"][-1]["text"].endswith("You are two.") else "no"


async def texts_of_tools(api: LoopbackServer, provider: ClaudeCodeProvider, login: Login) -> str:
    """Count the definitions that a pool's only process shows to the model as a new process does."""
    await provider.warm()
    cli = psutil.Process(provider.transport.pids[0]).exe()
    wrong, _starts = await differences(api, sealed_options(model=MODEL, env=api.env(login), cli_path=cli))
    return of(len(VARIANTS), wrong)


async def one_api_call(api: LoopbackServer, provider: ClaudeCodeProvider, _login: Login) -> str:
    """Count the answers after which the CLI makes no second API call, and name the others."""
    more: list[str] = []
    for name in (*ANSWERS, *FAULTS):
        api.respond = always(ANSWERS.get(name, "Hello there."))
        if name in FAULTS:
            status, events = FAULTS[name]
            api.fail_next(status, after_events=events)
        before = len(api.requests)
        try:
            # Streamed, since a client rejects requests without a stream that may take long.
            stream = await provider.client.messages.create(
                model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "Hello."}], stream=True
            )
            async for _ in stream:
                pass
        except (APIError, httpx2.TransportError):
            pass  # the integration tests check the client's result
        await at_rest(provider)  # a second API call may come late
        if len(api.requests) != before + 1:
            more.append(name)
    return of(len(ANSWERS) + len(FAULTS), more)


async def loop(api: LoopbackServer, provider: ClaudeCodeProvider, _login: Login) -> str:
    """Let the CLI call the agent's tool."""
    api.respond = steps([call("mcp__pydantic_tools__lucky_number", low=6, high=8)], "Seven.")
    model = ClaudeCodeModel(MODEL, provider=provider)
    agent = Agent(model, tools=[lucky_number])
    model.set_agent_toolsets(agent.toolsets)
    return await through_the_cli(agent, "7")


async def own_tools(api: LoopbackServer, provider: ClaudeCodeProvider, _login: Login) -> str:
    """Let the CLI call a built-in tool."""
    with tempfile.TemporaryDirectory(prefix="check-cli-") as folder:
        api.respond = steps([call("Bash", command="echo $((6 * 7))")], "Seven.")
        tools = claude_code(tools=["Bash"], cwd=folder)
        return await through_the_cli(Agent(ClaudeCodeModel(MODEL, provider=provider), capabilities=[tools]), "42")


async def through_the_cli(agent: Agent[Any, str], expected: str) -> str:
    """Return "yes" if a run finishes with the tool's result in its messages."""
    result = await agent.run("Go.")
    good = result.output == "Seven." and expected in result.all_messages_json().decode()
    return "yes" if good else "no result"


def of(count: int, others: list[str]) -> str:
    """Return how many out of `count` are good, and the other names."""
    named = f"; not {', '.join(others)}" if 0 < len(others) < count else ""
    return f"{count - len(others)} of {count}{named}"


Row = dict[str, str]
Check = Callable[[LoopbackServer, ClaudeCodeProvider, Login], Awaitable[str]]
CHECKS: tuple[Check, ...] = (exact, warm, prompts_on_a_warm_process, texts_of_tools, one_api_call, loop, own_tools)


async def check(cli: Path, sdk: str, login: str, problems: list[str], checks: Sequence[Check] = CHECKS) -> Row:
    """Run checks with a CLI and a login, each with new processes; return a table row, and add to `problems`."""
    name = (await run_command([str(cli), "--version"], Path(tempfile.gettempdir()))).split()[0]
    row = {"CLI": name, "SDK": sdk, "login": login}
    for run in checks:
        column = run.__name__.replace("_", " ").replace("api", "API")
        with LoopbackServer() as api:
            env = api.env(LOGINS[login])
            try:
                async with ClaudeCodeProvider(cli_path=cli, env=env, max_retries=0, pool=4) as provider:
                    row[column] = await run(api, provider, LOGINS[login])
            except Exception as error:
                row[column] = type(error).__name__
                problems.append(f"CLI {name}, {login}, {run.__name__}: {error}")
    return row


def module(rows: list[Row]) -> str:
    """Return the module text with the versions that are exact with each login, which `cc-model doctor` reads."""
    whole = of(len(SCENARIOS), [])
    differ = {row["CLI"] for row in rows if row["exact"] != whole}
    names = [f'    "{name}",' for name in dict.fromkeys(row["CLI"] for row in rows) if name not in differ]
    return "\n".join([MODULE, "TESTED_CLIS = (", *names, ")", ""])


def grouped(rows: list[Row]) -> list[Row]:
    """Return the rows with versions of equal outcomes in one row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        version, sdk, *outcomes = row.values()
        groups.setdefault(tuple(outcomes), []).append(f"{version} ({sdk})")
    names = [*rows[0]][2:] if rows else []
    return [{"CLI (SDK)": ", ".join(found), **dict(zip(names, key, strict=True))} for key, found in groups.items()]


async def work(versions: list[str], write: bool) -> list[str]:
    """Check each version, newest last, and return the failures."""
    rows: list[Row] = []
    failed: list[str] = []
    for version in versions:
        try:
            async with wheel(version) as (cli, sdk):
                rows += [await check(cli, sdk, login, failed) for login in LOGINS]
            print(f"{version}: checked", flush=True)
        except CheckError as error:
            failed.append(f"{version}: {error}")
    groups = grouped(rows)
    table = markdown_table(groups[0] if groups else (), *(row.values() for row in groups))
    print(*table, sep="\n")
    if write:
        write_table(PAGE, table)
        TESTED.write_text(module(rows), "utf-8")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=VERSIONS, help="claude-agent-sdk versions")
    parser.add_argument("--write", action="store_true", help="write the documentation page")
    arguments = parser.parse_args()
    return finish(work(arguments.versions, arguments.write))


if __name__ == "__main__":
    sys.exit(main())
