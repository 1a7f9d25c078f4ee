"""Suspended tool calls: an MCP server in the session, whose calls wait for the caller's answer.

The CLI runs its own loop and calls tools over MCP. This server has no code for them: a call waits, without a limit,
until `answer()` gets its result, by the model's id. It knows nothing of sessions. `SuspendedCalls` belongs to the
background loop, except `suspended`.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, cast

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import McpServerConfig
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from cc_types import JsonValue

from ..errors import UnknownToolCallError

__all__ = [
    "TOOL_CALL_ID",
    "TOOL_META",
    "SuspendedCalls",
    "ToolCall",
    "ToolContent",
    "ToolDefinition",
    "calling_freely",
    "check_length",
    "tool_result",
    "with_tools",
]

ToolContent: TypeAlias = str | Sequence[Mapping[str, JsonValue]]
"""Answer of a tool: a text, or MCP content blocks: `{"type": "text", "text": …}` and `{"type": "image", "data": …,
"mimeType": …}`."""

TOOL_CALL_ID: Final = "claudecode/toolUseId"
"""Key in the `_meta` of the CLI's `tools/call` with the id of the model's call."""

SERVER_NAME = "session"

# The API gets the tools under their given names, not as `mcp__session__…`.
_NO_PREFIX = {"CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}

_PATIENT = {
    # A person may have to answer. In milliseconds; the maximum of the CLI.
    "MCP_TOOL_TIMEOUT": "2147483647",
    # A longer result would go into a file, and its path to the model. The second limit of that kind is in the tool's
    # `_meta`.
    "MAX_MCP_OUTPUT_TOKENS": "100000000",
}

# The CLI's maximum for the length of a result, in UTF-16 units. It puts a longer one into a file, unless an image is
# with it.
_MAX_TEXT = 500_000

TOOL_META: Final[Mapping[str, JsonValue]] = {
    # A tool in the request from the start, not behind the CLI's tool search.
    "anthropic/alwaysLoad": True,
    "anthropic/maxResultSizeChars": _MAX_TEXT,
}
"""`_meta` of a tool that the model sees from the start, and whose results it gets unchanged."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that the model may call, and whose calls the session's caller answers."""

    name: str
    """Name for the API and the model."""
    description: str
    """Description for the model."""
    input_schema: dict[str, JsonValue]
    """JSON Schema of its arguments. They are not checked against it here."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made and that waits for its answer."""

    id: str
    """The model's id for it, `toolu_…`, the same as in the API's events."""
    name: str
    """The name of the tool."""
    arguments: dict[str, JsonValue]
    """The model's arguments, unchecked."""


class SuspendedCalls:
    """Calls that wait for an answer, and the server that makes them wait."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self.tools = [_mcp_tool(tool) for tool in tools]
        self._waiting: dict[str, tuple[ToolCall, asyncio.Future[CallToolResult]]] = {}
        self._untold: deque[ToolCall] = deque()
        self._news = asyncio.Event()
        self._end: Exception | None = None
        self.server: Server[dict[str, Any]] = Server(
            SERVER_NAME, on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )
        """The MCP server for the SDK's options."""

    @property
    def suspended(self) -> tuple[ToolCall, ...]:
        """Calls that wait for an answer, in order of arrival."""
        return tuple(call for call, _ in self._waiting.copy().values())

    async def next(self) -> ToolCall:
        """Return the next call that was not returned yet; wait for one if needed.

        Raises:
            Exception: That given to `end()`.
        """
        while True:
            if self._end is not None:
                raise self._end
            if self._untold:
                return self._untold.popleft()
            self._news.clear()
            await self._news.wait()

    async def answer(self, call_id: str, result: CallToolResult) -> None:
        """Answer a call.

        Raises:
            UnknownToolCallError: No call with this id waits.
        """
        if call_id not in self._waiting:
            raise UnknownToolCallError(call_id=call_id)
        self._release(call_id, result)

    def cancel(self) -> None:
        """Drop all calls: the turn they belong to is over."""
        for call_id in [*self._waiting]:
            # Answered and not cancelled: the MCP server takes seconds to close over a handler that still waits.
            self._release(call_id, tool_result("The call was cancelled.", is_error=True))

    def end(self, error: Exception) -> None:
        """Drop all calls and make `next()` raise `error`, now and later."""
        self._end = error
        self.cancel()
        self._news.set()

    async def _list_tools(
        self, _context: ServerRequestContext[dict[str, Any]], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=self.tools)

    async def _call_tool(
        self, _context: ServerRequestContext[dict[str, Any]], params: CallToolRequestParams
    ) -> CallToolResult:
        call = ToolCall(_call_id(params), params.name, cast("dict[str, JsonValue]", params.arguments or {}))
        if self._end is not None or call.id in self._waiting:
            return tool_result("This call cannot be answered.", is_error=True)
        answer: asyncio.Future[CallToolResult] = asyncio.get_running_loop().create_future()
        self._waiting[call.id] = (call, answer)
        self._untold.append(call)
        self._news.set()
        try:
            return await answer
        finally:
            if call.id in self._waiting:  # the CLI has cancelled it
                self._forget(call)

    def _release(self, call_id: str, result: CallToolResult) -> None:
        call, answer = self._waiting[call_id]
        self._forget(call)
        if not answer.done():
            answer.set_result(result)

    def _forget(self, call: ToolCall) -> None:
        del self._waiting[call.id]
        if call in self._untold:
            self._untold.remove(call)


def with_tools(options: ClaudeAgentOptions, calls: SuspendedCalls) -> ClaudeAgentOptions:
    """Return `options` with the tools of `calls`, which the CLI may call without a limit.

    Raises:
        ValueError: The options name a file of MCP servers, to which none can be added, or have a server of this name.
    """
    server: McpServerConfig = {"type": "sdk", "name": SERVER_NAME, "instance": calls.server}
    servers = options.mcp_servers
    if not isinstance(servers, dict):
        raise ValueError(f"tools cannot be added to the MCP servers of the file {servers}: give the servers as a dict")
    if SERVER_NAME in servers:
        raise ValueError(f"there is already an MCP server {SERVER_NAME!r}")
    env, servers = {**_NO_PREFIX, **options.env}, {**servers, SERVER_NAME: server}
    return calling_freely(replace(options, env=env, mcp_servers=servers), SERVER_NAME)


def calling_freely(options: ClaudeAgentOptions, name: str) -> ClaudeAgentOptions:
    """Return options with which the CLI calls the tools of an MCP server without a permission and without a limit.

    The CLI waits for their answers without a limit, and continues by itself after each.
    """
    return replace(
        options,
        allowed_tools=[*options.allowed_tools, f"mcp__{name}"],
        # The CLI's own loop goes on after an answer, which takes a second API call.
        max_turns=None if options.max_turns == 1 else options.max_turns,
        env={**_PATIENT, **options.env},
    )


def tool_result(content: ToolContent, *, is_error: bool) -> CallToolResult:
    """Return a tool's answer as MCP result.

    Raises:
        ValueError: The content is not made of MCP content blocks that reach the model as they are.
    """
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    result = CallToolResult.model_validate({"content": blocks, "isError": is_error})
    _check(result.content)
    return result


def _check(blocks: Sequence[ContentBlock]) -> None:
    """Raise if the CLI would give the model other content, such as the name of a file."""
    others = {block.type for block in blocks if not isinstance(block, (TextContent, ImageContent))}
    if others:
        raise ValueError(f"Only text and images reach the model as they are, not {', '.join(sorted(others))}")
    check_length(blocks)


def check_length(blocks: Sequence[ContentBlock]) -> None:
    """Raise if the CLI would put a tool's result into a file and name it to the model.

    Raises:
        ValueError: The texts are longer than the CLI allows.
    """
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    length = sum(len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in texts)
    if length > _MAX_TEXT and len(texts) == len(blocks):
        raise ValueError(f"A tool's text can have {_MAX_TEXT} characters (of UTF-16); this one has {length}")


def _mcp_tool(tool: ToolDefinition) -> Tool:
    return Tool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            # Calls of other tools come one after another, each after the answer to the last one.
            "annotations": {"readOnlyHint": True},
            "_meta": TOOL_META,
        }
    )


def _call_id(params: CallToolRequestParams) -> str:
    call_id = cast("Mapping[str, object]", params.meta or {}).get(TOOL_CALL_ID)
    if not isinstance(call_id, str):
        # Reaches the model as the tool's error; there is no other receiver.
        raise ValueError(f"this version of the CLI does not say which call it makes: no {TOOL_CALL_ID!r} in `_meta`")
    return call_id
