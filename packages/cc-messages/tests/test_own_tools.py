"""Claude Code's tools, opened by name, beside the caller's."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, PermissionUpdate

from cc_messages import ClaudeCodeTools, request_context
from cc_session import Policy, Rule, StdioServer
from warm_clients.client import Client, Response
from warm_clients.fixtures import Connect

TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SAY: dict[str, Any] = {"name": "say", "description": "Say something.", "input_schema": TEXT}


# One folder for all tests, since each process has one.
@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder")
    (folder / "note.txt").write_text("the secret is 42\n")
    return folder


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "name": name, "input": arguments}


def parts(answered: Response) -> list[tuple[str, str]]:
    """Return each block's type, with name or text."""
    assert answered.status == 200, answered.body
    return [(block["type"], block.get("name") or block.get("text", "")) for block in answered.body["content"]]


def results(answered: Response) -> list[str]:
    return [str(block["content"]) for block in answered.body["content"] if block["type"] == "mcp_tool_result"]


def offered(client: Client) -> list[str]:
    return sorted(tool["name"] for tool in client.api.requests[0]["tools"])


async def test_a_tool_runs_in_the_folder_and_is_reported_as_claude_codes(
    several: Client, connect: Connect, folder: Path
) -> None:
    """ARCH-27: the conversation continues, also in another process."""
    several.script([call("Read", file_path=str(folder / "note.txt"))], "It is 42.", "Bye.", "Bye.")
    with request_context(claude_code_tools=ClaudeCodeTools(tools=["Read"], cwd=folder)):
        answered = await several.ask("What is the secret?")
        further = ("What is the secret?", answered.body["content"], "Thanks.")
        await several.ask(*further)
        warm = several.received
        await connect(size=1).ask(*further)
    assert parts(answered)[0] == ("mcp_tool_use", "Read")
    assert answered.body["content"][0]["server_name"] == "claude-code"
    assert "the secret is 42" in results(answered)[0]
    assert answered.text == "It is 42."
    assert offered(several) == ["Read"]
    assert several.received == warm
    assert [message["role"] for message in warm] == ["user", "assistant", "user", "assistant", "user"]


async def test_a_tool_that_runs_alone_runs_behind_a_call_of_the_callers(several: Client, folder: Path) -> None:
    """MSG-60, MSG-63: the caller's call would keep it waiting."""
    several.script([call("say", text="Hello."), call("Bash", command="python3 -c 'print(42 + 1)'")])
    with request_context(claude_code_tools=ClaudeCodeTools(tools=["Bash(python3 *)"], cwd=folder)):
        answered = await asyncio.wait_for(several.ask("Go.", tools=[SAY]), 30)
    assert parts(answered)[:2] == [("tool_use", "say"), ("mcp_tool_use", "Bash")]
    assert "43" in results(answered)[0]


@pytest.mark.worlds
@pytest.mark.parametrize("policy", [None, Policy(default="allow")], ids=["no policy", "a policy that allows more"])
async def test_only_what_is_named_runs(several: Client, folder: Path, policy: Policy | None) -> None:
    """ARCH-27: a policy opens no more of a tool than its name does."""
    commands = ["git --version", "touch made", "git --version; touch made"]
    several.script(*([call("Bash", command=command)] for command in commands), "Done.")
    with request_context(claude_code_tools=ClaudeCodeTools(tools=["Bash(git *)"], policy=policy, cwd=folder)):
        texts = results(await several.ask("Go."))
    assert "git version" in texts[0]
    assert not (folder / "made").exists()
    assert ["denied" in text or "permission" in text.lower() for text in texts] == [False, True, True]


@pytest.mark.worlds
async def test_a_policy_holds_for_named_tools_and_asks_in_the_requests_loop(several: Client, folder: Path) -> None:
    questions: list[tuple[str, bool]] = []
    loop = asyncio.get_running_loop()

    async def ask(tool: str, arguments: dict[str, Any], _context: object) -> PermissionResultAllow:
        questions.append((arguments["command"], asyncio.get_running_loop() is loop))
        return PermissionResultAllow()

    removal = Rule("Bash", "deny", when=lambda values: "rm" in str(values["command"]), reason="Nothing is removed.")
    policy = Policy([removal, Rule("Bash", "ask")], ask=ask)
    several.script([call("Bash", command="rm note.txt")], [call("Bash", command="ls")], "Done.")
    with request_context(claude_code_tools=ClaudeCodeTools(tools=["Bash"], policy=policy, cwd=folder)):
        texts = results(await several.ask("Go."))
    assert questions == [("ls", True)]
    assert "Nothing is removed." in texts[0]
    assert "note.txt" in texts[1]
    assert (folder / "note.txt").exists()


@pytest.mark.worlds
async def test_other_requests_get_no_such_process(several: Client, folder: Path) -> None:
    with request_context(claude_code_tools=ClaudeCodeTools(tools=["Read"], cwd=folder)):
        several.script("Hello.", "Hello.")
        await several.ask("Hi.")
    await several.ask("Hi.")
    assert "tools" not in several.api.requests[1] or not several.api.requests[1]["tools"]


@pytest.mark.worlds
async def test_an_approval_for_later_calls_ends_with_its_request(connect: Connect, folder: Path) -> None:
    """SES-62"""

    def ask(_tool: str, _arguments: dict[str, Any], _context: object) -> PermissionResultAllow:
        return PermissionResultAllow(updated_permissions=[PermissionUpdate("setMode", mode="acceptEdits")])

    client = connect(size=1)
    servers = {"echo": StdioServer(sys.executable, ["-c", ECHO])}
    own = ClaudeCodeTools(tools=[], mcp_servers=servers, policy=Policy(default="ask", ask=ask), cwd=folder)
    client.script([call("mcp__echo__repeat", text="hello")], "Done.", "Done.")
    with request_context(claude_code_tools=own):
        await client.ask("Repeat.")
        await client.ask("Go.")
    assert client.transport.stats().recycled == {"changed": 1}


ECHO = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("echo", instructions="Repeat nothing twice.")


@server.tool()
def repeat(text: str) -> str:
    """Repeat a text."""
    return text


server.run()
'''


@pytest.mark.parametrize(
    ("opened", "tool", "complaint"),
    [
        (["Read"], {"strict": True}, "tools.0.strict"),
        (["Read"], {"defer_loading": True}, "tools.0.defer_loading"),
        (["Read"], {"name": "Read"}, "Read"),
    ],
)
async def test_a_tool_that_cannot_be_offered_is_refused_before_the_request(
    opened: list[str], tool: dict[str, Any], complaint: str, several: Client, folder: Path
) -> None:
    """MSG-83"""
    with request_context(claude_code_tools=ClaudeCodeTools(tools=opened, cwd=folder)):
        answered = await several.ask("Hi.", tools=[{**SAY, **tool}])
    assert answered.status == 400
    assert complaint in answered.error["message"]
    assert not several.api.requests


@pytest.mark.parametrize("name", ["Xylophone", "TodoWrite", "CronList"])
async def test_a_tool_that_this_claude_code_does_not_have_is_an_error(name: str, several: Client, folder: Path) -> None:
    """MSG-83: it may be a newer CLI's, an older one's, or one of a process that is not sealed; so the CLI decides."""
    with request_context(claude_code_tools=ClaudeCodeTools(tools=["Read", name], cwd=folder)):
        answered = await several.ask("Hi.")
    assert (answered.status, answered.error["message"]) == (400, f"This Claude Code has no tool {name}")


@pytest.mark.parametrize(
    ("tools", "complaint"),
    [
        (["Edit", "Raed"], "'Read'"),
        (["Edit", "bash"], "'Bash'"),
        (["Edit", "WebSerch(x)"], "'WebSearch'"),
        ("Read", "tool"),
        (["Read file"], "tool"),
        ([""], "tool"),
    ],
)
def test_an_unknown_tool_name_is_refused_with_the_nearest_name(tools: Any, complaint: str) -> None:
    """MSG-83"""
    with pytest.raises(ValueError, match=complaint):
        ClaudeCodeTools(tools=tools)
