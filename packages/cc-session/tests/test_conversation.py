"""Messages in, events out: API requests, and readers of answers."""

import asyncio
import base64
from random import Random
from typing import Any

import anyio
import pytest
from claude_agent_sdk import Message, ResultMessage

from cc_loopback import LoopbackServer
from cc_session import Session, SessionBusyError, Timeouts
from cc_types import ControlRequestError, ControlTimeoutError, JsonValue

from .conftest import FakeCLI, all_raise, ask, echo, say, until

MODEL = "claude-sonnet-5"
PDF = base64.b64encode(b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").decode()
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def result_of(messages: list[Message]) -> ResultMessage:
    assert isinstance(messages[-1], ResultMessage)
    return messages[-1]


def received(server: LoopbackServer) -> list[tuple[str, Any]]:
    """Role and content of the last request's messages, without cache marks."""
    return [(message["role"], _plain(message["content"])) for message in server.requests[-1]["messages"]]


def _plain(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in content]


async def test_history_reaches_the_api_unchanged_and_in_order(server: LoopbackServer, session: Session) -> None:
    """SES-17."""
    history: list[tuple[str, list[dict[str, JsonValue]]]] = [
        ("user", [
            {"type": "text", "text": "Look:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
        ]),
        ("assistant", [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
            {"type": "text", "text": "I shall ask."},
            {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"deep": {"list": [1, None, "ä"]}}},
        ]),
        ("user", [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "A pixel."}]},
        ]),
        ("assistant", [{"type": "text", "text": "It is a pixel."}]),
    ]  # fmt: skip
    for role, content in history:
        if role == "user":
            await session.add_user(content)
        else:
            await session.add_assistant(content, model=MODEL)

    await ask(session, "Sure?")

    assert received(server) == [*history, ("user", [{"type": "text", "text": "Sure?"}])]
    assert len(server.requests) == 1


async def test_text_is_data(server: LoopbackServer, session: Session) -> None:
    """SES-11."""
    for text in ("@/etc/hostname", "/clear", "/cost now", "!ls", "# note"):
        first = await session.add_user(text)
        await session.add_assistant("Yes?", model=MODEL)

        await ask(session, f"{text}, then")

        assert received(server) == [
            ("user", [{"type": "text", "text": text}]),
            ("assistant", [{"type": "text", "text": "Yes?"}]),
            ("user", [{"type": "text", "text": f"{text}, then"}]),
        ]
        assert await session.rewind(first)


async def test_messages_turns_and_rewinds_in_any_order_make_one_conversation(
    server: LoopbackServer, session: Session
) -> None:
    """SES-10, SES-17, SES-64."""
    server.respond = echo
    assert not await session.rewind("00000000-0000-4000-8000-000000000000")
    for seed in range(12):
        random = Random(seed)
        expected: list[tuple[str, str | None]] = []  # texts, and the uuids of user messages
        for number in range(8):
            text, uuids = f"Message {number}", [uuid for _, uuid in expected]
            match random.choice(("ask", "ask", "user", "pair", "rewind", "rewind", "cancel", "reset")):
                case "ask":
                    await ask(session, text)
                    expected.append((text, session.last_user_uuid))
                    texts = [block["text"].strip() for _, content in received(server) for block in content]
                    assert texts == [text for text, _ in expected], seed
                    expected.append((text, None))
                case "user":
                    expected.append((text, await session.add_user(text)))
                case "pair":
                    expected += [(text, await session.add_user(text)), (f"Answer {number}", None)]
                    await session.add_assistant(f"Answer {number}", model=MODEL)
                case "rewind" if any(uuids):
                    uuid = random.choice([uuid for uuid in uuids if uuid is not None])
                    assert await session.rewind(uuid), seed
                    del expected[uuids.index(uuid) :]
                case "cancel":
                    turn = ask(session, text)
                    await asyncio.sleep(random.random() / 50)
                    turn.cancel()
                    await asyncio.wait({turn})
                    if (uuid := session.last_user_uuid) is not None and uuid not in uuids:
                        await session.rewind(uuid)  # false if the message was never sent
                case _:
                    await session.reset()
                    expected.clear()
        await session.reset()


async def test_a_turn_rewound_at_any_moment_leaves_the_session_idle(
    server: LoopbackServer, session: Session, slow_api: Any
) -> None:
    """SES-10: also without a reader to the end."""
    for milliseconds in (0, 1, 2, 3, 5, 100):
        server.respond = slow_api
        abandoned = ask(session, "Never mind.")
        await until(lambda: session.state == "busy", pause=0)
        await anyio.sleep(milliseconds / 1000)  # so that the rewind meets the turn at another point

        assert await session.rewind(session.last_user_uuid or "")

        assert session.state == "idle"
        server.respond = say("Fresh.")
        assert result_of(await ask(session, "A new start.")).result == "Fresh."
        assert received(server) == [("user", [{"type": "text", "text": "A new start."}])]
        assert await session.rewind(session.last_user_uuid or "")
        assert result_of(await abandoned).result != "Fresh."


async def test_a_second_question_is_refused_and_the_first_is_answered(server: LoopbackServer, session: Session) -> None:
    """SES-08."""
    server.respond = echo
    first = ask(session, "One")
    await until(lambda: session.state == "busy", pause=0)

    others = session.add_user("Three"), session.add_assistant("Four", model=MODEL)
    await all_raise(SessionBusyError, ask(session, "Two"), session.run("Two"), *others, match="one at a time")

    assert result_of(await first).result == "One"
    assert result_of(await ask(session, "Five")).result == "Five"
    assert [content[0]["text"] for _, content in received(server)] == ["One", "One", "Five"]


NOT_CONTENT: list[Any] = [None, 1, {}, b"text", ("text",), ["text"], [{"text": "no type"}]]
SAYING_NOTHING: list[Any] = ["", " \n", "\u00a0", "\ufeff", [], [{"type": "text", "text": "\t"}]]


@pytest.mark.parametrize(
    ("content", "error"),
    [*((value, TypeError) for value in NOT_CONTENT), *((value, ValueError) for value in SAYING_NOTHING)],
)
async def test_a_prompt_that_says_nothing_is_refused_before_it_is_sent(
    server: LoopbackServer, session: Session, content: Any, error: type[Exception]
) -> None:
    """SES-137: the CLI would answer it in its own words, ignore it, or wait for ever."""
    await all_raise(error, session.run(content), session.add_user(content))
    assert session.state == "idle"
    assert server.requests == []


async def test_content_that_is_no_json_is_refused_and_nothing_has_happened(
    server: LoopbackServer, session: Session
) -> None:
    content: Any = [{"type": "image", "source": b"bytes"}]
    calls = session.add_user(content), session.add_assistant(content, model=MODEL), ask(session, content)
    await all_raise(TypeError, *calls, match="not JSON serializable")

    assert session.state == "idle"
    assert not result_of(await ask(session, "Hello.")).is_error
    assert received(server) == [("user", [{"type": "text", "text": "Hello."}])]


async def test_messages_that_are_written_at_once_are_taken_one_after_another(
    server: LoopbackServer, session: Session
) -> None:
    """SES-17."""
    texts = [f"Message {number}" for number in range(5)]
    async with asyncio.TaskGroup() as tasks:
        for text in texts:
            tasks.create_task(session.add_user(text))

    await ask(session, "Last message")

    # The API joins successive messages with the same role, and so does the CLI, which ends each with a line feed.
    [(_, content)] = received(server)
    assert sorted(block["text"].strip() for block in content) == ["Last message", *texts]
    assert content[-1]["text"] == "Last message"


async def test_variables_of_a_running_process_hold_for_the_requests_after(
    server: LoopbackServer, session: Session
) -> None:
    """SES-33."""
    await session.set_env({"CLAUDE_CODE_EXTRA_BODY": '{"temperature": 0.5}', "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "777"})
    await ask(session, "Hello.")

    assert server.requests[-1]["temperature"] == 0.5
    assert server.requests[-1]["max_tokens"] == 777


async def test_simultaneous_control_requests_get_their_answers_and_refusals_a_reason(session: Session) -> None:
    """SES-28, SES-32."""
    answers = await asyncio.gather(*(session.control("get_settings") for _ in range(10)), session.control("mcp_status"))
    assert all("mcpServers" not in answer for answer in answers[:-1])
    assert "mcpServers" in answers[-1]

    with pytest.raises(ControlRequestError, match="'no_such_request'") as raised:
        await session.control("no_such_request")
    assert raised.value.message


async def test_a_message_that_is_not_taken_is_a_timeout(fake_cli: FakeCLI) -> None:
    options = fake_cli("initialize()\nfor frame in frames(): pass")
    async with await Session.open(options, timeouts=Timeouts(control=0.2)) as session:
        calls = session.add_user("Hello."), session.add_user("Hello.")
        await all_raise(ControlTimeoutError, *calls, match="'user message'")
