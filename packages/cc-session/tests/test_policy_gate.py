"""Policies in a running session: in every permission mode, for every kind of tool, and when a callback fails.

Over 400 lines, in a single file: each test is another case of the same run, with the same stand-ins.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    PermissionMode,
    PermissionResultAllow,
    PermissionResultDeny,
    PermissionUpdate,
    ToolPermissionContext,
    create_sdk_mcp_server,
    tool,
)
from claude_agent_sdk.types import PermissionRuleValue
from mcp.server.mcpserver import MCPServer

from cc_loopback import LoopbackServer
from cc_session import Policy, Rule, Session, StdioServer, Timeouts, hook

from .conftest import STDIO_SERVER, ask, bash, use

MODES = [
    "default",
    *(pytest.param(mode, marks=pytest.mark.slow) for mode in get_args(PermissionMode) if mode != "default"),
]


def touch(number: int | str, file: str) -> dict[str, Any]:
    return bash(number, f"touch {file}")


class Asked:
    """A permission callback that records the questions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ToolPermissionContext]] = []

    async def __call__(self, tool: str, _input: dict[str, Any], context: ToolPermissionContext) -> Any:
        self.calls.append((tool, context))
        return PermissionResultAllow()


# The policy's decision on a call with the word in the input, and the effect.
CASES = ("denied", "allowed", "asked", "refused")
KINDS = ("Bash", "Read", "Write", "mcp__here__write", "mcp__there__touch")


class Gate:
    """Outcomes of all kinds of calls, in a process with a permission mode."""

    def __init__(self, mode: PermissionMode, bench: Any, readable: Path) -> None:
        self.mode = mode
        self.bench = bench
        self.readable = readable
        self.requests: dict[str, list[tuple[str, str | None]]] = {case: [] for case in (*CASES, "granted")}
        self.ran: list[str] = []
        self.results: dict[str, str] = {}
        self.files: set[str] = set()

    def calls(self, case: str) -> list[dict[str, Any]]:
        inputs: list[dict[str, Any]] = [
            {"command": f"touch {case}-by-bash", "description": "d"},
            {"file_path": str(self.readable / case)},
            {"file_path": f"{self.bench.folder}/{case}-by-write", "content": "x"},
            {"word": case},
            {"file": f"{self.bench.folder}/{case}-by-mcp"},
        ]
        return [use(f"{case}_{kind}", kind, **input) for kind, input in zip(KINDS, inputs, strict=True)]

    async def ask(self, tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        [case] = [case for case in self.requests if case in str(input)]
        self.requests[case].append((tool, context.decision_reason))
        if case == "refused":
            return PermissionResultDeny(message="Better not.")
        return PermissionResultAllow(updated_permissions=[*allowing(*KINDS)] if case == "granted" else None)

    async def run(self) -> None:
        server = MCPServer("any")
        for case in CASES:
            (self.readable / case).write_text(f"content of {case}")

        @server.tool()
        async def write(word: str) -> str:
            self.ran.append(word)
            return "written"

        def about(*words: str) -> Callable[[Any], bool]:
            return lambda input: any(word in str(input) for word in words)

        rules = [
            Rule("*", "deny", when=about("denied"), reason="Not a chance."),
            Rule("*", "allow", when=about("denied", "allowed")),
            Rule("*", "ask", when=about("asked", "refused", "granted"), reason="Because."),
        ]
        options = replace(self.bench.options, permission_mode=self.mode)
        servers: Any = {"here": server, "there": StdioServer("python3", ["-S", STDIO_SERVER])}
        policy = Policy(rules, ask=self.ask)
        async with await Session.open(options, policy=policy, mcp_servers=servers) as session, asyncio.timeout(40):
            for calls in (
                [call for case in CASES[1:] for call in self.calls(case)],
                # From here on, the CLI itself would allow all kinds.
                [self.calls("granted")[0]],
                self.calls("denied"),
            ):
                self.bench.will_call(*calls)
                await session.run("Go.")
        self.results, self.files = self.bench.results, self.bench.files

    def results_of(self, case: str) -> list[str]:
        return [self.results[call["id"]] for call in self.calls(case)]

    def effects(self, case: str) -> set[str]:
        """The kinds of calls that had an effect."""
        tools = {"Bash": "bash", "Write": "write", "mcp__there__touch": "mcp"}
        effects = {kind for kind, word in tools.items() if f"{case}-by-{word}" in self.files}
        effects |= {"Read"} if f"content of {case}" in str(self.results) else set()
        return effects | ({"mcp__here__write"} if case in self.ran else set())


@pytest.fixture(scope="module", params=MODES)
def gate(request: pytest.FixtureRequest, module_bench: Any, worker_api: LoopbackServer, tmp_path_factory: Any) -> Gate:
    worker_api.reset()
    module_bench.begin()
    gate = Gate(request.param, module_bench, tmp_path_factory.mktemp("readable"))
    asyncio.run(gate.run())
    return gate


ASKED = [(kind, "Because.") for kind in KINDS]


@pytest.mark.parametrize(
    ("case", "effects", "asked", "words"),
    [
        ("denied", set[str](), [], "Not a chance."),
        ("allowed", {*KINDS}, [], ""),
        ("asked", {*KINDS}, ASKED, ""),
        ("refused", set[str](), ASKED, "Better not."),
    ],
    ids=CASES,
)
def test_the_policy_decides_on_every_kind_of_call_in_every_mode(
    gate: Gate, case: str, effects: set[str], asked: list[Any], words: str
) -> None:
    """SES-47, SES-48, SES-53, SES-54: even if the CLI has a rule to allow it, or asks for no permission."""
    assert gate.effects(case) == effects
    assert sorted(gate.requests[case]) == asked
    assert all(words in result for result in gate.results_of(case))


@pytest.mark.worlds
async def test_ask_uses_the_options_callback_and_without_callback_denies(bench: Any, server: LoopbackServer) -> None:
    """SES-48: and the model is not offered tools that ask the user."""
    asked, policy = Asked(), Policy([Rule("Bash", "ask")])
    bench.will_call(touch(1, "file"))
    await bench.run(policy, "bypassPermissions", changes={"tools": None})
    assert bench.files == set()
    assert "has no callback that could answer" in bench.results["toolu_1"]
    tools = {tool["name"] for tool in server.requests[0]["tools"]}
    assert tools & {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} == set()
    assert "Bash" in tools

    bench.will_call(touch(2, "file"))
    await bench.run(policy, "dontAsk", changes={"can_use_tool": asked})
    assert [tool for tool, _ in asked.calls] == ["Bash"]
    assert bench.files == {"file"}


@pytest.mark.worlds
async def test_the_tool_gets_the_callback_s_input_unless_a_rule_denies_it(
    bench: Any, recwarn: pytest.WarningsRecorder
) -> None:
    """SES-54: the SDK warns of callbacks that the CLI would not call, but not of a policy's."""

    def answer(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        return PermissionResultAllow(updated_input={**input, "command": input["command"].replace("file", "other")})

    bench.will_call(touch(1, "file"), touch(2, "evil-file"))
    rules = [Rule("Bash", "ask"), Rule("Bash", "deny", when=lambda input: "evil-other" in input["command"])]
    changes = {"allowed_tools": ["Bash"], "skills": "all"}
    await bench.run(Policy(rules, ask=answer), "bypassPermissions", changes=changes)

    assert bench.files == {"other"}
    assert [*recwarn] == []


async def never(*_: Any) -> Any:
    await asyncio.sleep(60)


def never_in_a_thread(*_: Any) -> Any:
    time.sleep(60)
    return PermissionResultAllow()


def raises(*_: Any) -> Any:
    raise RuntimeError("a secret")


def says_yes(*_: Any) -> Any:
    return True


FAILING: dict[str, Callable[..., Any]] = {f.__name__: f for f in (never, never_in_a_thread, raises, says_yes)}


async def test_a_failing_permission_callback_denies(bench: Any, caplog: pytest.LogCaptureFixture) -> None:
    """SES-49."""

    def answer(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        return FAILING[input["command"].split()[1]](tool, input, context)

    bench.will_call(*(touch(name, name) for name in FAILING))
    await bench.run(Policy([Rule("Bash", "ask")], ask=answer, timeout=0.2), "bypassPermissions")

    assert bench.files == set()
    for name in FAILING:
        assert "The permission callback for Bash failed." in bench.results[f"toolu_{name}"]
    assert "a secret" not in str(bench.results)
    assert caplog.text.count("The permission callback for Bash failed") == len(FAILING)


@pytest.mark.worlds
async def test_a_failing_or_slow_predicate_denies_within_the_time_limit(bench: Any) -> None:
    """SES-34, SES-49, SES-54: for questions, too, where the policy has no deadline."""

    def predicate(input: Any) -> bool:
        if "raises" in input["command"]:
            raise KeyError("missing")
        time.sleep(60)
        return True

    bench.will_call(touch(1, "raises"), touch(2, "is-slow"), use(3, "Write", file_path=f"{bench.folder}/a", content=""))
    policy = Policy([Rule("Bash", "allow", when=predicate), Rule("Write", "ask")], default="allow", ask=never)
    await bench.run(policy, "bypassPermissions", timeouts=Timeouts(hook=0.5, permission=0.2))

    assert bench.files == set()
    assert all("could not be applied" in bench.results[f"toolu_{number}"] for number in (1, 2))
    assert "The permission callback for Write failed." in bench.results["toolu_3"]


def settings_files(bench: Any) -> list[Path]:
    config = Path(bench.options.env["CLAUDE_CONFIG_DIR"])
    return [*config.glob("settings*.json"), *bench.folder.glob(".claude")]


def allowing(*tools: str) -> list[PermissionUpdate]:
    rules = [PermissionRuleValue(tool) for tool in tools]
    return [
        PermissionUpdate("addRules", rules=rules, behavior="allow", destination=destination)
        for destination in ("localSettings", "projectSettings", "userSettings", None)
    ]


@pytest.mark.worlds
@pytest.mark.parametrize("with_policy", [True, False])
async def test_permissions_that_are_handed_back_are_written_to_no_file(bench: Any, with_policy: bool) -> None:
    """SES-52: neither from the callback nor from a hook. They hold for the session."""
    calls: list[str] = []
    permitted: list[str] = []

    async def suggest(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        calls.append(tool)
        if tool == "Write":
            await asyncio.sleep(10)  # the hook answers
            return PermissionResultDeny(message="Too late.")
        return PermissionResultAllow(updated_permissions=[*context.suggestions, *allowing("Bash")])

    @hook("PermissionRequest", "Write")
    def permit(input: Any) -> Any:
        permitted.append(input["tool_name"])
        decision = {"behavior": "allow", "updatedPermissions": [update.to_dict() for update in allowing("Write")]}
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

    policy = Policy([Rule("Read", "deny")], ask=suggest) if with_policy else None
    options = bench.options if with_policy else replace(bench.options, can_use_tool=suggest)
    async with await Session.open(options, policy=policy, hooks=[permit]) as session, asyncio.timeout(40):
        for number in (1, 2):
            write = use(f"{number}_w", "Write", file_path=f"{bench.folder}/written-{number}", content="x")
            # In this order: the CLI's suggestion about the shell lets it write, too.
            bench.will_call(write, touch(number, f"file-{number}"))
            await ask(session, "Go.")  # a file that the first turn has written late is there after the second

    assert bench.files == {"file-1", "file-2", "written-1", "written-2"}
    assert (calls.count("Bash"), permitted) == (1, ["Write"])
    assert not settings_files(bench)


@pytest.mark.worlds
async def test_the_calls_of_a_sub_agent_are_under_the_policy(bench: Any) -> None:
    """SES-47: a question about the call has the sub-agent's name."""
    asked = Asked()
    agent = use(1, "Agent", description="d", prompt="p", subagent_type="general-purpose")
    write = use(3, "Write", file_path=f"{bench.folder}/by-write", content="x")
    bench.will_call(agent, then=[touch(2, "by-bash"), write])
    policy = Policy([Rule("Agent", "allow"), Rule("Bash", "deny"), Rule("Write", "ask")], ask=asked)

    await bench.run(policy, "bypassPermissions")

    assert bench.files == {"by-write"}
    [(tool, context)] = asked.calls
    assert tool == "Write"
    assert context.agent_id


@pytest.mark.worlds
async def test_a_tool_is_known_by_its_server_and_not_by_its_name(bench: Any) -> None:
    """SES-46, SES-54: a tool with the same name as a CLI's or another server's tool is not confused with it."""
    answered: list[str] = []

    def town_tool(name: str) -> Any:
        async def answer(_arguments: Any) -> dict[str, Any]:
            answered.append(name)
            return {"content": []}

        return tool(name, "A tool.", {})(answer)

    names = ("Read", "mcp__good__tool", "weather")
    rules = [Rule("mcp__town__weather", "allow"), Rule("mcp__good__*", "allow")]
    bench.will_call(*(use(name, name) for name in names))
    # With this variable the model sees the tools without server names.
    env = {**bench.options.env, "CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}
    servers = {"town": create_sdk_mcp_server("town", tools=[town_tool(name) for name in names])}
    policy = Policy.read_only().with_rules(*rules)
    await bench.run(policy, changes={"tools": [], "env": env, "mcp_servers": servers})

    assert answered == ["weather"]
    assert "does not allow this use of mcp__town__Read" in bench.results["toolu_Read"]
    assert "does not allow this use of mcp__town__mcp__good__tool" in bench.results["toolu_mcp__good__tool"]


async def test_the_presets_in_a_session(bench: Any) -> None:
    """SES-51: as the CLI gives relative paths, and with a link that leads out."""
    (bench.folder / "out").symlink_to(bench.folder.parent)
    calls = [
        use(1, "Write", file_path="inside.txt", content="x"),
        use(2, "Write", file_path="../outside.txt", content="x"),
        use(3, "Write", file_path="out/outside.txt", content="x"),
        use(4, "Write", file_path=f" {bench.folder.parent}/outside.txt ", content="x"),
        use(5, "Write", file_path="~/outside.txt", content="x"),
        use(6, "Write", file_path=".git/hooks/pre-commit", content="x"),
        touch(7, "by-bash"),
        use(8, "Read", file_path="/etc/hostname"),
        use(9, "Agent", description="d", prompt="p", subagent_type="general-purpose"),
    ]
    bench.will_call(*calls)
    await bench.run(Policy.workspace_write(bench.folder), "bypassPermissions")

    allowed = {number for number, text in bench.results.items() if "does not allow" not in text}
    assert allowed == {"toolu_1", "toolu_8"}
    assert bench.files == {"inside.txt"}
    assert {path.name for path in bench.folder.parent.iterdir()} == {"work", "work-config"}


async def test_an_unknown_mode_and_options_that_conflict_are_refused(
    options: ClaudeAgentOptions,
) -> None:
    """SES-53."""
    asked = Asked()
    policy = Policy(ask=asked)
    refused: list[tuple[Policy | None, dict[str, Any], str]] = [
        *((None, {"permission_mode": mode}, "there is no permission mode") for mode in ("", "plan ", "yolo")),
        (policy, {"permission_prompt_tool_name": "mcp__a__b"}, "permission_prompt_tool_name"),
        (policy, {"can_use_tool": asked}, "answer the same requests"),
        (policy, {"env": {"CLAUDE_CODE_SIMPLE": "true"}}, "in bare mode"),
    ]
    for given, changes, words in refused:
        with pytest.raises(ValueError, match=words):
            await Session.open(replace(options, **changes), policy=given)
