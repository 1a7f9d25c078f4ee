"""A process that has lost the server with the caller's tools."""

import asyncio
import tempfile
from typing import Any

import httpx2
import pytest

from cc_messages import CLICall, CLITools, request_context
from cc_messages.loop.calls import ToolServer
from warm_clients.client import Client

pytestmark = pytest.mark.deaths

CALL: dict[str, Any] = {"type": "tool_use", "name": "mcp__tools__look", "input": {}}
TOOLS: list[dict[str, Any]] = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]


async def look(_call: CLICall) -> dict[str, object]:
    return {"content": [{"type": "text", "text": "seen"}], "isError": False}


async def ended(*_: object) -> None:
    raise asyncio.CancelledError  # from nowhere, so that it ends mcp's server


async def test_a_bridge_without_a_folder_for_files_is_an_error(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-35"""
    with request_context(tools=CLITools(names=frozenset({"look"}), call=look, transport="stdio")):
        await client.ask("Look.", tools=TOOLS)
        monkeypatch.setattr(tempfile, "tempdir", "/missing")
        with pytest.raises(httpx2.ReadError, match=r"tools: its files cannot be written: .*/missing"):
            await client.ask("Look.", tools=[{**TOOLS[0], "description": "Look again."}])
        monkeypatch.undo()
        assert (await client.ask("Look.", tools=TOOLS)).status == 200
    assert client.starts == 1
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_server_that_has_ended_is_an_error_and_its_process_is_replaced(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-69: in this process, whatever has ended the server."""
    starts = client.starts
    with request_context(tools=CLITools(names=frozenset({"look"}), call=look)):
        with monkeypatch.context() as patch:
            patch.setattr(ToolServer, "_call", ended)
            client.script([CALL], "Never asked for.")
            with pytest.raises(httpx2.TransportError, match="lost the connection"):
                await client.ask("Look.", tools=TOOLS)
        client.script([CALL], "Done.")
        assert (await client.ask("Look.", tools=TOOLS)).status == 200
    assert client.starts - starts == 2
