"""Texts of MCP tools that a running CLI keeps.

A CLI describes a tool to the model as it was at first, for as long as its process runs: it keeps descriptions and
`_meta` under the tool name and schema, whatever server has that name later. Only `/clear` empties that, which leaves
an echo in the conversation. So a process that has seen a tool must not get the same tool with another text. An
in-process server's definitions pass through this process; another server's are unknown, so its whole definition
counts. Measured on CLI 2.1.306 to 2.1.332.
"""

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, cast

from cc_types import JsonValue

from ..errors import CLIConnectionError
from ..identity import identity
from .names import mcp_name

# The CLI requests for what a server tells about itself.
_LISTS = {"prompts/list": "prompts", "resources/list": "resources", "tools/list": "tools"}


class ToolTexts:
    """A process's MCP definitions so far. With `has_plain_names` the model sees tools without their server name."""

    def __init__(self, *, has_plain_names: bool) -> None:
        self._has_plain_names = has_plain_names
        self._seen: dict[Hashable, Hashable] = {}
        self.stale: set[str] = set()
        """In-process servers that have listed a definition unlike the one that the CLI keeps."""

    def others(self, configs: Mapping[str, Mapping[str, JsonValue]]) -> list[str]:
        """Return the servers of which the CLI may keep other texts."""
        if self._has_plain_names:  # any two servers may have tools with the same name
            return [*configs] if self._seen.get("", _programs(configs)) != _programs(configs) else []
        return [name for name, config in configs.items() if self._seen.get(name, identity(config)) != identity(config)]

    def add(self, configs: Mapping[str, Mapping[str, JsonValue]]) -> None:
        """Record servers that the CLI gets."""
        if self._has_plain_names:
            self._seen[""] = _programs(configs)
        self._seen |= {name: identity(config) for name, config in configs.items()}

    def listed(self, server: str, method: object, response: Mapping[str, Any]) -> None:
        """Record an in-process server answer to the CLI."""
        result = response.get("result")
        if not isinstance(result, Mapping):
            return
        parts = cast("Mapping[str, Any]", result)
        if method == "initialize":
            self._take(server, (server, method), parts)
        elif (kind := _LISTS.get(str(method))) is not None:
            for part in cast("list[dict[str, Any]]", parts.get(kind, [])):
                name = str(part.get("name"))
                key = name if self._has_plain_names else mcp_name(server, name)
                self._take(server, (method, key, json.dumps(part.get("inputSchema"), sort_keys=True)), part)

    def _take(self, server: str, key: Hashable, definition: object) -> None:
        text = json.dumps(definition)
        if self._seen.setdefault(key, text) != text:
            self.stale.add(server)


def _programs(configs: Mapping[str, Mapping[str, JsonValue]]) -> Hashable:
    """Return a key for the servers whose definitions do not pass through this process."""
    return identity({name: config for name, config in configs.items() if config.get("type") != "sdk"})


def kept_texts(servers: Iterable[str]) -> CLIConnectionError:
    """Return the error for servers with other texts than the CLI keeps."""
    names = ", ".join(sorted(servers))
    return CLIConnectionError(
        reason=f"Claude Code keeps the texts of tools that an earlier MCP server named {names} had in this process",
        advice="Give the server another name, or use another session.",
    )
