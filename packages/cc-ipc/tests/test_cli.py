"""The real CLI lists and calls tools through the bridge, offline and with a private home folder."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from cc_ipc import IPCSession, ToolHandler, ToolSchema, current_call

from .conftest import Tools, text

if TYPE_CHECKING:
    from cc_loopback import LoopbackServer

cc_loopback = pytest.importorskip("cc_loopback")
SDK = importlib.util.find_spec("claude_agent_sdk")
if SDK is None or SDK.origin is None:
    pytest.skip("the CLI comes with claude_agent_sdk", allow_module_level=True)

CLI = Path(SDK.origin).parent / "_bundled" / "claude"
pytestmark = [pytest.mark.worlds, pytest.mark.skipif(not CLI.exists(), reason="this SDK brings no CLI")]

LIMIT = 100.0
"""Seconds for a CLI run, which takes about 1 s on an idle machine."""

OPTIONS = [
    *("--print", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
    *("--model", "claude-sonnet-5", "--tools", "", "--strict-mcp-config", "--allowedTools", "mcp__t__*"),
]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAIBpfZFQAAAAABJRU5ErkJggg=="

Message = dict[str, Any]


class Run:
    """A CLI process with tools behind a bridge."""

    def __init__(self, process: asyncio.subprocess.Process, api: LoopbackServer) -> None:
        self.process = process
        self.api = api

    async def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def until(self, kind: str) -> Message:
        """Return the next message with a type."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            message = json.loads(line)
            if message["type"] == kind:
                return message
        raise EOFError(kind)

    async def ask(self) -> Message:
        """Run a turn and return the result message."""
        await self.send({"type": "user", "message": {"role": "user", "content": "Go."}})
        return await self.until("result")

    def results(self) -> dict[str, Message]:
        """Return the tool results that the API received, by call id."""
        blocks = [block for message in self.api.requests[-1]["messages"] for block in _blocks(message["content"])]
        return {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}


def _blocks(content: Any) -> list[Message]:
    return cast("list[Message]", content) if isinstance(content, list) else []


def schemas_of(handlers: dict[str, ToolHandler]) -> list[ToolSchema]:
    # The CLI calls only read-only tools in parallel.
    return [
        {"name": name, "description": "", "input_schema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        for name in handlers
    ]


@contextlib.asynccontextmanager
async def cli(folder: Path, handlers: dict[str, ToolHandler], calls: list[tuple[str, Message]]) -> AsyncGenerator[Run]:
    """Yield a CLI whose model makes these calls, and ends the turn after a result."""

    def respond(body: Message) -> str | list[Message]:
        if any(block["type"] == "tool_result" for message in body["messages"] for block in _blocks(message["content"])):
            return "done"
        return [
            {"type": "tool_use", "id": f"toolu_{number}", "name": f"mcp__t__{name}", "input": arguments}
            for number, (name, arguments) in enumerate(calls)
        ]

    with cc_loopback.LoopbackServer(respond) as api:
        async with asyncio.timeout(LIMIT), IPCSession(handlers, schemas_of(handlers), folder=folder) as session:
            config = json.dumps({"mcpServers": {"t": session.mcp_server_config()}})
            process = await asyncio.create_subprocess_exec(
                *(CLI, *OPTIONS, "--mcp-config", config),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env={**os.environ, **api.env()},
                cwd=folder,
                limit=1 << 25,
            )
            try:
                yield Run(process, api)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.communicate()


async def test_the_cli_gets_every_kind_of_result_and_calls_in_parallel(folder: Path, tools: Tools) -> None:
    """IPC-P-37, IPC-P-38, IPC-D-17, IPC-P-21, IPC-P-33: text, images, errors, 5 MB; each call has the model's id.

    No `meet` call returns before all eight have started.
    """
    ids: dict[str, str | None] = {}

    async def weather(arguments: dict[str, object]) -> dict[str, object]:
        call = current_call()
        assert call is not None
        ids[str(arguments["city"])] = call.tool_use_id
        return text(f"It is sunny in {arguments['city']}.")

    async def image(arguments: dict[str, object]) -> dict[str, object]:
        return {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}

    async def bad(arguments: dict[str, object]) -> dict[str, object]:
        return {**text("not today"), "isError": True}

    async def large(arguments: dict[str, object]) -> dict[str, object]:
        return text("a" * 5_000_000)

    handlers = {**tools.handlers, "weather": weather, "image": image, "bad": bad, "large": large}
    calls: list[tuple[str, Message]] = [("weather", {"city": "Zürich"})]
    calls += [(name, {}) for name in ("image", "fail", "bad", "large")] + [("meet", {"parties": 8})] * 8
    async with cli(folder, handlers, calls) as run:
        result = await run.ask()
        results = run.results()
    assert (result["subtype"], result["result"]) == ("success", "done")
    assert results["toolu_0"]["content"] == [{"type": "text", "text": "It is sunny in Zürich."}]
    assert results["toolu_1"]["content"][0]["source"]["data"] == PIXEL
    assert (results["toolu_2"]["content"], results["toolu_2"]["is_error"]) == ("ValueError: no such city", True)
    assert (results["toolu_3"]["content"], results["toolu_3"]["is_error"]) == ("not today", True)
    assert "5,000,000 characters" in str(results["toolu_4"]["content"])  # the CLI writes it to a file
    assert [results[f"toolu_{number}"]["content"] for number in range(5, 13)] == [text("met")["content"]] * 8
    assert ids == {"Zürich": "toolu_0"}


@pytest.mark.parametrize("end", ["interrupted", "killed"])
async def test_an_interrupted_or_killed_cli_cancels_the_tool(folder: Path, tools: Tools, end: str) -> None:
    """IPC-P-32, IPC-P-36, IPC-P-37, IPC-P-40: with a killed CLI, the bridge ends."""
    async with cli(folder, {"wait": tools.wait}, [("wait", {})]) as run:
        await run.send({"type": "user", "message": {"role": "user", "content": "Go."}})
        await tools.started.wait()
        if end == "killed":
            run.process.kill()
        else:
            await run.send({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}})
        async with asyncio.timeout(10):
            await tools.cancelled.wait()
        if end == "interrupted":
            assert (await run.until("result"))["subtype"] == "error_during_execution"
