"""Valid MCP servers, their display, and invalid ones."""

import json
import mmap
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from cc_loopback import LoopbackServer
from cc_session import HTTPServer, Session, SSEServer, StdioServer
from cc_session.mcp.servers import wire_servers
from cc_session.process.cli_path import bundled_cli
from cc_session.process.login import without_login
from cc_session.process.private_folder import PrivateFolder
from cc_types import ProcessExitedError

from .conftest import STDIO_SERVER, ask, calling, results_of, use

STDIO = StdioServer("program", ["--flag"], {"TOKEN": "s3cret"})
HTTP = HTTPServer("https://user:s3cret@host:8443/s3cret?token=s3cret", {"Authorization": "Bearer s3cret"})
SSE = SSEServer("http://host/sse", {"Authorization": "Bearer s3cret"})


def configs(**servers: Any) -> dict[str, Any]:
    return dict(wire_servers(servers, taken=frozenset()).configs)


NO_LOGIN = without_login({})


def test_servers_are_written_down_for_the_cli() -> None:
    """SES-55."""
    assert configs(a=STDIO, b=HTTP, c=SSE, d=MCPServer("x")) == {
        "a": {"type": "stdio", "command": "program", "args": ["--flag"], "env": {**NO_LOGIN, "TOKEN": "s3cret"}},
        "b": {"type": "http", "url": HTTP.url, "headers": {"Authorization": "Bearer s3cret"}},
        "c": {"type": "sse", "url": SSE.url, "headers": {"Authorization": "Bearer s3cret"}},
        "d": {"type": "sdk", "name": "d"},
    }
    assert configs(
        a={"command": "program", "args": ["--flag"], "env": {**NO_LOGIN, "TOKEN": "s3cret"}, "alwaysLoad": True},
        b={"type": "http", "url": HTTP.url, "headers": HTTP.headers},
        c={"type": "sse", "url": SSE.url, "headers": SSE.headers},
        d=create_sdk_mcp_server("other name"),
    ) == configs(a=STDIO, b=HTTP, c=SSE, d=Server("x")) | {"a": {**STDIO.to_wire(), "alwaysLoad": True}}
    assert StdioServer("program", ("--flag",), {"TOKEN": "s3cret"}) == STDIO
    assert StdioServer("program") != STDIO


LOGINS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN",
    "AWS_SECRET_ACCESS_KEY", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AZURE_CLIENT_SECRET",
    "GOOGLE_APPLICATION_CREDENTIALS",
)  # fmt: skip


@pytest.mark.worlds
@pytest.mark.parametrize("place", ["dict", "text", "file", "session"])
async def test_a_program_has_no_login_in_its_environment(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """SES-55: from the environment of Python or the CLI, nor request data; but the server's variables."""
    for name in LOGINS:
        monkeypatch.setenv(name, "s3cret")
    stdio: Any = {"command": sys.executable, "args": ["-S", STDIO_SERVER], "env": {"AWS_SESSION_TOKEN": "own"}}
    env = {**options.env, "ANTHROPIC_API_KEY": "s3cret", "AZURE_CLIENT_SECRET": "s3cret"}
    env["CLAUDE_CODE_EXTRA_BODY"] = '{"metadata": {"user_id": "s3cret"}}'
    options = replace(options, env=env, allowed_tools=["mcp__s__environment"], max_turns=None)
    text = json.dumps({"mcpServers": {"s": stdio}})
    (tmp_path / "mcp.json").write_text(text)
    servers: dict[str, Any] = {"dict": {"s": stdio}, "text": text, "file": "mcp.json", "session": {}}
    options = replace(options, mcp_servers=servers[place], cwd=tmp_path)
    server.respond = calling(use(1, "mcp__s__environment"))
    async with await Session.open(options, mcp_servers={"s": stdio} if place == "session" else None) as session:
        await session.wait_mcp(["s"])
        await ask(session, "Go.")

    [variables] = results_of(server).values()
    assert "s3cret" not in variables
    assert ";AWS_SESSION_TOKEN=own;" in variables


@pytest.mark.worlds
@pytest.mark.parametrize(("name", "words"), [("missing.json", "missing.json"), ("broken.json", "not a valid JSON")])
async def test_the_cli_reports_an_unreadable_server_file(
    options: ClaudeAgentOptions, tmp_path: Path, name: str, words: str
) -> None:
    """SES-55."""
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ProcessExitedError, match=words):
        await Session.open(replace(options, mcp_servers=tmp_path / name))


def test_the_cli_withholds_no_other_login_of_its_own_from_programs() -> None:
    """SES-55, SES-78: the list is in the CLI's code. Variables for other programs are not logins."""
    with Path(bundled_cli()).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as code:
        match = re.search(rb'=(\["ANTHROPIC_API_KEY","CLAUDE_CODE_OAUTH_TOKEN",["A-Z_,]+\])', code)
        assert match is not None
        names: list[str] = json.loads(match[1])
    own = re.compile("ANTHROPIC_|CLAUDE_|AWS_|AZURE_|CLOUDSDK_|GOOGLE_|IDENTITY_|MSI_")
    withheld = {name for name in names if own.match(name) and not name.startswith("AWS_CONTAINER_CREDENTIALS_")}
    assert len(withheld) > 20
    assert withheld <= NO_LOGIN.keys()


@pytest.mark.parametrize("as_text", [False, True])
def test_programs_among_the_servers_of_the_options_get_no_login_either(as_text: bool) -> None:
    """SES-55: the caller's values stay."""
    own = {"ANTHROPIC_API_KEY": "own", "TOKEN": "x"}
    url: Any = {"type": "http", "url": "http://host"}
    servers: Any = {"a": {"command": "program"}, "b": {"type": "stdio", "command": "program", "env": own}, "c": url}
    value = json.dumps({"mcpServers": servers}) if as_text else servers
    private = PrivateFolder()
    try:
        options = private.options(ClaudeAgentOptions(mcp_servers=value))
        written = json.loads(Path(str(options.mcp_servers)).read_text(encoding="utf-8"))["mcpServers"]
    finally:
        private.remove()
    assert [written[name].get("env") for name in "abc"] == [NO_LOGIN, {**NO_LOGIN, **own}, None]
    assert written["c"] == url


def test_no_repr_shows_a_secret() -> None:
    """SES-68."""
    wired = wire_servers({"a": STDIO, "b": HTTP, "c": SSE}, taken=frozenset())
    shown = repr([STDIO, HTTP, SSE, wired])
    assert "s3cret" not in shown
    assert "StdioServer(command='program')" in shown
    assert "HTTPServer(https://host, headers=['Authorization'])" in shown


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a__b", "ä", "x" * 65, "taken"])
def test_a_name_that_cannot_be_part_of_a_tool_s_is_refused(name: str) -> None:
    """SES-55."""
    with pytest.raises(ValueError, match="MCP server"):
        wire_servers({name: STDIO}, taken={"taken"})


@pytest.mark.parametrize(
    ("server", "error"),
    [
        (lambda: StdioServer(""), ValueError),
        (lambda: StdioServer("a\0b"), ValueError),
        (lambda: StdioServer("a", "--flag"), TypeError),
        (lambda: StdioServer("a", [1]), TypeError),  # pyright: ignore[reportArgumentType]
        (lambda: StdioServer("a", env={"A": 1}), TypeError),  # pyright: ignore[reportArgumentType]
        (lambda: HTTPServer("host/mcp"), ValueError),
        (lambda: HTTPServer("ftp://host"), ValueError),
        (lambda: HTTPServer("http://"), ValueError),
        (lambda: HTTPServer("http://host", {"A": "b\r\nC: d"}), ValueError),
        (lambda: SSEServer(b"http://host"), TypeError),  # pyright: ignore[reportArgumentType]
        (lambda: {"type": "stdio"}, ValueError),
        (lambda: {"type": "websocket", "url": "ws://host"}, ValueError),
        (lambda: {"type": "sdk", "name": "a"}, TypeError),
        (lambda: "program", TypeError),
        (lambda: None, TypeError),
    ],
    ids=range(15),
)
def test_a_server_that_makes_no_sense_is_refused(server: Any, error: type[Exception]) -> None:
    """SES-55."""
    with pytest.raises(error):
        configs(a=server())


async def test_invalid_servers_are_refused_before_any_start(options: ClaudeAgentOptions) -> None:
    """SES-55."""
    with pytest.raises(ValueError, match="cannot be the name of an MCP server"):
        await Session.open(options, mcp_servers={"a b": STDIO})
    with pytest.raises(ValueError, match="already an MCP server 'a'"):
        await Session.open(replace(options, mcp_servers={"a": STDIO.to_wire()}), mcp_servers={"a": STDIO})
    wrong: Any = {"a": "program"}
    with pytest.raises(TypeError, match="expected a StdioServer"):
        await Session.open(options, mcp_servers=wrong)
