"""The official MCP client lists and calls tools through the bridge, in both major versions."""

import asyncio
import base64
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO, cast

import pytest

from cc_ipc import IPCSession, ToolHandler, ToolSchema, current_call

from .conftest import Tools

pytest.importorskip("mcp")

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

LIMIT = 20.0
IS_MCP_2 = hasattr(mcp, "Client")
MODES = ["handshake", "auto", "2026-07-28"] if IS_MCP_2 else ["handshake"]
MEGABYTES_5 = 5_000_000
PIXEL = base64.b64encode(b"not really a picture").decode()

RESULTS: dict[str, dict[str, object]] = {
    "text": {"content": [{"type": "text", "text": "Zürich \u2028 \U0001f600"}]},
    "image": {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
    "audio": {"content": [{"type": "audio", "data": PIXEL, "mimeType": "audio/wav"}]},
    "resource": {
        "content": [
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "a"}},
            {"type": "resource_link", "uri": "file:///b", "name": "b"},
        ]
    },
    "structured": {"content": [{"type": "text", "text": "a"}], "structuredContent": {"a": [1, None]}},
    "failed": {"content": [{"type": "text", "text": "no"}], "isError": True},
    "large": {"content": [{"type": "text", "text": "é" * (MEGABYTES_5 // 2)}]},
}


class Host(Tools):
    """Tools that return the results above, and some that wait."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str | None] = []

    @property
    def handlers(self) -> dict[str, ToolHandler]:
        def returning(result: dict[str, object]) -> ToolHandler:
            async def handler(arguments: dict[str, object]) -> dict[str, object]:
                return result

            return handler

        own: dict[str, ToolHandler] = {"raise": self.fail, "meet": self.meet, "wait": self.wait, "id": self.id}
        return {name: returning(result) for name, result in RESULTS.items()} | own

    async def id(self, arguments: dict[str, object]) -> dict[str, object]:
        call = current_call()
        self.ids.append(call.tool_use_id if call else "none")
        return RESULTS["text"]


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
async def parameters(host: Host, folder: Path) -> AsyncIterator[StdioServerParameters]:
    handlers = host.handlers
    schemas: list[ToolSchema] = [
        {"name": name, "description": f"The {name}.", "input_schema": {}, "annotations": {"readOnlyHint": True}}
        for name in handlers
    ]
    async with IPCSession(handlers, schemas, folder=folder) as session:
        config = session.mcp_server_config()
        yield StdioServerParameters(command=config["command"], args=config["args"])


@asynccontextmanager
async def connected(parameters: StdioServerParameters, mode: str) -> AsyncGenerator[Any]:
    """Yield a connected client; both versions have `list_tools` and `call_tool`."""
    transport = stdio_client(parameters, errlog=cast("TextIO", sys.__stderr__))
    if mode == "handshake":
        async with transport as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            yield session
    else:
        async with mcp.Client(transport, mode=mode) as client:
            yield client


def dumped(result: Any) -> Any:
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_gets_complete_results_and_mcp_errors(
    parameters: StdioServerParameters, host: Host, mode: str
) -> None:
    """IPC-P-37, IPC-P-32, IPC-D-10, IPC-D-17: text, image, audio, resources, structured, failed, 5 MB.

    IPC-P-34, IPC-P-38, IPC-P-E05, IPC-P-E06, IPC-P-21: errors, a ping, and the model's id of a call.
    """
    async with asyncio.timeout(LIMIT), connected(parameters, mode) as client:
        listed = dumped(await client.list_tools())["tools"]
        assert [tool["name"] for tool in listed] == list(host.handlers)
        assert listed[0]["inputSchema"] == {"type": "object"}
        assert listed[0]["annotations"]["readOnlyHint"] is True
        for name, expected in RESULTS.items():
            result = dumped(await client.call_tool(name, {}))
            assert result["content"] == expected["content"]
            assert result.get("structuredContent") == expected.get("structuredContent")
            assert result.get("isError", False) == expected.get("isError", False)
        raised = dumped(await client.call_tool("raise", {}))
        assert (raised["isError"], raised["content"][0]["text"]) == (True, "ValueError: no such city")
        with pytest.raises(Exception, match="The tool 'nope' is not known") as caught:
            await client.call_tool("nope", {})
        assert type(caught.value).__name__ in ("McpError", "MCPError")
        if mode == "handshake":
            await client.send_ping()
            await client.call_tool("id", {}, meta={"claudecode/toolUseId": "toolu_1"})
            await client.call_tool("id", {})
            assert host.ids == ["toolu_1", None]


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_makes_eight_parallel_calls_and_continues_after_a_cancellation(
    parameters: StdioServerParameters, host: Host, mode: str
) -> None:
    """IPC-P-32, IPC-P-33, IPC-P-37: none of the eight returns before all have started."""
    async with asyncio.timeout(LIMIT), connected(parameters, mode) as client:
        assert len(await asyncio.gather(*(client.call_tool("meet", {"parties": 8}) for _ in range(8)))) == 8
        host.go_on.clear()
        call = asyncio.ensure_future(client.call_tool("wait", {}))
        await host.started.wait()
        if IS_MCP_2:
            call.cancel()
        else:  # a client of version 1 does not report a cancellation to the server
            types: Any = __import__("mcp.types").types
            params = types.CancelledNotificationParams(requestId=vars(client)["_request_id"] - 1)
            await client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        await host.cancelled.wait()
        call.cancel()
        await asyncio.wait([call])
        assert dumped(await client.call_tool("text", {}))["content"] == RESULTS["text"]["content"]
