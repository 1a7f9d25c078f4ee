"""A request broken off at any await leaves nothing for the next request on its process."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import httpx2
import pytest

from awaits import Watch
from cc_loopback import Call, LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_messages.process.request_process import RequestProcess
from cc_session import PoolLimits, SessionPool, sealed_options
from cc_session.internals import on_background

pytestmark = pytest.mark.deaths

SONNET, OPUS = "claude-sonnet-5", "claude-opus-4-8"
# Headers that differ from call to call, or belong to the connection.
NOT_COMPARED = frozenset({"content-length", "host", "x-claude-code-session-id", "x-client-request-id", "traceparent"})


def request(mark: str, *, model: str = SONNET, header: str | None = None) -> dict[str, Any]:
    """Return a request with a mark in each part, except the arguments."""
    return {
        "headers": {"x-mark": header or mark},
        "json": {
            "model": model,
            "max_tokens": 99,
            "system": f"You are {mark}.",
            "tools": [{"name": f"tool_{mark}", "input_schema": {"type": "object"}}],
            "metadata": {"user_id": mark},
            "messages": [{"role": "user", "content": f"Say {mark}."}],
        },
    }


FIRST = request("alpha", header="shared")
LEFT = request("bravo", model=OPUS)
AFTER = {
    "the first again": FIRST,
    "the one that was left again": LEFT,
    "with the model and the header of the first": request("charlie", header="shared"),
    "with the model and the header of the one that was left": request("delta", model=OPUS, header="bravo"),
    "another": request("echo", model="claude-haiku-4-5"),
}


def respond(body: dict[str, Any]) -> str:
    return f"{body['messages'][-1]['content']} {body['model']}"


def parameters(call: Call) -> tuple[Any, dict[str, str]]:
    """Return the request's part in the body and headers that the API received."""
    return call.body, {name: value for name, value in call.headers.items() if name not in NOT_COMPARED}


class Process:
    """A process behind a transport, and a request's awaits on it."""

    def __init__(self, api: LoopbackServer, transport: ClaudeCodeTransport) -> None:
        self.api, self._transport = api, transport
        self._http = httpx2.AsyncClient(transport=transport, base_url="http://claude", timeout=60)

    async def ask(self, sent: dict[str, Any]) -> httpx2.Response:
        return await self._http.post("/v1/messages", headers=sent["headers"], json=sent["json"])

    def stream(self, sent: dict[str, Any]) -> AbstractAsyncContextManager[httpx2.Response]:
        return self._http.stream("POST", "/v1/messages", headers=sent["headers"], json={**sent["json"], "stream": True})

    @property
    def recycled(self) -> Mapping[str, int]:
        return self._transport.stats().recycled

    async def at_rest(self) -> None:
        while not self._transport.stats().is_at_rest:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async def probe(self, sent: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        """Ask, check the answer, and return the API's record."""
        self.api.calls.clear()
        answer = await self.ask(sent)
        mark, model = sent["json"]["metadata"]["user_id"], sent["json"]["model"]
        assert answer.json()["content"] == [{"type": "text", "text": f"Say {mark}. {model}"}]
        [call] = self.api.calls
        return parameters(call)


@pytest.fixture(params=["oauth", pytest.param("api-key", marks=pytest.mark.slow)])
async def process(request: pytest.FixtureRequest, loopback: LoopbackServer) -> AsyncIterator[Process]:
    loopback.respond = respond
    async with ClaudeCodeTransport(env=loopback.env(request.param), pool=1) as transport:
        yield Process(loopback, transport)


async def read_to_the_end(process: Process) -> None:
    with suppress(httpx2.TransportError):
        await process.ask(LEFT)


async def leave_at_the_first_event(process: Process) -> None:
    async with process.stream(LEFT) as response:
        await anext(response.aiter_bytes())


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Count the awaits in a part of the request `LEFT`."""
    watch = Watch()
    take, answer, reset = RequestProcess.take, RequestProcess.answer, RequestProcess.reset

    def is_left(process: RequestProcess) -> bool:
        current = vars(process)["_request"]
        return current is not None and "bravo" in current.extra_body

    async def watched_take(self: RequestProcess, launch: Any, sent: Any, **options: bool) -> None:
        taking = take(self, launch, sent, **options)
        await (watch.run(taking) if watch.part == "answer" and "bravo" in sent.extra_body else taking)

    def watched_answer(self: RequestProcess, message: Any) -> Any:
        is_watched = watch.part == "answer" and is_left(self)
        return watch.iterate(answer(self, message)) if is_watched else answer(self, message)

    async def watched_reset(self: RequestProcess, *args: Any) -> None:
        resetting = reset(self, *args)
        await (watch.run(resetting) if watch.part == "reset" and is_left(self) else resetting)

    for name, function in (("take", watched_take), ("answer", watched_answer), ("reset", watched_reset)):
        monkeypatch.setattr(RequestProcess, name, function)
    return watch


@pytest.mark.parametrize(
    ("part", "leave"),
    [("answer", read_to_the_end), ("reset", read_to_the_end), ("reset", leave_at_the_first_event)],
    ids=["its answer", "its reset", "its reset after it was left"],
)
async def test_each_await_of_a_request_can_be_its_last(
    process: Process, watched: Watch, part: str, leave: Callable[[Process], Awaitable[None]]
) -> None:
    """MSG-109: the next request reaches the API alone, and gets the right answer."""
    alone = {name: await process.probe(sent) for name, sent in AFTER.items()}
    number, names = 0, [*AFTER]
    while number == 0 or watched.has_cancelled:
        for name in {names[0], names[number % len(names)]}:
            await process.probe(FIRST)
            await process.at_rest()
            watched.begin(part, cancel_at=number)
            await leave(process)
            await process.at_rest()
            watched.part = ""
            assert await process.probe(AFTER[name]) == alone[name], (name, number, watched.place)
        number += 1
    assert number > 1


async def test_a_call_with_the_parameters_of_another_request_is_not_answered(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-110: nothing else can cause this, so the test exchanges the parameters without the record."""
    monkeypatch.setattr("cc_messages.process.request_process._PROOF_SECONDS", 0.5)
    alone = await process.probe(FIRST)
    take = RequestProcess.take

    async def exchange(self: RequestProcess, launch: Any, sent: Any, **options: bool) -> None:
        await take(self, launch, sent, **options)
        other = {"CLAUDE_CODE_EXTRA_BODY": sent.extra_body.replace("alpha", "bravo"), "API_TIMEOUT_MS": "600999"}
        await self.session.control("apply_flag_settings", settings={"env": other})

    monkeypatch.setattr(RequestProcess, "take", exchange)
    with pytest.raises(httpx2.ReadError, match="parameters of another request"):  # clients repeat it
        await process.ask(FIRST)
    process.api.fail_next(400, message="Not for the caller.")
    with pytest.raises(httpx2.ReadError, match="parameters of another request"):
        await process.ask(FIRST)
    monkeypatch.setattr(RequestProcess, "take", take)
    assert await process.probe(FIRST) == alone
    assert process.recycled["mixed"] == 2
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 2


async def test_each_await_of_a_lease_can_be_its_last(loopback: LoopbackServer) -> None:
    """SES-92: the same for a session pool, with models and prompts that the leases share or not."""
    loopback.respond = respond
    options = sealed_options(system_prompt="Say it.", env=loopback.env())
    first, abandoned, other = ("Say alpha.", SONNET), ("Say bravo.", OPUS), ("Say charlie.", SONNET)
    async with SessionPool(options, limits=PoolLimits(size=1, prewarm=0)) as pool:

        async def ask(prompt: str, model: str) -> tuple[str, Any]:
            loopback.calls.clear()
            turn = await pool.run(prompt, model=model)
            [*late, call] = (call for call in loopback.calls if prompt in json.dumps(call.body))
            # Only the call of the abandoned turn may arrive late.
            assert len(late) <= (prompt == abandoned[0])
            assert len(loopback.calls) - len(late) <= 1 + (prompt != abandoned[0])
            return turn.text, parameters(call)

        async def at_rest() -> None:
            while not pool.stats().is_at_rest:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

        watch = Watch()

        async def leave() -> None:
            """Run a turn on the processes' loop, where a single coroutine has all awaits."""
            with suppress(asyncio.CancelledError):
                await watch.run(pool.run(abandoned[0], model=abandoned[1]))

        alone = {lease: await ask(*lease) for lease in (first, abandoned, other)}
        number = 0
        while number == 0 or watch.has_cancelled:
            for after in (first, (abandoned, other)[number % 2]):
                await ask(*first)
                await at_rest()
                watch.begin("run", cancel_at=number)
                await on_background(leave)
                await at_rest()
                assert await ask(*after) == alone[after], (after, number, watch.place)
            number += 1
        assert number > 5
