"""MCP servers as the caller defines them: programs, URLs, and in-process servers; and the names of their tools.

This module checks servers and converts them for the CLI; `mcp/control.py` sends them. Possible secrets, in an
environment or a header, are in no repr. Also the options with which the CLI calls a server's tools in its own loop, and
a result's longest text.
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeAlias, cast
from urllib.parse import urlsplit

from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.types import ContentBlock, TextContent

from cc_types import JsonValue

from ..identity import value_class
from ..process.login import without_login

PLAIN_NAMES_ENV: Final[Mapping[str, str]] = {"CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}
"""Environment of a CLI that shows the model MCP tools under their plain names. Rules and hooks see the full names."""

_PREFIX = "mcp__"
# `__` separates server and tool, so a server name neither contains it nor ends with half of it.
_SERVER = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,63}(?<!_)")
_REPLACED = re.compile(r"[^A-Za-z0-9_-]")

TOOL_CALL_ID: Final = "claudecode/toolUseId"
"""Key in the `_meta` of the CLI's `tools/call` for the call id that the model uses."""

_PATIENT = {
    # A person may have to answer. In milliseconds; the maximum of the CLI.
    "MCP_TOOL_TIMEOUT": "2147483647",
    # A longer result would go into a file, and the path to the model. The second such limit is in the tool's `_meta`.
    "MAX_MCP_OUTPUT_TOKENS": "100000000",
}

# Longest result in UTF-16 units. The CLI puts a longer result into a file, unless an image is with it.
_MAX_TEXT = 500_000

TOOL_META: Final[Mapping[str, JsonValue]] = {
    # The tool stands in the request from the start, not behind the CLI's tool search.
    "anthropic/alwaysLoad": True,
    "anthropic/maxResultSizeChars": _MAX_TEXT,
}
"""`_meta` for a tool that the model sees from the start, and whose results it gets unchanged."""

InProcessServer: TypeAlias = Server[Any] | MCPServer[Any]
"""A server object as the `mcp` package has it."""


@value_class
@dataclass(frozen=True, slots=True)
class StdioServer:
    """Server that is a program, used over stdin and stdout. The CLI starts and ends it.

    Raises:
        ValueError: The command is empty, or a text holds a null byte.
        TypeError: A value is not a text, or the arguments are a single text.
    """

    command: str
    """The program: a path, or a name that is looked up in `PATH`."""
    args: Sequence[str] = field(default=(), repr=False)
    """Command-line arguments. Every user of the machine can read them."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables, in addition to the CLI's. Those come without request data and without logins, cloud logins
    included: a server that needs `ANTHROPIC_API_KEY` or `AWS_ACCESS_KEY_ID` gets it here."""

    def __post_init__(self) -> None:
        if isinstance(self.args, str):
            raise TypeError(f"the arguments of an MCP server are a sequence of texts, not a text: {self.args!r}")
        if not _text(self.command):
            raise ValueError("the command of an MCP server is empty")
        object.__setattr__(self, "args", tuple(map(_text, self.args)))
        object.__setattr__(self, "env", _texts(self.env))

    def to_wire(self) -> dict[str, JsonValue]:
        """Return the server in the CLI's format."""
        env: dict[str, JsonValue] = {**without_login(self.env)}
        return {"type": "stdio", "command": self.command, "args": [*self.args], "env": env}


@dataclass(frozen=True, slots=True)
class _UrlServer:
    _kind: ClassVar[str]
    url: str = field(repr=False)
    """Address, with `http` or `https`."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Headers of each request, such as `Authorization`."""

    def __post_init__(self) -> None:
        parts = urlsplit(_text(self.url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the URL of an MCP server begins with http:// or https:// and names a host, not {self}")
        object.__setattr__(self, "headers", _texts(self.headers))
        if any(set("\r\n") & set(name + value) for name, value in self.headers.items()):
            raise ValueError(f"a header of {self} has a line break in it")

    def __repr__(self) -> str:
        # A path, a query or a user name can hold a token.
        parts = urlsplit(self.url)
        return f"{type(self).__name__}({parts.scheme}://{parts.hostname}, headers={[*self.headers]})"

    def to_wire(self) -> dict[str, JsonValue]:
        """Return the server in the CLI's format."""
        return {"type": self._kind, "url": self.url, "headers": {**self.headers}}


@value_class
@dataclass(frozen=True, slots=True, repr=False)
class SSEServer(_UrlServer):
    """A server at a URL, with the older transport of server-sent events.

    Raises:
        ValueError: The URL is not an HTTP URL, or a header has a line break.
        TypeError: A value is not a text.
    """

    _kind = "sse"


@value_class
@dataclass(frozen=True, slots=True, repr=False)
class HTTPServer(_UrlServer):
    """A server at a URL, with the streamable HTTP transport.

    Raises:
        ValueError: The URL is not an HTTP URL, or a header has a line break.
        TypeError: A value is not a text.
    """

    _kind = "http"


McpServer: TypeAlias = StdioServer | SSEServer | HTTPServer | InProcessServer | McpServerConfig
"""An MCP server: a program, a URL with either transport, or an object from the `mcp` package in this process, an
`MCPServer` or a low-level `Server`. The SDK's dicts are accepted too, also from `create_sdk_mcp_server()`."""


@dataclass(frozen=True, slots=True)
class WireServers:
    """Checked servers by name."""

    configs: Mapping[str, dict[str, JsonValue]] = field(repr=False)
    """Definitions for the CLI."""
    in_process: Mapping[str, Server[Any]]


def wire_servers(servers: Mapping[str, McpServer], *, taken: Set[str]) -> WireServers:
    """Check servers and convert them; `taken` are names already in use."""
    configs: dict[str, dict[str, JsonValue]] = {}
    in_process: dict[str, Server[Any]] = {}
    for name, server in servers.items():
        check_server_name(name)
        if name in taken:
            raise ValueError(f"there is already an MCP server {name!r}")
        config, instance = _wire(name, server)
        configs[name] = config
        if instance is not None:
            in_process[name] = instance
    return WireServers(configs, in_process)


def _wire(name: str, server: object) -> tuple[dict[str, JsonValue], Server[Any] | None]:
    if isinstance(server, Mapping):
        return _wire_dict(name, dict(cast("Mapping[str, Any]", server)))
    if isinstance(server, (StdioServer, SSEServer, HTTPServer)):
        return server.to_wire(), None
    if isinstance(server, MCPServer):
        # There is no public way to run it over our streams.
        server = cast("MCPServer[Any]", server)._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    if isinstance(server, Server):
        return {"type": "sdk", "name": name}, cast("Server[Any]", server)
    kind = type(server).__name__
    raise TypeError(f"MCP server {name!r}: expected a StdioServer, SSEServer, HTTPServer or server object, got {kind}")


def _wire_dict(name: str, server: dict[str, Any]) -> tuple[dict[str, JsonValue], Server[Any] | None]:
    """Check a dict in the SDK's form. The CLI checks the other fields."""
    match server.pop("type", "stdio"):
        case "stdio":
            checked = StdioServer(server.pop("command", ""), server.pop("args", ()), server.pop("env", {}))
        case "sse":
            checked = SSEServer(server.pop("url", ""), server.pop("headers", {}))
        case "http":
            checked = HTTPServer(server.pop("url", ""), server.pop("headers", {}))
        case "sdk":
            return _wire(name, server.get("instance"))
        case kind:
            raise ValueError(f"MCP server {name!r}: unknown type {kind!r}")
    return {**server, **checked.to_wire()}, None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"MCP server: expected str, got {type(value).__name__}")
    if "\0" in value:
        raise ValueError("MCP server: a text has a null byte")
    return value


def _texts(values: Mapping[str, str]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in values.items()}


def check_server_name(name: str) -> None:
    """Raise `ValueError` if the CLI would change a server name in its tool names, or tool names would be ambiguous."""
    if not _SERVER.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of an MCP server: it has up to 64 letters, digits, '-' and single '_', "
            "begins with a letter or digit, and does not end with '_'"
        )


def mcp_name(server: str, tool: str) -> str:
    """Return the CLI's name for a tool. The CLI replaces all characters but letters, digits, `_` and `-`."""
    return f"{_PREFIX}{_REPLACED.sub('_', server)}__{_REPLACED.sub('_', tool)}"


def server_rule(server: str) -> str:
    """Return the CLI's permission rule for all tools of a server."""
    return _PREFIX + server


def is_mcp_name(name: str) -> bool:
    """Return true if a name has the form of an MCP tool name."""
    return name.startswith(_PREFIX)


def split_mcp_name(name: str) -> tuple[str, str] | None:
    """Return server and tool of an MCP tool's name; None for any other name."""
    server, separator, tool = name.removeprefix(_PREFIX).partition("__")
    return (server, tool) if is_mcp_name(name) and separator else None


def calling_freely(options: ClaudeAgentOptions, name: str) -> ClaudeAgentOptions:
    """Return options with which the CLI calls an MCP server's tools without permissions and limits, and continues."""
    return replace(
        options,
        allowed_tools=[*options.allowed_tools, server_rule(name)],
        # The CLI's loop goes on after an answer, with a second API call.
        max_turns=None if options.max_turns == 1 else options.max_turns,
        env={**_PATIENT, **options.env},
    )


def check_length(blocks: Sequence[ContentBlock]) -> None:
    """Raise `ValueError` if the CLI would put a tool's result into a file, and only name the file to the model."""
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    length = sum(len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in texts)
    if length > _MAX_TEXT and len(texts) == len(blocks):
        raise ValueError(f"A tool's text can have {_MAX_TEXT} characters (of UTF-16); this text has {length}")
