"""MCP servers as the caller defines them: programs, URLs, and in-process servers.

This module checks servers and converts them for the CLI; `mcp/control.py` sends them. Possible secrets, in an
environment or a header, are in no repr.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, cast
from urllib.parse import urlsplit

from claude_agent_sdk import McpServerConfig
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from cc_types import JsonValue

from ..identity import value_class
from ..process.login import without_login
from ..sdk import low_level_server
from .names import check_server_name

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
        """Return the server in the CLI format."""
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
        """Return the server in the CLI format."""
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
`MCPServer` or a low-level `Server`. The SDK dicts are accepted too, also from `create_sdk_mcp_server()`."""


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
        server = low_level_server(cast("MCPServer[Any]", server))
    if isinstance(server, Server):
        return {"type": "sdk", "name": name}, cast("Server[Any]", server)
    kind = type(server).__name__
    raise TypeError(f"MCP server {name!r}: expected a StdioServer, SSEServer, HTTPServer or server object, got {kind}")


def _wire_dict(name: str, server: dict[str, Any]) -> tuple[dict[str, JsonValue], Server[Any] | None]:
    """Check a dict in the SDK form. The CLI checks the other fields."""
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
