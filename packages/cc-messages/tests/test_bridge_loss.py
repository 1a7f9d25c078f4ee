"""A process that has lost the server with the caller's tools."""

import asyncio
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import psutil
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


@contextmanager
def no_bridges(client: Client) -> Generator[None]:
    """Kill bridges as soon as they exist, the CLI's replacements included."""
    is_over = threading.Event()

    def kill() -> None:
        while not is_over.wait(0.002):
            for pid in client.transport.pids:
                with suppress(psutil.Error):
                    for child in psutil.Process(pid).children():
                        if "cc_ipc_bridge" in child.cmdline():
                            child.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        yield
    finally:
        is_over.set()
        killing.join()


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


async def test_a_bridge_that_is_killed_again_and_again_is_an_error_and_started_anew(several: Client) -> None:
    """MSG-69: the CLI gives the bridge up after some attempts, which the model never reads."""

    def answer(body: dict[str, Any]) -> Any:
        return "Done." if body["messages"][-1]["content"][-1]["type"] == "tool_result" else [CALL]

    async def run() -> Any:
        with request_context(tools=CLITools(names=frozenset({"look"}), call=look, transport="stdio")):
            answered = await several.ask("Look.", tools=TOOLS)
        [result] = [block for block in answered.body["content"] if block["type"] == "mcp_tool_result"]
        return result["is_error"], result["content"]

    several.answers(answer)
    success = (False, [{"type": "text", "text": "seen"}])
    assert await run() == success

    lost = None
    with no_bridges(several):
        while "lost the connection" not in str(lost):
            try:  # a call can be quicker than the killer
                assert await run() == success
            except httpx2.TransportError as error:  # another error: killed before it was connected
                lost = error

    assert [await run() for _ in range(3)] == [success] * 3


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
