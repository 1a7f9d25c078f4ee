"""Control of a running CLI's MCP servers: send, wait, replace, switch on and off.

Servers are sent by a control request and not on the command line: so their secrets are in no file and visible to no
other user, the CLI answers with errors, and the whole set can be replaced. Runs on the background loop.

The SDK client adds in-process servers from the options when it connects, and has no method for more (`sdk.py`).
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, cast

from claude_agent_sdk import McpServerStatus
from mcp.server.lowlevel import Server
from typing_extensions import override

from cc_types import ControlRequestError, JsonValue

from ..background import await_on
from ..errors import McpServerFailedError
from ..sdk import SdkMcpBridge, mcp_bridges
from .names import mcp_name, server_rule
from .servers import WireServers
from .tool_texts import ToolTexts, kept_texts

if TYPE_CHECKING:
    from ..process.link import Link

# First and longest wait between status requests; a starting program takes some hundred milliseconds.
_POLL_SECONDS = 0.01
_MAX_POLL_SECONDS = 0.2

# Reasons for a server that is not connected and gives no reason.
_REASONS: Mapping[str, str] = {
    "pending": "it was not ready in time",
    "needs-auth": "it needs a login",
    "disabled": "it is switched off in the user's configuration",
}


class McpControl:
    """Control of one CLI's MCP servers: `initial` in-process servers in the options, and others, which it replaces."""

    def __init__(self, link: "Link", *, initial: Iterable[str], allows_tools: bool, texts: ToolTexts | None) -> None:
        self._link, self._texts = link, texts
        # The CLI would drop them with the replaced set, but not the programs and URLs that it began with.
        self._initial: dict[str, dict[str, JsonValue]] = {name: {"type": "sdk", "name": name} for name in initial}
        self._allows_tools = allows_tools
        self._in_process: dict[str, object] = {}
        self._offered: dict[str, set[str]] = {}
        self._lock = asyncio.Lock()

    async def replace(
        self, servers: WireServers, *, require: bool, loop: asyncio.AbstractEventLoop | None
    ) -> list[McpServerStatus]:
        """Replace the servers that were sent before, and wait until the new ones are ready.

        The replacement is completed also if the caller is cancelled: the CLI would take a server that comes while
        another one of its name still connects for failed.
        """
        task = asyncio.ensure_future(self._replace(servers, loop))
        task.add_done_callback(_retrieve)
        statuses = await asyncio.shield(task)
        if require:
            _check(statuses, is_named=True)
        return statuses

    async def _replace(self, servers: WireServers, loop: asyncio.AbstractEventLoop | None) -> list[McpServerStatus]:
        deadline = time.monotonic() + self._link.timeouts.mcp
        async with self._lock:
            if self._texts is not None:
                if server_names := self._texts.others(servers.configs):
                    raise kept_texts(server_names)
                self._texts.add(servers.configs)
            replaced = {name for name, server in self._in_process.items() if servers.in_process.get(name) is not server}
            await self._remove(replaced, servers.configs)
            for name in servers.in_process.keys() - self._in_process.keys():
                self._in_process[name] = server = servers.in_process[name]
                self._bridges[name] = _Bridge(name, server, loop, self._texts)
            await self._send(servers.configs)
            statuses = await self.wait([*servers.configs], seconds=max(deadline - time.monotonic(), 0), require=False)
            if self._texts is not None and (stale := self._texts.stale & servers.in_process.keys()):
                await self._remove(stale, servers.configs)
                raise kept_texts(stale)
            if withdrawn := self._no_longer_offered(statuses):
                await self._send(servers.configs, denied=withdrawn)
            if self._allows_tools and servers.configs:
                allowed: list[JsonValue] = [server_rule(name) for name in servers.configs]
                await self._request("apply_flag_settings", settings={"permissions": {"allow": allowed}})
        return statuses

    def has_other_texts(self, servers: WireServers) -> bool:
        """Return true if the CLI may keep other texts of these servers."""
        return self._texts is not None and bool(self._texts.others(servers.configs))

    async def _remove(self, names: Set[str], configs: Mapping[str, dict[str, JsonValue]]) -> None:
        """Remove in-process servers, before others with the same names: the CLI would take these for the same."""
        if names & configs.keys():
            await self._send({name: config for name, config in configs.items() if name not in names})
        for name in names:
            del self._in_process[name]
            if (bridge := self._bridges.pop(name, None)) is not None:
                await bridge.aclose()  # the SDK limits the time

    async def wait(self, names: Collection[str] | None, *, seconds: float, require: bool) -> list[McpServerStatus]:
        """Wait until servers are connected, or have failed."""
        deadline = time.monotonic() + seconds
        pause = _POLL_SECONDS
        while True:
            patience = max(deadline - time.monotonic(), self._link.timeouts.control)
            statuses = _selected(await self.status(patience), names)
            if time.monotonic() >= deadline or all(status["status"] != "pending" for status in statuses):
                break
            await asyncio.sleep(min(pause, max(deadline - time.monotonic(), 0)))
            pause = min(2 * pause, _MAX_POLL_SECONDS)
        if require:
            _check(statuses, is_named=names is not None)
        return statuses

    async def status(self, seconds: float | None = None) -> list[McpServerStatus]:
        """Return the status of each server that the CLI has."""
        answer = await self._link.request("mcp_status", {}, seconds)
        return [_without_secrets(status) for status in cast("list[dict[str, Any]]", answer.get("mcpServers", []))]

    async def reconnect(self, name: str) -> None:
        """Connect a server anew; raise `McpServerFailedError` if the CLI refuses."""
        try:
            await self._request("mcp_reconnect", serverName=name)
        except ControlRequestError as error:
            raise McpServerFailedError({name: error.message}) from error

    @property
    def _bridges(self) -> dict[str, SdkMcpBridge]:
        """The client's in-process servers, to which it forwards the CLI messages."""
        return mcp_bridges(self._link.client)

    async def _send(self, configs: Mapping[str, dict[str, JsonValue]], denied: Sequence[str] = ()) -> None:
        # The answer failures are in the status as well.
        await self._request("mcp_set_servers", servers={**self._initial, **configs}, denied_tools=[*denied])

    def _no_longer_offered(self, statuses: list[McpServerStatus]) -> list[str]:
        """Return the tools that only earlier servers had; in a conversation the CLI still lists them."""
        withdrawn: list[str] = []
        for status in statuses:
            tools = {mcp_name(status["name"], tool["name"]) for tool in status.get("tools", [])}
            offered = self._offered.setdefault(status["name"], set())
            withdrawn += sorted(offered - tools)
            offered |= tools
        return withdrawn

    async def _request(self, subtype: str, **fields: JsonValue) -> dict[str, JsonValue]:
        # Until servers are connected, or have failed, the CLI answers no other request.
        timeouts = self._link.timeouts
        return await self._link.request(subtype, fields, timeouts.mcp + timeouts.control)


def _retrieve(task: "asyncio.Task[object]") -> None:
    """Take the error of a replacement whose caller has gone."""
    if not task.cancelled():
        task.exception()


def _selected(statuses: list[McpServerStatus], names: Collection[str] | None) -> list[McpServerStatus]:
    if names is None:
        return statuses
    by_name = {status["name"]: status for status in statuses}
    if unknown_names := set(names) - by_name.keys():
        raise ValueError(
            f"there is no MCP server {', '.join(sorted(unknown_names))}; there is {', '.join(by_name) or 'none'}"
        )
    return [by_name[name] for name in names]


def _check(statuses: list[McpServerStatus], *, is_named: bool) -> None:
    failed = {
        status["name"]: status.get("error", _REASONS.get(status["status"], status["status"]))
        for status in statuses
        if status["status"] != "connected" and (is_named or status["status"] != "disabled")
    }
    if failed:
        raise McpServerFailedError(failed)


def _without_secrets(status: dict[str, Any]) -> McpServerStatus:
    config = {name: value for name, value in status.get("config", {}).items() if name not in ("env", "headers")}
    return cast(McpServerStatus, {**status, "config": config} if config else status)


class _Bridge(SdkMcpBridge):
    """Bridge that runs a server on the owner loop, or on the calling loop if that has been closed."""

    def __init__(
        self, name: str, server: Server[Any], loop: asyncio.AbstractEventLoop | None, texts: ToolTexts | None
    ) -> None:
        super().__init__(name, server)
        self._loop, self._texts = loop, texts
        self._greetings: list[dict[str, Any]] = []

    @override
    async def handle(self, message: dict[str, Any]) -> dict[str, Any] | None:
        if self._loop is not None and self._loop.is_closed():
            # Restart the server here with the same handshake, so that the CLI does not notice.
            super().__init__(self.name, self._server)
            self._loop = None
            for greeting in self._greetings:
                await super().handle(greeting)
        if message.get("method") == "initialize":
            self._greetings.clear()
        if message.get("method") in ("initialize", "notifications/initialized"):
            self._greetings.append(message)
        answer = await await_on(self._loop, super().handle(message))
        if self._texts is not None and answer is not None:
            self._texts.listed(self.name, message.get("method"), answer)
        return answer

    @override
    async def aclose(self) -> None:
        if self._loop is None or not self._loop.is_closed():
            await await_on(self._loop, super().aclose())
