"""Conversations handed over: begun in a program or in the terminal, continued on the other side, equal at the API."""

import json
import os
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel
from cc_model.sessions import from_claude_code, to_claude_code
from cc_session.internals import bundled_cli


def png(width: int, height: int) -> bytes:
    """Return a black image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = chunk(b"IDAT", zlib.compress((width + 1) * height * b"\0"))
    return b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")


IMAGE = BinaryContent(png(1, 1), media_type="image/png")
LARGE = BinaryContent(png(2500, 10), media_type="image/png")
JPEG = BinaryContent(b"\xff\xd8\xff\xe0 an image", media_type="image/jpeg")
PDF = BinaryContent(b"%PDF-1.4\n%%EOF\n", media_type="application/pdf")
CALL = ToolCallPart("weather", {"city": "Paris"}, tool_call_id="toolu_1")
OTHER_CALL = ToolCallPart("weather", {"city": "Rome"}, tool_call_id="toolu_2")


CLOSED: list[dict[str, Any]] = [{"role": "assistant", "content": [{"type": "text", "text": "No response requested."}]}]


def asked(*content: Any) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content[0] if len(content) == 1 else content)])


def answered(*parts: Any) -> ModelResponse:
    return ModelResponse(parts=[*parts], model_name="claude-sonnet-5", provider_name="claude-code")


def returned(*results: tuple[ToolCallPart, Any], **fields: Any) -> ModelRequest:
    parts = [ToolReturnPart(c.tool_name, value, tool_call_id=c.tool_call_id, **fields) for c, value in results]
    return ModelRequest(parts=parts)


DONE = answered(TextPart("Done."))
THINKING = ThinkingPart("Let me see.", signature="c2lnbmVk", provider_name="claude-code")
REDACTED = ThinkingPart("", id="redacted_thinking", signature="c2VjcmV0", provider_name="anthropic")
HISTORIES: dict[str, list[ModelMessage]] = {
    "text": [asked("Where? “Здравствуйте” \u2028 /clear @file"), DONE, asked("And now?"), DONE],
    "tool": [asked("How is it?"), answered(TextPart("I look."), CALL), returned((CALL, "sunny")), DONE],
    "tools": [asked("Both?"), answered(CALL, OTHER_CALL), returned((CALL, {"c": 20}), (OTHER_CALL, ["a", 1])), DONE],
    "failures": [
        asked("How is it?"),
        answered(CALL),
        returned((CALL, "no such city"), outcome="failed"),
        answered(OTHER_CALL),
        returned((OTHER_CALL, "Not there."), outcome="retried"),
        DONE,
    ],
    "images": [
        asked("What is it?", IMAGE, ImageUrl("https://example.org/a.png")),
        answered(CALL),
        returned((CALL, ["a map", IMAGE])),
        DONE,
    ],
    "large image": [asked("What is it?", LARGE, JPEG), DONE],
    "documents": [asked("Sum it up.", PDF), DONE],
    "thinking": [asked("How is it?"), answered(THINKING, REDACTED, CALL), returned((CALL, "sunny")), DONE],
    "unanswered": [asked("How is it?"), answered(CALL), returned((CALL, "sunny"))],
}


@pytest.mark.parametrize("name", HISTORIES)
async def test_begun_in_a_program_and_continued_in_the_terminal(
    name: str, model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-110, MODEL-112"""
    history = HISTORIES[name]
    shared_api.respond = lambda body: "Answered."
    session = await to_claude_code(history, tmp_path, config_dir=config_of(shared_api))
    assert session.left_out == ()
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session.session_id)
    agent = Agent(model)
    await agent.run("And then?", message_history=history)
    in_terminal, in_program = map(conversation, shared_api.requests)
    if name == "unanswered":  # the CLI closes the gap
        in_program[-1:] = [result_message(in_program), *CLOSED, text_message("user", "And then?")]
    assert in_terminal == in_program

    back = await from_claude_code(session.session_id, config_dir=config_of(shared_api))
    assert len(back.messages) == len(history) + 2 + (name == "unanswered")
    await agent.run("Why?", message_history=back.messages)
    expected = [*in_terminal, text_message("assistant", "Answered."), text_message("user", "Why?")]
    assert conversation(shared_api.requests[-1]) == expected


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
        return call if conversation(body)[-1] == text_message("user", "Begin.") else "Answered."

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


@pytest.mark.parametrize("begin", [with_tool, with_parallel_tools, with_sub_agent, compacted, forked])
async def test_begun_in_the_terminal_and_continued_in_a_program(
    begin: Callable[[LoopbackServer, Path], str], model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-111, MODEL-112"""
    session = begin(shared_api, tmp_path)
    read = await from_claude_code(session, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session)
    in_terminal = conversation(shared_api.requests[-1])
    await Agent(model).run("And then?", message_history=read.messages)
    assert conversation(shared_api.requests[-1]) == in_terminal
    written = await to_claude_code(read.messages, tmp_path, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", written.session_id)
    assert conversation(shared_api.requests[-1]) == in_terminal


def ask_claude(api: LoopbackServer, folder: Path, prompt: str, *options: str) -> str:
    """Return what the CLI prints for a prompt in a session; it goes on to the last request."""
    done = subprocess.run(
        [bundled_cli(), "-p", prompt, "--output-format", "json", *options],
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


def result_message(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last message's results without the text after them."""
    return {"role": "user", "content": messages[-1]["content"][:-1]}


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
        message["content"].sort(key=lambda block: block.get("tool_use_id", "~"))
    return result


def as_list(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_said(block: dict[str, Any]) -> bool:
    return not block.get("text", "").startswith("<system-reminder>")


def plain(block: dict[str, Any]) -> dict[str, Any]:
    block = {name: value for name, value in block.items() if name not in ("cache_control", "is_error") or value is True}
    if block["type"] == "text":
        block["text"] = block["text"].rstrip("\n")
    if block["type"] == "tool_result":
        block["content"] = [plain(item) for item in as_list(block.get("content") or "") if item.get("text") != ""]
    return block
