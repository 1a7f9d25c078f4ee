"""Tool calls that wait: an MCP server inside the session, whose calls are answered when their caller has the answer.

The CLI runs its own loop and calls tools over MCP. This server has no code for them: a call waits, for as long as it
takes, until somebody answers it by the id the model gave it. It knows nothing of sessions. `SuspendedCalls` belongs to
the background loop, but for `suspended`.
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
    "check_length",
    "tool_result",
    "with_tool_server",
    "with_tools",
]

ToolContent: TypeAlias = str | Sequence[Mapping[str, JsonValue]]
"""What a tool answers: a text, or MCP content blocks: `{"type": "text", "text": …}` and
`{"type": "image", "data": …, "mimeType": …}`."""

TOOL_CALL_ID: Final = "claudecode/toolUseId"
"""Where in its `_meta` a `tools/call` of the CLI says which of the model's calls it is."""

SERVER_NAME = "session"

# The API gets the tools under the names they were given, not as `mcp__session__…`.
_NO_PREFIX = {"CLAUDE_AGENT_SDK_MCP_NO_PREFIX": "1"}

_PATIENT = {
    # A person may have to answer. In milliseconds; the CLI takes no more than this.
    "MCP_TOOL_TIMEOUT": "2147483647",
    # A longer result would be put into a file, and the model told where. The second limit of that kind is in the
    # tool's `_meta`.
    "MAX_MCP_OUTPUT_TOKENS": "100000000",
}

# The CLI takes no larger number than this for the length of a result, in UTF-16 units. What is longer it puts into a
# file, unless an image is with it.
_MAX_TEXT = 500_000

TOOL_META: Final[Mapping[str, JsonValue]] = {
    # A tool in the request from the start, not behind the CLI's search for tools.
    "anthropic/alwaysLoad": True,
    "anthropic/maxResultSizeChars": _MAX_TEXT,
}
"""The `_meta` of a tool that the model sees from the start, and whose results it gets as they are."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that the model may call, and whose calls the session's caller answers."""

    name: str
    """The name that the API and the model get."""
    description: str
    """What the model is told about it."""
    input_schema: dict[str, JsonValue]
    """The JSON Schema of its arguments. Nobody here checks arguments against it."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made and that waits for its answer."""

    id: str
    """The model's id for it, `toolu_…`, the same as in the API's events."""
    name: str
    """The name of the tool."""
    arguments: dict[str, JsonValue]
    """What the model gave it, unchecked."""


class SuspendedCalls:
    """The calls that wait for an answer, and the server that makes them wait."""

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
        """The calls that wait for an answer, in the order in which they came."""
        return tuple(call for call, _ in self._waiting.copy().values())

    async def next(self) -> ToolCall:
        """Return the next call that was not returned yet, waiting for one if need be.

        Raises:
            Exception: What `end()` was given.
        """
        while True:
            if self._end is not None:
                raise self._end
            if self._untold:
                return self._untold.popleft()
            self._news.clear()
            await self._news.wait()

    async def answer(self, call_id: str, result: CallToolResult) -> None:
        """Give a call its answer.

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
        """Drop all calls and have `next()` raise `error`, now and later."""
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
    """Return `options` with the tools of `calls`, which the CLI may call as often as the model likes.

    Raises:
        ValueError: The options name a file of MCP servers, to which none can be added.
    """
    server: McpServerConfig = {"type": "sdk", "name": SERVER_NAME, "instance": calls.server}
    return with_tool_server(replace(options, env={**_NO_PREFIX, **options.env}), SERVER_NAME, server)


def with_tool_server(options: ClaudeAgentOptions, name: str, server: McpServerConfig) -> ClaudeAgentOptions:
    """Return `options` with an MCP server whose tools the CLI may call without asking, as often as the model likes.

    The CLI waits for their answers without a limit, and goes on by itself after each.

    Raises:
        ValueError: The options name a file of MCP servers, to which none can be added.
    """
    servers = options.mcp_servers
    if not isinstance(servers, dict):
        raise ValueError(f"tools cannot be added to the MCP servers of the file {servers}: give the servers as a dict")
    return replace(
        options,
        mcp_servers={**servers, name: server},
        allowed_tools=[*options.allowed_tools, f"mcp__{name}"],
        # The CLI's own loop goes on after an answer, which takes a second API call.
        max_turns=None if options.max_turns == 1 else options.max_turns,
        env={**_PATIENT, **options.env},
    )


def tool_result(content: ToolContent, *, is_error: bool) -> CallToolResult:
    """Make the MCP result of a tool's answer.

    Raises:
        ValueError: The content is not made of MCP content blocks that reach the model as they are.
    """
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
    result = CallToolResult.model_validate({"content": blocks, "isError": is_error})
    _check(result.content)
    return result


def _check(blocks: Sequence[ContentBlock]) -> None:
    """Raise where the CLI would give the model something else, such as the name of a file."""
    others = {block.type for block in blocks if not isinstance(block, (TextContent, ImageContent))}
    if others:
        raise ValueError(f"Only text and images reach the model as they are, not {', '.join(sorted(others))}")
    check_length(blocks)


def check_length(blocks: Sequence[ContentBlock]) -> None:
    """Raise where the CLI would put a tool's result into a file and name that to the model.

    Raises:
        ValueError: The texts are longer than the CLI lets pass.
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
            # Calls of tools that are not read-only come one after another, each when the last one is answered.
            "annotations": {"readOnlyHint": True},
            "_meta": TOOL_META,
        }
    )


def _call_id(params: CallToolRequestParams) -> str:
    call_id = cast("Mapping[str, object]", params.meta or {}).get(TOOL_CALL_ID)
    if not isinstance(call_id, str):
        # Told to the model as the tool's error; there is nobody else to tell.
        raise ValueError(f"this version of the CLI does not say which call it makes: no {TOOL_CALL_ID!r} in `_meta`")
    return call_id
