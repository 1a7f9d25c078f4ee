"""Policies in a running session: in every permission mode, for every kind of tool, and when whoever is asked fails.

Over 400 lines, and in one file all the same: each test is another case of the same run, with the same stand-ins.
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
)
from claude_agent_sdk.types import PermissionRuleValue
from mcp.server.mcpserver import MCPServer

from cc_loopback import LoopbackServer
from cc_session import Content, HookResult, Policy, Rule, Session, StdioServer, Timeouts, ToolDefinition, hook

Ask = Callable[[Session, Content], Any]
MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)
STDIO = Path(__file__).parent / "stdio_server.py"


def use(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def touch(number: int, file: str) -> dict[str, Any]:
    return use(number, "Bash", command=f"touch {file}", description="d")


class Asked:
    """A permission callback that notes what it is asked."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer or PermissionResultAllow()
        self.calls: list[tuple[str, dict[str, Any], ToolPermissionContext]] = []

    async def __call__(self, tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        self.calls.append((tool, input, context))
        return self.answer

    @property
    def tools(self) -> list[str]:
        return sorted(tool for tool, _, _ in self.calls)


async def run(bench: Any, ask: Ask, policy: Policy | None, mode: PermissionMode = "default", **kwargs: Any) -> None:
    """One turn under a policy."""
    changes = kwargs.pop("changes", {})
    options = replace(bench.options, permission_mode=mode, **changes)
    async with await Session.open(options, policy=policy, **kwargs) as session, asyncio.timeout(40):
        await ask(session, "Go.")


@pytest.fixture
def ran() -> list[str]:
    """The tools of the server of this process that were called."""
    return []


@pytest.fixture
def in_process(ran: list[str]) -> MCPServer[Any]:
    server = MCPServer("any")

    @server.tool()
    async def write() -> str:
        ran.append("write")
        return "written"

    return server


def all_kinds(bench: Any) -> list[dict[str, Any]]:
    return [
        touch(1, "by-bash"),
        use(2, "Write", file_path=f"{bench.folder}/by-write", content="x"),
        use(3, "mcp__here__write"),
        use(4, "mcp__there__touch", file=f"{bench.folder}/by-mcp"),
        use(5, "Read", file_path="/etc/hostname"),
    ]


@pytest.fixture
def servers(in_process: MCPServer[Any]) -> dict[str, Any]:
    return {"here": in_process, "there": StdioServer("python3", ["-S", str(STDIO)])}


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_denied_does_not_run_in_any_mode(
    bench: Any, ask: Ask, servers: Any, ran: list[str], mode: PermissionMode
) -> None:
    """SES-47, SES-53, SES-54, SES-F14: of any kind, whatever the CLI was told to allow."""
    asked = Asked()
    bench.will_call(*all_kinds(bench))
    allowed = ["Bash", "Write", "Read", "mcp__here", "mcp__there"]
    policy = Policy([Rule("*", "deny", reason="Not a chance."), Rule("*", "allow")], ask=asked)

    await run(bench, ask, policy, mode, mcp_servers=servers, changes={"allowed_tools": allowed})

    assert bench.files == set()
    assert ran == []
    assert asked.calls == []
    assert len(bench.results) == 5
    assert all("Not a chance." in result for result in bench.results.values())


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_allowed_runs_in_any_mode(
    bench: Any, ask: Ask, servers: Any, ran: list[str], mode: PermissionMode
) -> None:
    """SES-47, SES-53."""
    bench.will_call(*all_kinds(bench))

    await run(bench, ask, Policy([Rule("*", "allow")]), mode, mcp_servers=servers)

    assert bench.files == {"by-bash", "by-write", "by-mcp"}
    assert ran == ["write"]


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_asked_about_is_asked_in_any_mode(
    bench: Any, ask: Ask, servers: Any, ran: list[str], mode: PermissionMode
) -> None:
    """SES-48, SES-F14: also in those in which the CLI asks nobody."""
    asked = Asked()
    bench.will_call(*all_kinds(bench))

    await run(bench, ask, Policy([Rule("*", "ask", reason="Because.")], ask=asked), mode, mcp_servers=servers)

    assert asked.tools == ["Bash", "Read", "Write", "mcp__here__write", "mcp__there__touch"]
    assert {context.decision_reason for _, _, context in asked.calls} == {"Because."}
    assert bench.files == {"by-bash", "by-write", "by-mcp"}
    assert ran == ["write"]


@pytest.mark.parametrize("mode", MODES)
async def test_who_is_asked_can_refuse_in_any_mode(
    bench: Any, ask: Ask, servers: Any, ran: list[str], mode: PermissionMode
) -> None:
    """SES-48."""
    bench.will_call(*all_kinds(bench))
    policy = Policy([Rule("*", "ask")], ask=Asked(PermissionResultDeny(message="Better not.")))

    await run(bench, ask, policy, mode, mcp_servers=servers)

    assert (bench.files, ran) == (set(), [])
    assert all("Better not." in result for result in bench.results.values())


@pytest.mark.parametrize(
    ("mode", "files", "is_asked"),
    [
        ("bypassPermissions", ["by-bash", "by-write"], False),
        ("dontAsk", [], False),
        ("default", ["by-write"], True),
    ],
)
async def test_what_the_policy_passes_is_the_cli_s_to_decide(
    bench: Any, ask: Ask, mode: PermissionMode, files: list[str], is_asked: bool
) -> None:
    """SES-50: who is asked is asked where the CLI would ask."""

    def no_shells(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        asked.append(tool)
        return PermissionResultDeny(message="No shells.") if tool == "Bash" else PermissionResultAllow()

    asked: list[str] = []
    bench.will_call(*all_kinds(bench)[:2])

    await run(bench, ask, Policy([Rule("Read", "deny")], ask=no_shells), mode)

    assert sorted(bench.files) == files
    assert sorted(asked) == (["Bash", "Write"] if is_asked else [])


async def test_without_anybody_to_ask_ask_denies(bench: Any, server: LoopbackServer, ask: Ask) -> None:
    """SES-48: and the model is not offered tools that ask somebody."""
    bench.will_call(touch(1, "file"))
    await run(bench, ask, Policy([Rule("Bash", "ask")]), "bypassPermissions")

    assert bench.files == set()
    assert "There is nobody who could be asked" in bench.results["toolu_1"]
    tools = {tool["name"] for tool in server.requests[0]["tools"]}
    assert tools & {"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} == set()
    assert "Bash" in tools


async def test_the_callback_of_the_options_is_asked_where_the_policy_has_none(bench: Any, ask: Ask) -> None:
    asked = Asked()
    bench.will_call(touch(1, "file"))

    await run(bench, ask, Policy([Rule("Bash", "ask")]), "dontAsk", changes={"can_use_tool": asked})

    assert asked.tools == ["Bash"]
    assert bench.files == {"file"}


async def test_the_input_that_is_answered_is_what_the_tool_gets(bench: Any, ask: Ask) -> None:
    bench.will_call(touch(1, "file"))
    other = PermissionResultAllow(updated_input={"command": "touch other", "description": "d"})

    await run(bench, ask, Policy([Rule("Bash", "ask")], ask=Asked(other)), "bypassPermissions")

    assert bench.files == {"other"}


async def test_a_deny_rule_holds_for_the_input_that_is_answered(bench: Any, ask: Ask) -> None:
    """SES-54."""
    bench.will_call(touch(1, "file"))
    other = PermissionResultAllow(updated_input={"command": "touch other", "description": "d"})
    rules = [Rule("Bash", "ask"), Rule("Bash", "deny", when=lambda input: "other" in input["command"])]

    await run(bench, ask, Policy(rules, ask=Asked(other)))

    assert bench.files == set()


async def never(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
    await asyncio.sleep(60)


def never_in_a_thread(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
    time.sleep(60)
    return PermissionResultAllow()


def raises(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
    raise RuntimeError("a secret")


def says_yes(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
    return True


@pytest.mark.parametrize("callback", [never, never_in_a_thread, raises, says_yes])
async def test_who_is_asked_and_fails_denies(
    bench: Any, ask: Ask, caplog: pytest.LogCaptureFixture, callback: Any
) -> None:
    """SES-49."""
    bench.will_call(touch(1, "file"))
    began = time.monotonic()

    await run(bench, ask, Policy([Rule("Bash", "ask")], ask=callback, timeout=0.2), "bypassPermissions")

    assert bench.files == set()
    assert "Who was asked about Bash did not answer." in bench.results["toolu_1"]
    assert "a secret" not in bench.results["toolu_1"]
    assert "The permission callback failed about Bash" in caplog.text
    assert time.monotonic() - began < 40


async def test_the_deadline_is_that_of_the_session_if_the_policy_has_none(bench: Any, ask: Ask) -> None:
    """SES-34, SES-49."""
    bench.will_call(touch(1, "file"))
    policy = Policy([Rule("Bash", "ask")], ask=never)
    await run(bench, ask, policy, "bypassPermissions", timeouts=Timeouts(permission=0.2))
    assert bench.files == set()


async def test_a_question_can_take_longer_than_a_hook(bench: Any, ask: Ask) -> None:
    """SES-34: a person may have to answer it."""

    async def slowly(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        await asyncio.sleep(4)
        return PermissionResultAllow()

    bench.will_call(touch(1, "file"))
    await run(bench, ask, Policy([Rule("Bash", "ask")], ask=slowly), "bypassPermissions", timeouts=Timeouts(hook=0.5))
    assert bench.files == {"file"}


@pytest.mark.parametrize("seconds", [None, 60])
async def test_a_predicate_that_raises_or_is_slow_denies(bench: Any, ask: Ask, seconds: float | None) -> None:
    """SES-49, SES-54."""

    def predicate(input: Any) -> bool:
        if seconds is None:
            raise KeyError("missing")
        time.sleep(seconds)
        return True

    bench.will_call(touch(1, "file"))
    policy = Policy([Rule("Bash", "allow", when=predicate)], default="allow")
    await run(bench, ask, policy, "bypassPermissions", timeouts=Timeouts(hook=0.3))

    assert bench.files == set()
    assert "could not be applied" in bench.results["toolu_1"]


def settings_files(bench: Any) -> list[Path]:
    config = Path(bench.options.env["CLAUDE_CONFIG_DIR"])
    return [*config.glob("settings*.json"), *bench.folder.glob(".claude")]


def everywhere() -> list[PermissionUpdate]:
    rules = [PermissionRuleValue("Bash")]
    return [
        PermissionUpdate("addRules", rules=rules, behavior="allow", destination=destination)
        for destination in ("localSettings", "projectSettings", "userSettings", None)
    ]


@pytest.mark.parametrize("with_policy", [True, False])
async def test_permissions_that_are_handed_back_are_written_to_no_file(bench: Any, ask: Ask, with_policy: bool) -> None:
    """SES-52, SES-F15: they hold for the session."""
    calls: list[ToolPermissionContext] = []

    async def suggest(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        calls.append(context)
        return PermissionResultAllow(updated_permissions=[*context.suggestions, *everywhere()])

    policy = Policy([Rule("Read", "deny")], ask=suggest) if with_policy else None
    options = bench.options if with_policy else replace(bench.options, can_use_tool=suggest)
    async with await Session.open(options, policy=policy) as session, asyncio.timeout(40):
        for number in (1, 2):
            bench.will_call(touch(number, f"file-{number}"))
            await ask(session, "Go.")
        await asyncio.sleep(0.3)  # for a file that is written late

    assert bench.files == {"file-1", "file-2"}
    assert len(calls) == 1
    assert not settings_files(bench)


async def test_a_hook_on_permissions_writes_no_file_either(bench: Any, ask: Ask) -> None:
    """SES-52."""

    @hook("PermissionRequest")
    def permit(input: Any) -> Any:
        updates = [update.to_dict() for update in everywhere()]
        decision = {"behavior": "allow", "updatedPermissions": updates}
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

    async def wait(tool: str, input: dict[str, Any], context: ToolPermissionContext) -> Any:
        await asyncio.sleep(5)
        return PermissionResultDeny(message="Too late.")

    bench.will_call(touch(1, "file"))
    await run(bench, ask, None, hooks=[permit], changes={"can_use_tool": wait})

    assert bench.files == {"file"}
    assert not settings_files(bench)


async def test_the_calls_of_a_sub_agent_are_under_the_policy(bench: Any, ask: Ask) -> None:
    """SES-47: one that asks is asked about with the sub-agent's name."""
    asked = Asked()
    agent = use(1, "Agent", description="d", prompt="p", subagent_type="general-purpose")
    write = use(3, "Write", file_path=f"{bench.folder}/by-write", content="x")
    bench.will_call(agent, then=[touch(2, "by-bash"), write])
    policy = Policy([Rule("Agent", "allow"), Rule("Bash", "deny"), Rule("Write", "ask")], ask=asked)

    await run(bench, ask, policy, "bypassPermissions")

    assert bench.files == {"by-write"}
    [(tool, _, context)] = asked.calls
    assert tool == "Write"
    assert context.agent_id


async def test_a_mode_that_is_set_later_changes_nothing(bench: Any, ask: Ask) -> None:
    """SES-53, SES-54."""
    options = replace(bench.options, extra_args={"allow-dangerously-skip-permissions": None})
    async with await Session.open(options, policy=Policy([Rule("Bash", "deny")])) as session:
        for number, mode in enumerate(MODES, 1):
            await session.control("set_permission_mode", mode=mode)
            bench.will_call(touch(number, "file"))
            await ask(session, "Go.")

    assert bench.files == set()
    assert len(bench.results) == len(MODES)


async def test_a_tool_of_the_caller_s_is_known_by_its_server_and_not_by_its_name(
    bench: Any, server: LoopbackServer, ask: Ask
) -> None:
    """SES-46, SES-54: one that is called like a tool of the CLI's is not taken for it."""
    answered: list[str] = []

    async def answer(session: Session) -> None:
        while True:
            call = await session.next_call()
            answered.append(call.name)
            await session.answer_call(call.id, "done")

    tools = [ToolDefinition(name, "A tool.", {"type": "object"}) for name in ("Read", "weather")]
    policy = Policy.read_only().with_rules(Rule("mcp__session__weather", "allow"))
    options = replace(bench.options, tools=[])
    bench.will_call(use(1, "Read"), use(2, "weather"))
    async with await Session.open(options, policy=policy, tools=tools) as session, asyncio.timeout(40):
        answering = asyncio.ensure_future(answer(session))
        await ask(session, "Go.")
        answering.cancel()

    assert answered == ["weather"]
    assert "does not allow this use of mcp__session__Read" in bench.results["toolu_1"]


async def test_the_presets_in_a_session(bench: Any, ask: Ask) -> None:
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
    await run(bench, ask, Policy.workspace_write(bench.folder), "bypassPermissions")

    allowed = {number for number, text in bench.results.items() if "does not allow" not in text}
    assert allowed == {"toolu_1", "toolu_8"}
    assert bench.files == {"inside.txt"}
    assert [path.name for path in bench.folder.parent.iterdir()] == ["work"]


@pytest.mark.parametrize("mode", ["", "plan ", "yolo"])
async def test_a_mode_that_does_not_exist_is_refused(options: ClaudeAgentOptions, mode: Any) -> None:
    """SES-53."""
    with pytest.raises(ValueError, match="there is no permission mode"):
        await Session.open(replace(options, permission_mode=mode))


async def test_what_does_not_go_with_a_policy_is_refused(options: ClaudeAgentOptions) -> None:
    asked = Asked()
    for changes, words in (
        ({"permission_prompt_tool_name": "mcp__a__b"}, "permission_prompt_tool_name"),
        ({"can_use_tool": asked}, "both asked"),
        ({"env": {"CLAUDE_CODE_SIMPLE": "true"}}, "in bare mode"),
    ):
        with pytest.raises(ValueError, match=words):
            await Session.open(replace(options, **changes), policy=Policy(ask=asked))


async def test_a_policy_costs_no_warning(bench: Any, ask: Ask, recwarn: pytest.WarningsRecorder) -> None:
    """The SDK warns of callbacks that the CLI would not call; that of a policy it does."""
    bench.will_call(touch(1, "file"))
    changes = {"allowed_tools": ["Bash"], "skills": "all"}
    await run(bench, ask, Policy([Rule("Bash", "ask")], ask=Asked()), "bypassPermissions", changes=changes)
    assert bench.files == {"file"}
    assert [*recwarn] == []


def test_the_results_of_hooks_say_what_they_are() -> None:
    assert HookResult.no_opinion() == HookResult()
    assert HookResult.deny("No.").decision == "deny"
