"""Transcripts and histories that the other side cannot carry, whole or in part."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from claude_agent_sdk import InMemorySessionStore
from pydantic_ai.messages import (
    BinaryContent,
    DocumentUrl,
    FilePart,
    ModelMessage,
    ModelRequest,
    NativeToolCallPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    UploadedFile,
    UserPromptPart,
    VideoUrl,
)

from cc_model.sessions import HandOverError, SessionNotFoundError, from_claude_code, to_claude_code

from .handed_over import CALL, DONE, IMAGE, question, response, results_of


def write_transcript(path: Path, *entries: dict[str, Any] | str) -> Path:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def user_entry(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    entry = {"type": "user", "uuid": str(number), "parentUuid": str(number - 1) if number else None}
    return {**entry, "message": {"role": "user", "content": content}, **fields}


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


async def test_links_files_and_tool_references_are_read(tmp_path: Path) -> None:
    """MODEL-131"""
    blocks = [
        {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "tool_reference", "tool_name": "WebSearch"},
    ]
    read = await from_claude_code(write_transcript(tmp_path / "session.jsonl", user_entry(0, blocks)))
    [part] = read.messages[0].parts
    assert isinstance(part, UserPromptPart)
    link, file, note = part.content
    assert isinstance(link, DocumentUrl) and link.url == "https://example.org/a.pdf"
    assert isinstance(file, UploadedFile) and file.file_id == "file_1"
    assert note == "[WebSearch is available]"


async def test_attachments_after_the_last_message_and_gaps_are_named(tmp_path: Path) -> None:
    """MODEL-131"""
    file = {"type": "attachment", "uuid": "6", "parentUuid": "5", "attachment": {"type": "file"}}
    read = await from_claude_code(write_transcript(tmp_path / "session.jsonl", user_entry(5, "See @file."), file))
    assert read.left_out == ("1 × attachment file", "1 × gap in the transcript, with all before it")


CALLED_TWICE: list[dict[str, Any]] = [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"message": {"role": "user"}}, "message 0 is not in Claude Code's form: KeyError('content')"),
        ({"message": "Hello."}, "message 0 is not in Claude Code's form"),
        ({"message": {"role": "user", "content": [{"text": "Hello."}]}}, "message 0 is not in Claude Code's form"),
        ({"timestamp": "yesterday"}, "message 0 is not in Claude Code's form"),
        ({"parentUuid": []}, "session session is not in Claude Code's form"),
    ],
)
async def test_an_entry_that_another_program_changed_is_named(
    entry: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """MODEL-136"""
    path = write_transcript(tmp_path / "session.jsonl", {**user_entry(0, "Hello."), **entry})
    with pytest.raises(HandOverError, match=re.escape(message)):
        await from_claude_code(path)


async def test_a_call_id_that_comes_again_is_named(tmp_path: Path) -> None:
    """MODEL-136: the API would refuse each request with it."""
    again = answer_entry(CALLED_TWICE)
    again |= {"uuid": "2", "parentUuid": "1", "message": {**again["message"], "id": "msg_2"}}
    path = write_transcript(tmp_path / "session.jsonl", user_entry(0, "Hello."), answer_entry(CALLED_TWICE), again)
    with pytest.raises(HandOverError, match="message 2: the call id 'toolu_1' comes more than once"):
        await from_claude_code(path)


async def test_a_session_id_is_suggested(tmp_path: Path) -> None:
    """MODEL-203"""
    written = await to_claude_code([question("How?"), DONE], tmp_path, config_dir=tmp_path)
    other = f"{written.session_id[:-1]}{'0' if written.session_id[-1] != '0' else '1'}"
    for session in (written.session_id[:8], written.session_id.upper(), other):
        with pytest.raises(SessionNotFoundError, match=rf"did you mean {written.session_id}\?"):
            await from_claude_code(session, config_dir=tmp_path)


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
    """MODEL-136"""
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
    with pytest.raises(HandOverError, match="session session has no messages"):
        await from_claude_code(write_transcript(path, {"type": "mode", "mode": "normal"}))
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


AUDIO = BinaryContent(b"x", media_type="audio/wav")
OTHER_FILE = UploadedFile("file_1", provider_name="openai")


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (question("Listen!", AUDIO), "messages.2: Unsupported binary content type"),
        (question("Look!", VideoUrl("https://example.org/a.mp4")), "messages.2: VideoUrl is not supported"),
        (question("Read!", OTHER_FILE), "messages.2: UploadedFile with `provider_name='openai'`"),
    ],
)
async def test_a_file_that_claude_cannot_read_is_named(last: ModelRequest, message: str, tmp_path: Path) -> None:
    """MODEL-136"""
    with pytest.raises(HandOverError, match=re.escape(message)):
        await to_claude_code([question("How?"), DONE, last], tmp_path, config_dir=tmp_path / "config")
    assert not (tmp_path / "config").exists()


async def test_blanks_and_files_that_claude_code_does_not_send_are_named(tmp_path: Path) -> None:
    """MODEL-130"""
    failed = results_of((CALL, ["a map", IMAGE]), outcome="failed")
    history = [question("How?", " "), response(CALL), failed, response(TextPart(" ")), question("And?"), DONE]
    session = await to_claude_code(history, tmp_path, config_dir=tmp_path)
    assert session.left_out == (
        "1 × answer with nothing but thinking or blanks",
        "1 × blank text",
        "1 × file in the result of a failed call",
    )


async def test_feedback_and_system_messages_come_back_as_user_texts(tmp_path: Path) -> None:
    """MODEL-130"""
    feedback = ModelRequest(parts=[RetryFeedbackPart("A number, please.", retry=RetryInfo(cause="model_retry"))])
    system = ModelRequest(parts=[SystemPromptPart("Be brief."), UserPromptPart("And?")])
    store = InMemorySessionStore()
    session = await to_claude_code([question("How?"), DONE, feedback, DONE, system], tmp_path, store=store)
    messages = (await from_claude_code(session.session_id, cwd=tmp_path, store=store)).messages
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    assert {type(part) for request in requests for part in request.parts} == {UserPromptPart}
    texts = str(requests)
    assert "A number, please." in texts
    assert "<system>" in texts


async def test_instructions_of_an_unanswered_request_come_once(tmp_path: Path) -> None:
    """MODEL-130"""
    request = ModelRequest(parts=[UserPromptPart("How?")], instructions="Be brief.")
    assert (await to_claude_code([request], tmp_path, config_dir=tmp_path)).system_prompt == "Be brief."


async def test_a_folder_or_id_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """MODEL-136"""
    history = [question("How?"), DONE]
    with pytest.raises(HandOverError, match="is not a folder"):
        await to_claude_code(history, tmp_path / "missing")
    written = await to_claude_code(history, tmp_path, config_dir=tmp_path)
    for store in (None, InMemorySessionStore()):
        with pytest.raises(HandOverError, match="session_id='x' is not a UUID"):
            await to_claude_code(history, tmp_path, session_id="x", config_dir=tmp_path, store=store)
    with pytest.raises(HandOverError, match=f"session {written.session_id} exists"):
        await to_claude_code(history, tmp_path, session_id=written.session_id, config_dir=tmp_path)


@pytest.mark.parametrize("form", ["{{{}}}", "urn:uuid:{}"])
async def test_an_id_in_a_form_that_the_cli_refuses_is_refused(form: str, tmp_path: Path) -> None:
    """MODEL-200"""
    with pytest.raises(HandOverError, match=r"is not a UUID: use str\(uuid4\(\)\)"):
        await to_claude_code(
            [question("Hello."), DONE], tmp_path, session_id=form.format(uuid4()), config_dir=tmp_path / "config"
        )


async def test_half_of_a_character_is_refused(tmp_path: Path) -> None:
    """MODEL-200: before a file is written."""
    with pytest.raises(HandOverError, match="half of a character"):
        await to_claude_code([question("a\ud83d"), DONE], tmp_path, config_dir=tmp_path / "config")
    assert not (tmp_path / "config").exists()
