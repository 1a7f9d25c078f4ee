"""Conversations handed over: begun in a program or in the terminal, continued on the other side, equal at the API."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import InMemorySessionStore
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
)

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel
from cc_model.sessions import from_claude_code, to_claude_code

from .handed_over import (
    CALL,
    DONE,
    IMAGE,
    OTHER_CALL,
    answer,
    ask_claude,
    compacted,
    config_of,
    conversation,
    forked,
    own_tool,
    png,
    question,
    response,
    results_of,
    run_tool,
    text_message,
    transcript_of,
    with_parallel_tools,
    with_sub_agent,
    with_tool,
)

LARGE = BinaryContent(png(2500, 10), media_type="image/png")
JPEG = BinaryContent(b"\xff\xd8\xff\xe0 an image", media_type="image/jpeg")
PDF = BinaryContent(b"%PDF-1.4\n%%EOF\n", media_type="application/pdf")
CLOSED: list[dict[str, Any]] = [{"role": "assistant", "content": [{"type": "text", "text": "No response requested."}]}]
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


@pytest.mark.worlds
@pytest.mark.parametrize(
    "name",
    [name if number % 4 == 0 else pytest.param(name, marks=pytest.mark.slow) for number, name in enumerate(HISTORIES)],
)
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


@pytest.mark.worlds
@pytest.mark.parametrize(
    "name", ["a b.c", "K\u00e4fer \u5de5", "Ka\u0308fer", "\U0001f41e", f"{'x' * 120}/\U0001f41e{'y' * 120}"], ids=ascii
)
async def test_the_terminal_finds_a_session_in_any_folder(
    name: str, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-206: also if it is entered by a symbolic link."""
    shared_api.respond = answer
    folder, link = tmp_path / name, tmp_path / "link"
    folder.mkdir(parents=True)
    link.symlink_to(folder)
    session = await to_claude_code([question("First?"), DONE], link, config_dir=config_of(shared_api))
    ask_claude(shared_api, folder, "And then?", "--resume", session.session_id)
    assert len(conversation(shared_api.requests[-1])) == 3


@pytest.mark.worlds
async def test_the_terminal_goes_on_with_claude_s_last_model(shared_api: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-205"""
    shared_api.respond = answer
    history = [
        question("First?"),
        ModelResponse(parts=[TextPart("One.")], model_name="claude-haiku-4-5", provider_name="claude-code"),
        question("Second?"),
        ModelResponse(parts=[TextPart("Two.")], model_name="claude-opus-5", provider_name="anthropic"),
        question("Third?"),
        ModelResponse(parts=[TextPart("Three.")], model_name="gpt-5", provider_name="openai"),
    ]
    session = await to_claude_code(history, tmp_path, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session.session_id)
    assert shared_api.requests[-1]["model"] == "claude-opus-5"


def with_local_command(api: LoopbackServer, folder: Path) -> str:
    session = with_tool(api, folder)
    ask_claude(api, folder, "/cost", "--resume", session)
    return ask_claude(api, folder, "Go on.", "--resume", session)


def with_thinking_only(api: LoopbackServer, folder: Path) -> str:
    return run_tool(api, folder, own_tool("Bash")[0])


def with_blank_text(api: LoopbackServer, folder: Path) -> str:
    return run_tool(
        api, folder, {"type": "text", "text": "\n\n"}, *own_tool("Bash", command="echo hi", description="x")
    )


@pytest.mark.worlds
@pytest.mark.parametrize(
    "begin",
    [
        with_sub_agent,
        compacted,
        *(
            pytest.param(begin, marks=pytest.mark.slow)
            for begin in (
                with_tool,
                with_parallel_tools,
                forked,
                with_local_command,
                with_thinking_only,
                with_blank_text,
            )
        ),
    ],
)
async def test_begun_in_the_terminal_and_continued_in_a_program(
    begin: Callable[[LoopbackServer, Path], str], model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-131, MODEL-132"""
    session = begin(shared_api, tmp_path)
    read = await from_claude_code(session, config_dir=config_of(shared_api))
    assert ("1 × note of Claude Code's own" in read.left_out) == (begin is with_thinking_only)
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session)
    in_terminal = conversation(shared_api.requests[-1])
    await Agent(model).run("And then?", message_history=read.messages)
    assert conversation(shared_api.requests[-1]) == in_terminal
    written = await to_claude_code(read.messages, tmp_path, config_dir=config_of(shared_api))
    ask_claude(shared_api, tmp_path, "And then?", "--resume", written.session_id)
    assert conversation(shared_api.requests[-1]) == in_terminal


@pytest.mark.worlds
async def test_sub_agents_have_conversations_of_their_own(shared_api: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-131"""
    read = await from_claude_code(with_sub_agent(shared_api, tmp_path), config_dir=config_of(shared_api))
    [(agent, messages)] = read.agents.items()
    assert [type(message) for message in messages] == [ModelRequest, ModelResponse]
    assert "Look there." in str(messages[0])
    results = [part for message in read.messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [result.metadata for result in results] == [{"agent_id": agent}]
    assert "1 × attachment environment" in read.left_out


@pytest.mark.worlds
async def test_a_compaction_leaves_the_summary_and_the_kept_messages(
    shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-131"""
    session = compacted(shared_api, tmp_path)
    read = await from_claude_code(transcript_of(shared_api, session))
    assert "continued from a previous conversation" in str(read.messages[0])
    assert "Begin." not in str(read.messages)
    assert read.messages[1].parts == [TextPart("Answered.")]


@pytest.mark.worlds
async def test_a_killed_session_has_claude_code_s_results_for_open_calls(
    model: ClaudeCodeModel, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MODEL-204, MODEL-132"""
    calls = [own_tool("Bash", command=command, description="x")[1] for command in ("echo hi", "sleep 2")]
    session = run_tool(shared_api, tmp_path, *calls)
    path = transcript_of(shared_api, session)
    # As if killed during the second call, while it wrote a line.
    lines = path.read_text("utf-8").splitlines(keepends=True)
    results = [number for number, line in enumerate(lines) if '"tool_result"' in line]
    path.write_text("".join(lines[: results[1]]) + lines[results[1]][:99], encoding="utf-8")
    read = await from_claude_code(path)
    assert {"1 × result of an interrupted call", "1 × unfinished last line"} <= {*read.left_out}
    await Agent(model).run("And then?", message_history=read.messages)
    ask_claude(shared_api, tmp_path, "And then?", "--resume", session)
    in_program, in_terminal = map(conversation, shared_api.requests[-2:])
    assert in_terminal == [*in_program[:-1], result_message(in_program), *CLOSED, text_message("user", "And then?")]
    assert "Tool call interrupted" in str(in_program)


async def test_other_tasks_go_on_while_a_long_session_is_read(tmp_path: Path) -> None:
    """MODEL-207"""
    store = InMemorySessionStore()  # no threads, for which a task would wait
    written = await to_claude_code([question("Hello."), DONE] * 20, tmp_path, store=store)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    read = await from_claude_code(written.session_id, cwd=tmp_path, store=store)
    counting.cancel()
    assert turns >= len(read.messages) == 40


def result_message(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last message's results without the text after them."""
    return {"role": "user", "content": messages[-1]["content"][:-1]}
