"""Valid MCP servers, their display, and invalid ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from cc_session import HTTPServer, Session, SSEServer, StdioServer, ToolDefinition
from cc_session.mcp.servers import wire_servers
from cc_session.process.private_folder import PrivateFolder

STDIO = StdioServer("program", ["--flag"], {"TOKEN": "s3cret"})
HTTP = HTTPServer("https://user:s3cret@host:8443/s3cret?token=s3cret", {"Authorization": "Bearer s3cret"})
SSE = SSEServer("http://host/sse", {"Authorization": "Bearer s3cret"})


def configs(**servers: Any) -> dict[str, Any]:
    return dict(wire_servers(servers, taken=frozenset()).configs)


NO_LOGIN = dict.fromkeys(
    (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_AWS_API_KEY",
        "ANTHROPIC_CUSTOM_HEADERS",
        "ANTHROPIC_FOUNDRY_API_KEY",
        "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
        "ANTHROPIC_IDENTITY_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "CLAUDE_CODE_EXTRA_BODY",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ),
    "",
)


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


@pytest.mark.parametrize("as_text", [False, True])
def test_programs_among_the_servers_of_the_options_get_no_login_either(as_text: bool) -> None:
    """SES-55: the caller's own values stay."""
    own = {"ANTHROPIC_API_KEY": "own", "TOKEN": "x"}
    url: Any = {"type": "http", "url": "http://host"}
    servers: Any = {"a": {"command": "program"}, "b": {"type": "stdio", "command": "program", "env": own}, "c": url}
    given = json.dumps({"mcpServers": servers}) if as_text else servers
    private = PrivateFolder()
    try:
        options = private.options(ClaudeAgentOptions(mcp_servers=given))
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


async def test_servers_that_make_no_sense_are_refused_before_anything_starts(options: ClaudeAgentOptions) -> None:
    """SES-55."""
    with pytest.raises(ValueError, match="an MCP server's name"):
        await Session.open(options, mcp_servers={"a b": STDIO})
    with pytest.raises(ValueError, match="already an MCP server 'session'"):
        await Session.open(options, mcp_servers={"session": STDIO}, tools=[ToolDefinition("x", "", {"type": "object"})])
    wrong: Any = {"a": "program"}
    with pytest.raises(TypeError, match="is no StdioServer"):
        await Session.open(options, mcp_servers=wrong)
