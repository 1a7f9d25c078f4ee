"""A process whose bridge to the caller's tools was killed."""

import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2
import psutil
import pytest

from cc_messages import CLICall, CLITools, request_context

from .client import Client

CALL: dict[str, Any] = {"type": "tool_use", "name": "mcp__tools__look", "input": {}}
TOOLS: list[dict[str, Any]] = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]


async def look(_call: CLICall) -> dict[str, object]:
    return {"content": [{"type": "text", "text": "seen"}], "isError": False}


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


async def test_a_bridge_that_is_killed_again_and_again_is_started_anew(several: Client) -> None:
    """MSG-69: the CLI gives the bridge up after some attempts."""

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

    missed: Any = None
    with no_bridges(several):
        while "not connected" not in str(missed):  # a call can be quicker than the killer
            with suppress(httpx2.TransportError):  # killed before it was connected
                missed = await run()

    assert missed[0]
    assert [await run() for _ in range(3)] == [success] * 3
