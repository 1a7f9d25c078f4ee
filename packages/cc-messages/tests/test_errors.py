"""Each failure is the direct API's error, arrives in time, and has no effect on the next request."""

import asyncio
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import anyio
import httpx2
import psutil
import pytest

from cc_messages import ClaudeCodeTools, ClaudeCodeTransport
from cc_messages.api.response import Answer, Event
from cc_messages.process.request_process import RequestProcess
from cc_session import Timeouts
from cc_types import ClaudeCodeError, CLIConnectionError, CLINotFoundError, ProcessExitedError
from warm_clients.api_data import CALL, IMAGE, THINKING, result, text
from warm_clients.client import Client
from warm_clients.fixtures import Connect
from warm_clients.waiting import eventually, wait_for_ever

HISTORIES: list[list[Any]] = [[], ["a", "x"], ["a", [CALL]]]
BLOCKS: list[Any] = [THINKING, text("one two"), CALL]


def prompts(history: list[Any]) -> list[Any]:
    return [*history, [result()] if history and history[-1] == [CALL] else "b"]


async def fails(client: Client, *messages: Any, **fields: Any) -> ClaudeCodeError:
    """Return the connection error's cause."""
    with anyio.fail_after(20), pytest.raises(httpx2.ReadError) as caught:
        await client.ask(*messages, **fields)
    assert isinstance(caught.value.__cause__, ClaudeCodeError)
    assert str(caught.value.__cause__) == str(caught.value)
    return caught.value.__cause__


@pytest.mark.parametrize("fields", [{}, {"model": "a-deployment", "max_tokens": 64000}], ids=["known", "unknown"])
async def test_an_error_of_the_api_arrives_as_it_is(fields: dict[str, Any], client: Client) -> None:
    """MSG-30, MSG-31, MSG-32, MSG-33, MSG-34, MSG-E03 to MSG-E06"""
    history = HISTORIES[-1]
    for status in (400, 401, 403, 404, 409, 413, 429, 500, 503, 529):
        for stream in (False, True):
            # The known limit: the CLI retries a request that got a 404; that retry is cancelled.
            headers = {"retry-after": "17", "x-should-retry": "false", "server-timing": "secret"}
            message = f"made-up {status}"
            client.api.fail_next(status, headers=headers, error_type="made_up_error", message=message)
            client.api.requests.clear()
            with anyio.fail_after(20):
                reply = await client.ask(*prompts(history), stream=stream, **fields)
            assert (reply.status, reply.error) == (status, {"type": "made_up_error", "message": message})
            assert (reply.headers["retry-after"], reply.headers["x-should-retry"]) == ("17", "false")
            assert reply.body["request_id"] == reply.headers["request-id"]
            assert "server-timing" not in reply.headers
            await client.settled()
            assert len(client.api.requests) <= (2 if status == 404 else 1)
        await client.answers_exactly(*prompts(history))
    assert not client.starts


REFUSALS = [
    "max_tokens: Input should be a valid integer, unable to parse string as an integer",
    "max_tokens: Field required",
    "thinking.budget_tokens: Input should be greater than or equal to 1024",
    "max_tokens must be greater than thinking.budget_tokens",
    "tools.0.input_schema.properties.api_key: Input should be a valid dictionary",
    "messages.0.content.0.text.password: Extra inputs are not permitted",
    "Input should be 'auto', 'any' or 'token: none'; got \"secret: x\"",
]


@pytest.mark.parametrize("message", REFUSALS)
async def test_the_apis_own_words_survive_the_clis_redaction(message: str, client: Client) -> None:
    """MSG-30"""
    client.api.fail_next(400, error_type="invalid_request_error", message=message)
    reply = await client.ask("b")
    assert reply.error["message"] == message
    client.api.fail_next(400, message="the field token: sesame-secret is unknown")
    assert "sesame" not in str((await client.ask("b")).error)


async def test_response_headers_arrive_in_any_bytes(client: Client) -> None:
    """MSG-187: from the API, whole and streamed, also with an error; a character of two bytes stays two bytes."""
    for status, stream in product((200, 429), (False, True)):
        headers = {"anthropic-organization-id": "r\xe9q", "x-should-retry": "false"}
        if status == 429:
            client.api.fail_next(429, headers=headers)
        else:
            client.api.fail_next(headers=headers, delay=0)
        reply = await client.ask("b", stream=stream)
        assert reply.status == status
        assert reply.headers["anthropic-organization-id"] == "r\xe9q"


async def test_an_error_of_this_package_is_logged_with_its_traceback(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-30: the text alone, such as a KeyError's key, would not tell the place."""

    def feed(_answer: Answer, event: Event) -> None:
        raise KeyError("made-up")

    with monkeypatch.context() as patch, pytest.raises(httpx2.ReadError, match="made-up"):
        patch.setattr(Answer, "feed", feed)
        await client.ask("a")
    assert "in feed" in caplog.text
    await client.answers_exactly("a")


async def test_an_error_in_a_stream_is_a_status_or_an_event(client: Client) -> None:
    """MSG-33"""
    # The first block, with thinking and signature, ends with the sixth event.
    for events in range(7):
        client.answers(BLOCKS)
        client.api.fail_next(529, after_events=events, message="busy")
        reply = await client.ask("b", stream=True)
        assert reply.error == {"type": "overloaded_error", "message": "busy"}
        assert reply.status == (529 if events == 0 else 200)
        kinds = [event["type"] for event in reply.events]
        assert kinds.count("content_block_stop") == (events == 6)
        assert not {"message_delta", "message_stop"} & {*kinds}
    client.api.fail_next(529, after_events=4, message="busy")
    reply = await client.ask("b")
    assert (reply.status, reply.error["message"]) == (529, "busy")
    await client.answers_exactly("b")


async def test_an_error_after_what_can_be_gone_on_with_breaks_the_stream(client: Client) -> None:
    """MSG-21, MSG-E07: a known limit: the CLI does not report this error, but asks the model to continue."""
    for events in range(7, 15):
        client.answers(BLOCKS)
        client.api.fail_next(529, after_events=events, message="busy")
        await fails(client, "b", stream=True)
        await client.settled()  # or a request by the CLI itself could get the next fault
    assert len(client.api.requests) == 8
    await client.answers_exactly("b")


async def test_an_image_refused_by_the_api_is_an_error_not_an_answer(client: Client) -> None:
    """MSG-31: the CLI removes the image and asks again; that result answers another question."""
    contents = [[IMAGE, text("Look.")]]
    client.api.fail_next(400, message="Could not process image")
    reply = await client.ask(*contents)
    assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert "image" in reply.error["message"]
    await client.answers_exactly(*contents)


async def test_a_prompt_that_is_too_long_is_the_error_of_the_api(client: Client) -> None:
    """MSG-E09"""
    message = "prompt is too long: 212000 tokens > 200000 maximum"
    client.api.fail_next(400, message=message)
    reply = await client.ask("b")
    assert (reply.status, reply.error) == (400, {"type": "invalid_request_error", "message": message})


async def test_no_credentials_are_an_authentication_error_that_says_what_to_do(connect: Connect) -> None:
    """MSG-E01"""
    client = connect()
    client = connect(env={**client.api.env(), "ANTHROPIC_API_KEY": ""})
    with anyio.fail_after(20):
        reply = await client.ask("Hello.")
    assert (reply.status, reply.error["type"]) == (401, "authentication_error")
    assert "ANTHROPIC_API_KEY" in reply.error["message"]
    assert "/login" in reply.error["message"]
    assert not client.api.requests


async def test_an_api_that_nobody_serves_is_an_error(connect: Connect) -> None:
    client = connect()
    client = connect(env={**client.api.env(), "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    error = await fails(client, "Hello.")
    assert isinstance(error, CLIConnectionError)
    assert "Check that http://127.0.0.1:9 (from ANTHROPIC_BASE_URL) can be reached" in str(error)  # MSG-82


async def test_a_missing_cli_is_an_error_that_names_the_place(connect: Connect, tmp_path: Path) -> None:
    """MSG-E02"""
    program = tmp_path / "no-claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    client = connect(cli_path=program, size=1)
    program.unlink()
    for _ in range(2):
        error = await fails(client, "Hello.")
        assert isinstance(error, CLINotFoundError)
        assert str(tmp_path / "no-claude") in str(error)
    assert not client.starts


async def test_a_cli_that_ends_at_once_is_an_error_with_stderr(connect: Connect, tmp_path: Path) -> None:
    """MSG-E08: the only other start asks for the version."""
    cli = tmp_path / "claude"
    cli.write_text(f"#!/bin/sh\necho \"$1\" >> {tmp_path}/log\necho 'no room on the device' >&2\nexit 7\n")
    cli.chmod(0o700)
    error = await fails(connect(cli_path=cli), "Hello.")
    assert isinstance(error, ProcessExitedError)
    assert "no room on the device" in str(error)
    assert (tmp_path / "log").read_text() == "--output-format\n--version\n"


@pytest.mark.deaths
async def test_a_process_killed_while_it_answers_is_an_error(client: Client) -> None:
    """MSG-E08"""

    async def respond(body: dict[str, Any]) -> str:
        psutil.Process(client.transport.pids[0]).kill()
        return await wait_for_ever(body)

    for stream in (False, True):
        client.answers(respond)
        error = await fails(client, "Hello.", stream=stream)
        assert isinstance(error, ProcessExitedError)
        assert "SIGKILL" in str(error)
        await client.answers_exactly("Hello.")
    assert client.starts == 2


@pytest.mark.deaths
async def test_a_process_killed_while_idle_is_replaced(client: Client) -> None:
    """MSG-E08, MODEL-67: the conversation continues."""
    client.answers([CALL])
    await client.ask("a")
    await client.settled()
    psutil.Process(client.transport.pids[0]).kill()
    await eventually(lambda: not client.transport.pids)
    await client.answers_exactly("a", [CALL], [result()])
    assert client.starts == 1


@pytest.mark.deaths
async def test_a_process_that_dies_before_it_is_asked_is_replaced(client: Client) -> None:
    """MSG-E08: a stopped process accepts input and never answers; after a kill, the API was not asked."""
    await client.ask("a")
    await client.settled()
    process = psutil.Process(client.transport.pids[0])
    process.suspend()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answers_once_killed, client)
        await eventually(lambda: client.transport.stats().busy > 0)
        process.kill()
    assert client.starts == 1


async def answers_once_killed(client: Client) -> None:
    assert (await client.ask("b", "x", "c")).status == 200
    assert client.arrivals("b", "x", "c") == 1


@pytest.mark.deaths
async def test_a_process_that_hangs_is_replaced(connect: Connect) -> None:
    """MSG-E08"""
    client = connect(size=1, timeouts=Timeouts(control=1, close=0.2))
    await client.ask("a")

    hangs = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(body: dict[str, Any]) -> str:
        psutil.Process(client.transport.pids[0]).suspend()
        loop.call_soon_threadsafe(hangs.set)
        return "Fine."

    client.answers(hang)
    leaving = asyncio.create_task(client.ask("b"))
    await hangs.wait()
    leaving.cancel()
    await eventually(lambda: not client.transport.pids)
    await client.answers_exactly("b")
    assert client.starts == 2


@pytest.mark.deaths
@pytest.mark.parametrize("timeouts", [Timeouts(turn=2), Timeouts(silence=2)], ids=["turn", "silence"])
async def test_a_request_that_takes_too_long_is_not_repeated(timeouts: Timeouts, connect: Connect) -> None:
    """MSG-E10"""
    client = connect(size=1, timeouts=timeouts)

    client.answers(wait_for_ever)
    with anyio.fail_after(20):
        reply = await client.ask("b")
    assert (reply.status, reply.error["type"]) == (504, "timeout_error")
    assert "within 2 seconds" in reply.error["message"]
    assert reply.headers["x-should-retry"] == "false"
    await client.answers_exactly("b")


@pytest.mark.deaths
async def test_a_process_that_cannot_be_emptied_is_replaced(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-E08"""

    async def fail(*_: object) -> None:
        raise KeyError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(RequestProcess, "reset", fail)
        assert (await client.ask("a")).status == 200
        await client.settled()
    await client.answers_exactly("b")
    assert client.starts == 1
    assert client.transport.stats().recycled["reset"] == 1


async def test_a_refused_beta_is_refused_and_not_left_out(client: Client) -> None:
    """MSG-09, MSG-21: the CLI assumes that it may retry without its own field."""
    client.api.fail_next(400, message="made-up")
    reply = await client.ask("b", headers={"anthropic-beta": "thinking-token-count-2026-05-13"})
    assert (reply.status, reply.error["message"]) == (400, "made-up")
    await client.settled()
    assert len(client.api.requests) <= 2
    await client.answers_exactly("b")


def test_paths_are_checked_before_the_first_request(tmp_path: Path) -> None:
    """MSG-126"""
    with pytest.raises(CLINotFoundError, match="no-claude"):
        ClaudeCodeTransport(cli_path=tmp_path / "no-claude")
    for create in (ClaudeCodeTransport, partial(ClaudeCodeTools, tools=["Read"])):
        with pytest.raises(CLIConnectionError, match=r"cwd='.*nowhere' is not a folder"):
            create(cwd=tmp_path / "nowhere")
    for option in ("tools", "skills"):
        arguments: dict[str, Any] = {"tools": (), option: "Read"}
        with pytest.raises(ValueError, match=rf"write {option}=\['Read'\]"):
            ClaudeCodeTools(**arguments)
