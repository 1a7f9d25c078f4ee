"""Conversations for the tests of the hand-over, asked in the terminal, and compared at the API."""

import json
import os
import struct
import subprocess
import zlib
from pathlib import Path
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cc_loopback import LoopbackServer
from cc_session.internals import bundled_cli


def png(width: int, height: int) -> bytes:
    """Return a black image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress((width + 1) * height * b"\0"))
    return b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")


IMAGE = BinaryContent(png(1, 1), media_type="image/png")
CALL = ToolCallPart("weather", {"city": "Paris"}, tool_call_id="toolu_1")
OTHER_CALL = ToolCallPart("weather", {"city": "Rome"}, tool_call_id="toolu_2")


def question(*content: Any) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content[0] if len(content) == 1 else content)])


def response(*parts: Any) -> ModelResponse:
    return ModelResponse(parts=[*parts], model_name="claude-sonnet-5", provider_name="claude-code")


def results_of(*results: tuple[ToolCallPart, Any], **fields: Any) -> ModelRequest:
    parts = [ToolReturnPart(c.tool_name, value, tool_call_id=c.tool_call_id, **fields) for c, value in results]
    return ModelRequest(parts=parts)


DONE = response(TextPart("Done."))


def own_tool(name: str, **arguments: Any) -> list[dict[str, Any]]:
    return [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
        {"type": "tool_use", "name": name, "input": arguments},
    ]


def run_tool(api: LoopbackServer, folder: Path, *call: dict[str, Any]) -> str:
    """Begin a session in which Claude Code calls a tool, and answers."""

    def respond(body: dict[str, Any]) -> Any:
        if "Look there." in str(body["messages"][0]):
            return "The sub-agent's answer."
        return call if len(api.requests) == first else "Answered."

    first = len(api.requests) + 1
    api.respond = respond
    return ask_claude(api, folder, "Begin.", "--allowed-tools=Bash,Agent")


def with_tool(api: LoopbackServer, folder: Path) -> str:
    return run_tool(api, folder, *own_tool("Bash", command="echo hi", description="Say hi"))


def with_parallel_tools(api: LoopbackServer, folder: Path) -> str:
    calls = [own_tool("Bash", command=f"echo {n}", description="Say it")[1] for n in (1, 2)]
    return run_tool(api, folder, *calls)


def with_sub_agent(api: LoopbackServer, folder: Path) -> str:
    task = {
        "description": "Look",
        "prompt": "Look there.",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    return run_tool(api, folder, *own_tool("Agent", **task))


def compacted(api: LoopbackServer, folder: Path) -> str:
    session = with_tool(api, folder)
    ask_claude(api, folder, "/compact", "--resume", session)
    return ask_claude(api, folder, "Go on.", "--resume", session)


def forked(api: LoopbackServer, folder: Path) -> str:
    session = with_tool(api, folder)
    ask_claude(api, folder, "The other branch.", "--resume", session)
    return ask_claude(api, folder, "This branch.", "--resume", session, "--fork-session")


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


def transcript_of(api: LoopbackServer, session: str) -> Path:
    [path] = Path(config_of(api)).glob(f"projects/*/{session}.jsonl")
    return path


def answer(body: dict[str, Any]) -> str:
    return "Answered."


def ask_claude(api: LoopbackServer, folder: Path, prompt: str, *options: str) -> str:
    """Return what the CLI prints for a prompt in a session; it goes on to the last request."""
    done = subprocess.run(
        [bundled_cli(), "-p", prompt, "--output-format", "json", "--tools", "Agent,Bash", *options],
        env={**os.environ, **api.env(), "CLAUDE_CODE_MAX_RETRIES": "0"},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["session_id"]


def config_of(api: LoopbackServer) -> str:
    return api.env()["CLAUDE_CONFIG_DIR"]


def text_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def conversation(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a request's messages in one form, without Claude Code's reminders."""
    result: list[dict[str, Any]] = []
    for message in body["messages"]:
        blocks = [*map(plain, filter(is_said, as_list(message["content"])))]
        if message["role"] == "system" or not blocks:
            continue
        if result and result[-1]["role"] == message["role"]:
            result[-1]["content"] += blocks
        else:
            result.append({"role": message["role"], "content": blocks})
    for message in result:  # results of parallel calls come in any order
        if message["role"] == "user":
            message["content"].sort(key=result_id)
    return result


def result_id(block: dict[str, Any]) -> str:
    return block.get("tool_use_id", "~")


def as_list(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_said(block: dict[str, Any]) -> bool:
    return not block.get("text", "").startswith("<system-reminder>")


def plain(block: dict[str, Any]) -> dict[str, Any]:
    block = {name: value for name, value in block.items() if name not in ("cache_control", "is_error") or value is True}
    if block["type"] == "web_search_tool_result":
        block["content"] = [{name: page[name] for name in page if page[name] is not None} for page in block["content"]]
    if block["type"] == "text":
        block["text"] = block["text"].rstrip("\n")
    if block["type"] == "tool_result":
        block["content"] = [plain(item) for item in as_list(block.get("content") or "") if item.get("text") != ""]
    return block
