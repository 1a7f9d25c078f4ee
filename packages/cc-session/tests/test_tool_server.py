"""MCP servers whose tools the CLI calls in its loop."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import McpSdkServerConfig
from mcp.server.lowlevel import Server
from mcp.types import CallToolResult, ContentBlock, ImageContent, ListToolsResult, TextContent, Tool

from cc_loopback import LoopbackServer
from cc_session import Session
from cc_session.internals import TOOL_CALL_ID, TOOL_META, calling_freely, check_length

from .conftest import calling, use

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

LONGEST = "w" * 500_000


class Calls:
    """A server with a tool whose calls wait until all `count` calls have come."""

    def __init__(self, count: int) -> None:
        self._all = asyncio.Barrier(count)
        self.ids: set[str] = set()
        server: Server[Any] = Server("calls", on_list_tools=self._list, on_call_tool=self._call)
        self.config: McpSdkServerConfig = {"type": "sdk", "name": "calls", "instance": server}

    async def _list(self, *_: object) -> ListToolsResult:
        meta: Any = {"_meta": TOOL_META, "annotations": {"readOnlyHint": True}}
        return ListToolsResult(tools=[Tool.model_validate({"name": "wait", "inputSchema": {"type": "object"}, **meta})])

    async def _call(self, _context: object, params: Any) -> CallToolResult:
        self.ids.add(params.meta[TOOL_CALL_ID])
        await self._all.wait()
        return CallToolResult(content=[TextContent(type="text", text=LONGEST)])


async def test_calls_of_one_message_wait_together_and_long_results_arrive(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-95: each call has the model's id, and the loop goes on by itself."""
    calls = Calls(3)
    server.respond = calling(*(use(number, "mcp__calls__wait") for number in (1, 2, 3)))
    options = calling_freely(options, "calls")
    async with await Session.open(options, mcp_servers={"calls": calls.config}) as session, asyncio.timeout(20):
        assert (await session.run("Go.")).text == "Done."
    assert calls.ids == {"toolu_1", "toolu_2", "toolu_3"}
    results = server.requests[-1]["messages"][-1]["content"]
    assert [result["content"][0]["text"] for result in results] == [LONGEST] * 3


def test_a_limit_of_turns_and_other_tools_stay(options: ClaudeAgentOptions) -> None:
    """SES-95: but not the sealed limit, a single API call."""
    own = calling_freely(replace(options, max_turns=2, allowed_tools=["Read"]), "calls")
    assert (own.max_turns, own.allowed_tools) == (2, ["Read", "mcp__calls"])
    assert calling_freely(options, "calls").max_turns is None


def test_results_that_the_cli_would_put_into_a_file_are_refused() -> None:
    """SES-95: counted in UTF-16; with an image beside it, a text may be longer."""
    image = ImageContent(type="image", data="", mime_type="image/png")
    fitting: list[list[ContentBlock]] = [[], [_text(LONGEST)], [_text(LONGEST + "w"), image]]
    for blocks in fitting:
        check_length(blocks)
    for blocks in ([_text(LONGEST + "w")], [_text("\N{GRINNING FACE}" * 150_000)] * 2):
        with pytest.raises(ValueError, match=r"500000 characters.*has [56]0000[01]"):
            check_length(blocks)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
