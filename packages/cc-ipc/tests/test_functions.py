"""Python functions as tools."""

from __future__ import annotations

import asyncio
import datetime
import json
import math
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from cc_ipc.functions import Function, function_tool


class Place(BaseModel):
    city: str
    days: int = 1


@dataclass
class Forecast:
    place: Place
    at: datetime.date


DAY = datetime.date(2026, 1, 2)


class Opaque:
    def __str__(self) -> str:
        return "an opaque value"


def weather(
    place: Place, unit: Annotated[Literal["C", "F"], Field(description="Of temperatures.")] = "C"
) -> dict[str, object]:
    """Tell the weather.

    For some days.
    """
    return {"city": place.city, "days": place.days, "unit": unit}


async def call(function: Any, /, **arguments: object) -> Any:
    return await function_tool("tool", function).handler(arguments)


def text_of(result: Any) -> str:
    return result["content"][0]["text"]


def test_the_schema_comes_from_the_signature_and_the_docstring() -> None:
    """IPC-P-60."""
    schema = function_tool("weather", weather).schema
    assert schema["name"] == "weather"
    assert schema["description"] == "Tell the weather.\n\nFor some days."
    parameters: Any = schema["input_schema"]
    assert (parameters["type"], parameters["required"]) == ("object", ["place"])
    assert parameters["properties"]["unit"]["description"] == "Of temperatures."
    assert "Place" in parameters["$defs"]
    assert function_tool("nameless", lambda: None).schema["description"] == ""


async def test_arguments_are_converted_to_the_types_of_the_signature() -> None:
    result = await call(weather, place={"city": "Bern", "days": "2"})
    expected = {"city": "Bern", "days": 2, "unit": "C"}
    assert json.loads(text_of(result)) == result["structuredContent"] == expected


@pytest.mark.parametrize("arguments", [{}, {"place": 1}, {"place": {"city": "Bern"}, "unit": "K"}, {"plaace": {}}])
async def test_arguments_that_do_not_conform_are_refused(arguments: dict[str, object]) -> None:
    """IPC-P-14."""
    with pytest.raises(ValidationError):
        await call(weather, **arguments)


async def test_an_async_function_and_a_method_are_tools() -> None:
    class Shop:
        async def price(self, item: str) -> int:
            return len(item)

        def __call__(self) -> Coroutine[object, object, int]:
            return self.price("called")

    assert text_of(await call(Shop().price, item="pear")) == "4"
    assert text_of(await call(Shop())) == "6"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, "null"),
        ([1, "é"], '[1,"é"]'),
        (Forecast(Place(city="Bern"), DAY), '{"place":{"city":"Bern","days":1},"at":"2026-01-02"}'),
        (b"\xff", '"_w=="'),
        (Opaque(), '"an opaque value"'),
        (math.nan, "null"),
        ({"content": "not blocks"}, '{"content":"not blocks"}'),
        ({}, "{}"),
    ],
    ids=str,
)
async def test_a_value_becomes_text(value: object, text: str) -> None:
    result = await call(lambda: value)
    assert text_of(result) == text
    assert ("structuredContent" in result) == text.startswith("{")


async def test_a_result_in_mcps_form_is_returned_unchanged() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    assert await call(lambda: {"content": [image]}) == {"content": [image], "isError": False}


def positional(a: int, /) -> None: ...


def variable(*numbers: int) -> None: ...


def mixed(a: int, /, *, b: int) -> None: ...


def undefined(a: int) -> None: ...


undefined.__annotations__["a"] = "Nowhere"


@pytest.mark.parametrize("function", [positional, variable, mixed, undefined, len, int])
def test_parameters_that_cannot_be_given_by_name_are_refused(function: Function) -> None:
    with pytest.raises(TypeError, match="The function 'tool' cannot be a tool"):
        function_tool("tool", function)


@pytest.mark.parametrize(
    ("error", "kind"), [(KeyError("a"), KeyError), (StopIteration(1), RuntimeError), (SystemExit(2), SystemExit)]
)
async def test_an_exception_of_a_function_is_raised(error: BaseException, kind: type[BaseException]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(kind):
        await call(fail)


async def test_sync_functions_run_in_parallel_and_do_not_block_the_loop() -> None:
    """IPC-P-21, IPC-P-33: none returns before all twenty, more than a thread pool has, have started."""
    meeting = threading.Barrier(20)

    def meet() -> int:
        meeting.wait(10)
        return 1

    assert len(await asyncio.gather(*(call(meet) for _ in range(20)))) == 20


async def test_the_thread_of_a_cancelled_call_runs_to_its_end() -> None:
    started, go_on = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def work() -> None:
        threads.append(threading.current_thread())
        started.set()
        go_on.wait(10)

    task = asyncio.ensure_future(call(work))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.to_thread(threads[0].join, 10)


async def test_a_call_cancelled_before_its_thread_begins_does_not_run_the_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[threading.Thread] = []
    ran: list[str] = []

    def start_later(thread: threading.Thread) -> None:
        threads.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start_later)
    task = asyncio.ensure_future(call(lambda: ran.append("once")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    threads[0].run()
    assert ran == []


def test_an_async_function_runs_in_its_own_loop() -> None:
    async def where() -> int:
        return id(asyncio.get_running_loop())

    home = asyncio.new_event_loop()
    thread = threading.Thread(target=home.run_forever)
    thread.start()
    tool = function_tool("where", where, home)
    result: Any = asyncio.run(_awaited(tool.handler({})))
    assert text_of(result) == str(id(home))
    home.call_soon_threadsafe(home.stop)
    thread.join(10)
    home.close()
    with pytest.raises(RuntimeError, match="has ended"):
        asyncio.run(_awaited(tool.handler({})))


async def _awaited(awaitable: Any) -> Any:
    return await awaitable
