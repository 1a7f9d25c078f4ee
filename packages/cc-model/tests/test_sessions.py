"""Conversations handed over: begun in a program or in the terminal, continued on the other side, equal at the API."""

import json
import os
import re
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel
from cc_model.sessions import HandOverError, SessionNotFoundError, from_claude_code, to_claude_code
from cc_session import Session, sealed_options
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


def question(*content: Any) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(content[0] if len(content) == 1 else content)])


def response(*parts: Any) -> ModelResponse:
    return ModelResponse(parts=[*parts], model_name="claude-sonnet-5", provider_name="claude-code")


def results_of(*results: tuple[ToolCallPart, Any], **fields: Any) -> ModelRequest:
    parts = [ToolReturnPart(c.tool_name, value, tool_call_id=c.tool_call_id, **fields) for c, value in results]
    return ModelRequest(parts=parts)


DONE = response(TextPart("Done."))
THINKING = ThinkingPart("Let me see.", signature="c2lnbmVk", provider_name="claude-code")
REDACTED = ThinkingPart("", id="redacted_thinking", signature="c2VjcmV0", provider_name="anthropic")
SEARCH = NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="srvtoolu_1", provider_name="anthropic")
PAGE = {"type": "web_search_result", "url": "https://example.org", "title": "x", "encrypted_content": "eA=="}
FOUND_PAGES = NativeToolReturnPart("web_search", [PAGE], tool_call_id="srvtoolu_1", provider_name="anthropic")
DONE_TOO = question("And now?")
HISTORIES: dict[str, list[ModelMessage]] = {
    "text": [question("Where? “Здравствуйте” \u2028 /clear @file"), DONE, question("And now?"), DONE],
    "tool": [question("How is it?"), response(TextPart("I look."), CALL), results_of((CALL, "sunny")), DONE],
    "tools": [
        question("Both?"),
        response(CALL, OTHER_CALL),
        results_of((CALL, {"c": 20}), (OTHER_CALL, ["a", 1])),
        DONE,
    ],
    "failures": [
        question("How is it?"),
        response(CALL),
        results_of((CALL, "no such city"), outcome="failed"),
        response(OTHER_CALL),
        results_of((OTHER_CALL, "Not there."), outcome="retried"),
        DONE,
    ],
    "images": [
        question("What is it?", IMAGE, ImageUrl("https://example.org/a.png")),
        response(CALL),
        results_of((CALL, ["a map", IMAGE])),
        DONE,
    ],
    "large image": [question("What is it?", LARGE, JPEG), DONE],
    "documents": [question("Sum it up.", PDF), DONE],
    "thinking": [question("How is it?"), response(THINKING, REDACTED, CALL), results_of((CALL, "sunny")), DONE],
    "native tools": [
        question("Search!"),
        response(TextPart("I search."), SEARCH, FOUND_PAGES, TextPart("Done.")),
        DONE_TOO,
        DONE,
    ],
    "unanswered": [question("How is it?"), response(CALL), results_of((CALL, "sunny"))],
}


@pytest.mark.parametrize("name", HISTORIES)
async def test_begun_in_a_program_and_continued_in_the_terminal(
    name: str, model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-130, MODEL-132"""
    history = HISTORIES[name]
    shared_api.respond = answer
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
    """MODEL-131, MODEL-132"""
    session = begin(shared_api, tmp_path)
    read = await from_claude_code(session, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session)
    in_terminal = conversation(shared_api.requests[-1])
    await Agent(model).run("And then?", message_history=read.messages)
    assert conversation(shared_api.requests[-1]) == in_terminal
    written = await to_claude_code(read.messages, tmp_path, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", written.session_id)
    assert conversation(shared_api.requests[-1]) == in_terminal


async def test_one_conversation_on_both_sides_in_turn(
    model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-132: program, terminal, program, terminal."""
    agent = Agent(model, system_prompt="Know Paris.", instructions="Be brief.", tools=[weather])
    config = config_of(shared_api)
    first = await agent.run("How is it in Paris?")
    session = await to_claude_code(first.all_messages(), tmp_path, config_dir=config)
    assert session.system_prompt == "Know Paris.\n\nBe brief."
    assert session.left_out == ("the system prompt (22 characters)",)
    shared_api.respond = answer
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session.session_id)
    second = await from_claude_code(session.session_id, config_dir=config)
    third = await agent.run("Why?", message_history=second.messages)
    last = await to_claude_code(third.all_messages(), tmp_path, config_dir=config)
    ask_claude(shared_api, tmp_path, "Who?", "--resume", last.session_id, "--append-system-prompt", last.system_prompt)
    body = shared_api.requests[-1]
    prompts = [block["text"] for message in conversation(body) for block in message["content"] if "text" in block]
    assert [text for text in prompts if text.endswith("?")] == ["How is it in Paris?", "And then?", "Why?", "Who?"]
    calls = [block for message in conversation(body) for block in message["content"] if block["type"] == "tool_use"]
    assert [call["name"] for call in calls] == ["weather"]
    assert "Be brief." in json.dumps(body["system"])


def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


async def test_sub_agents_have_conversations_of_their_own(shared_api: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-131"""
    read = await from_claude_code(with_sub_agent(shared_api, tmp_path), config_dir=config_of(shared_api))
    [(agent, messages)] = read.agents.items()
    assert [type(message) for message in messages] == [ModelRequest, ModelResponse]
    assert "Look there." in str(messages[0])
    results = [part for message in read.messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [result.metadata for result in results] == [{"agent_id": agent}]
    assert "1 × attachment environment" in read.left_out


async def test_a_compaction_leaves_the_summary_and_the_kept_messages(
    shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-131"""
    session = compacted(shared_api, tmp_path)
    read = await from_claude_code(transcript_of(shared_api, session))
    assert "continued from a previous conversation" in str(read.messages[0])
    assert "Begin." not in str(read.messages)
    assert read.messages[1].parts == [TextPart("Answered.")]


async def test_after_a_rewind_the_last_branch_counts(
    model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-131, MODEL-132"""
    shared_api.respond = answer
    options = sealed_options(cwd=tmp_path, env=shared_api.env())
    del options.extra_args["no-session-persistence"]
    async with await Session.open(options) as session:
        await session.run("Begin.")
        await session.run("The wrong way.")
        assert session.last_user_uuid is not None
        assert await session.rewind(session.last_user_uuid)
        turn = await session.run("The right way.")
    read = await from_claude_code(turn.session_id, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", turn.session_id)
    await Agent(model).run("And then?", message_history=read.messages)
    in_terminal, in_program = map(conversation, shared_api.requests[-2:])
    assert in_program == in_terminal
    assert "The wrong way." not in str(in_program)


def transcript_of(api: LoopbackServer, session: str) -> Path:
    [path] = Path(config_of(api)).glob(f"projects/*/{session}.jsonl")
    return path


def write_transcript(path: Path, *entries: dict[str, Any] | str) -> Path:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def user_entry(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    entry = {"type": "user", "uuid": str(number), "parentUuid": str(number - 1) if number else None, **fields}
    return {**entry, "message": {"role": "user", "content": content}}


async def test_prompts_written_during_a_turn_and_notes_are_read(tmp_path: Path) -> None:
    """MODEL-131"""
    queued = {"type": "queued_command", "prompt": "Wait!", "commandMode": "prompt"}
    error = {"role": "assistant", "id": "msg_1", "content": [{"type": "text", "text": "API Error"}]}
    path = write_transcript(
        tmp_path / "session.jsonl",
        {"type": "mode", "mode": "normal"},
        user_entry(0, "Hello."),
        {"type": "attachment", "uuid": "1", "parentUuid": "0", "attachment": queued},
        user_entry(2, "A note.", isMeta=True),
        {"type": "system", "subtype": "local_command", "uuid": "3", "parentUuid": "2"},
        {"type": "assistant", "uuid": "4", "parentUuid": "3", "isApiErrorMessage": True, "message": error},
        user_entry(5, "Again."),
    )
    read = await from_claude_code(path)
    parts: list[Any] = [*read.messages[0].parts]
    assert [part.content for part in parts] == ["Hello.", "Wait!", "A note.", "Again."]
    assert read.left_out == ("1 × API error message", "1 × entry local_command")


async def test_details_without_a_place_are_named(tmp_path: Path) -> None:
    """MODEL-131"""
    source = {"type": "text", "media_type": "text/plain", "data": "Text."}
    path = write_transcript(
        tmp_path / "session.jsonl",
        user_entry(0, [{"type": "document", "source": source, "title": "Title"}]),
        answer_entry([{"type": "text", "text": "Text.", "citations": [{"type": "char_location", "cited_text": "T"}]}]),
    )
    read = await from_claude_code(path)
    assert read.left_out == ("1 × text with citations of a document", "1 × title or setting of a document")


def answer_entry(content: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "role": "assistant", "model": "claude-sonnet-5", "content": content}
    return {"type": "assistant", "uuid": "1", "parentUuid": "0", "message": message}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([{"type": "video"}], "message 0.content.0: pydantic-ai has no content of the type 'video'"),
        ([{"type": "tool_result", "tool_use_id": "x", "content": "y"}], "a result for the call 'x', which is not"),
        (
            [{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "new"}}],
            "message 0.content.1: pydantic-ai has no content of the type 'image'",
        ),
    ],
)
async def test_a_block_that_pydantic_ai_lacks_is_named(content: Any, message: str, tmp_path: Path) -> None:
    """MODEL-136"""
    path = write_transcript(tmp_path / "session.jsonl", user_entry(0, content))
    with pytest.raises(HandOverError, match=re.escape(message)):
        await from_claude_code(path)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"type": "fallback"}, "message msg_1.content.1: pydantic-ai has no part for the type 'fallback'"),
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            "message msg_1: pydantic-ai leaves out a server tool's call without result",
        ),
    ],
)
async def test_an_answer_that_pydantic_ai_would_cut_is_named(
    block: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """MODEL-110"""
    entry = answer_entry([{"type": "text", "text": "Hello."}, block])
    path = write_transcript(tmp_path / "session.jsonl", user_entry(0, "Hello."), entry)
    with pytest.raises(HandOverError, match=re.escape(message)):
        await from_claude_code(path)


async def test_a_damaged_or_missing_transcript_is_named(tmp_path: Path) -> None:
    """MODEL-136"""
    path = write_transcript(tmp_path / "session.jsonl", user_entry(0, "Hello."), '{"type": "us')
    with pytest.raises(HandOverError, match="line 2 is not JSON"):
        await from_claude_code(path)
    with pytest.raises(HandOverError, match="line 1 is not a JSON object"):
        await from_claude_code(write_transcript(path, "[]"))
    with pytest.raises(SessionNotFoundError, match="neither a session id nor a transcript file"):
        await from_claude_code("nothing.jsonl")
    with pytest.raises(SessionNotFoundError, match="has no transcript in"):
        await from_claude_code(str(uuid4()), config_dir=tmp_path)


OTHER_SEARCH = NativeToolCallPart("web_search", {}, provider_name="openai")


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([], "the history is empty"),
        ([question("How?"), response(CALL)], "the history ends in calls without results: weather"),
        ([question("How?"), response(CALL), question("And?"), DONE], "without `tool_result` blocks"),
        ([question("How?"), response(FilePart(IMAGE))], "messages.1.parts.0: Claude has no files in its answers"),
        (
            [question("How?"), response(TextPart("I search."), OTHER_SEARCH)],
            "messages.1.parts.1: only openai understands this NativeToolCallPart",
        ),
    ],
)
async def test_a_history_that_claude_code_cannot_carry_is_named(
    history: list[ModelMessage], message: str, tmp_path: Path
) -> None:
    """MODEL-136"""
    with pytest.raises(HandOverError, match=re.escape(message)):
        await to_claude_code(history, tmp_path, config_dir=tmp_path / "config")
    assert not (tmp_path / "config").exists()


async def test_a_folder_or_id_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """MODEL-136"""
    history = [question("How?"), DONE]
    with pytest.raises(HandOverError, match="is not a folder"):
        await to_claude_code(history, tmp_path / "missing")
    written = await to_claude_code(history, tmp_path, config_dir=tmp_path)
    with pytest.raises(HandOverError, match="session_id='x' is not a UUID"):
        await to_claude_code(history, tmp_path, session_id="x", config_dir=tmp_path)
    with pytest.raises(HandOverError, match=f"session {written.session_id} exists"):
        await to_claude_code(history, tmp_path, session_id=written.session_id, config_dir=tmp_path)


def answer(body: dict[str, Any]) -> str:
    return "Answered."


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
