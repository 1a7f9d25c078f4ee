"""The scripted model that answers without a login.

A stand-in for Claude behind the loopback API. It sees request bodies as Claude would, and nothing else of the agent. It
knows how this one conversation goes: look up, ask again what failed, give the plan, and once more for one more
traveller and night.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cc_loopback import JsonObject, Reply

from .agent import CITIES

__all__ = ["EVENT_DELAY", "respond"]

# Seconds before each event in a terminal: long enough to see the text stream, and too short for a wait.
EVENT_DELAY = 0.01

_BUDGET = re.compile(r"(\d[\d,. ]*)\s*(?:€|eur)", re.IGNORECASE)
_NIGHTS = re.compile(r"(\d+|one|two|three|four|five|six|seven)\s+nights?", re.IGNORECASE)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: dict[str, Any]
    result: str
    failed: bool


@dataclass(frozen=True, slots=True)
class _Wish:
    """The trip to plan."""

    cities: list[str]
    nights: int
    travellers: int
    budget: int | None
    is_known: bool = True


def respond(body: JsonObject) -> Reply:
    """Answer one request of the travel planner."""
    calls = list(_calls(body["messages"]))
    plans = [index for index, call in enumerate(calls) if call.name == "trip_plan" and not call.failed]
    done = calls[plans[-1] + 1 :] if plans else calls
    wish = _wish(_first_prompt(body["messages"]))
    for index in plans:
        wish = _next_wish(wish, calls[index].arguments)
    if not done:
        return _look_up(wish, weather_too=not plans)
    if again := _failed(done):
        return [
            _text("The weather station asks for a second try."),
            *(_use(call.name, call.arguments) for call in again),
        ]
    return _plan(wish, calls)


def _look_up(wish: _Wish, *, weather_too: bool) -> Reply:
    places = " and ".join(wish.cities)
    if weather_too:
        said = f"I look up the weather and the prices for {places}."
        if not wish.is_known:
            said = f"I am only a script, and your question is not in it; I take {places}. {said}"
    else:
        said = f"The weather in {places} I know already; I look up the price for {wish.travellers}."
    price = {"nights": wish.nights, "travellers": wish.travellers}
    weather = [_use("weather", {"city": city}) for city in wish.cities if weather_too]
    return [_text(said), *weather, *(_use("price", {"city": city, **price}) for city in wish.cities)]


def _plan(wish: _Wish, calls: list[_Call]) -> Reply:
    """The sunniest of the cities that can be paid, or else the cheapest one."""
    results = [(call.name, json.loads(call.result)) for call in calls if call.name != "trip_plan" and not call.failed]
    weather = {result["city"]: result for name, result in results if name == "weather"}
    totals = {result["city"]: result["total_eur"] for name, result in results if name == "price"}
    paid = [city for city in wish.cities if wish.budget is None or totals[city] <= wish.budget]
    city = max(paid, key=lambda name: weather[name]["degrees"]) if paid else min(wish.cities, key=totals.__getitem__)
    sky = f"{weather[city]['sky']}, {weather[city]['degrees']} degrees"
    fits = None if wish.budget is None else bool(paid)
    plan = {
        "city": city,
        "nights": wish.nights,
        "travellers": wish.travellers,
        "weather": sky,
        "total_eur": totals[city],
        "within_budget": fits,
        "pack": ["umbrella", "sweater"] if weather[city]["degrees"] < 12 else ["sunglasses", "light jacket"],
    }
    money = {None: "", True: f", within your {wish.budget}", False: f", which is more than your {wish.budget}"}[fits]
    return [_text(f"{city}: {sky}, for {totals[city]} euros{money}."), _use("trip_plan", plan)]


def _wish(prompt: str) -> _Wish:
    named = sorted((city for city in CITIES if city in prompt), key=prompt.index)
    budget, nights = _BUDGET.search(prompt), _NIGHTS.search(prompt)
    return _Wish(
        cities=named or list(CITIES)[:2],
        nights=_number(nights[1]) if nights else 2,
        travellers=1,
        budget=_number(budget[1]) if budget else None,
        is_known=bool(named),
    )


def _next_wish(wish: _Wish, plan: dict[str, Any]) -> _Wish:
    return _Wish([plan["city"]], plan["nights"] + 1, plan["travellers"] + 1, wish.budget)


def _number(word: str) -> int:
    return _NUMBERS.get(word.lower()) or int(re.sub(r"\D", "", word))


def _failed(calls: list[_Call]) -> list[_Call]:
    """The calls that failed and were not made again since."""
    return [
        call
        for index, call in enumerate(calls)
        if call.failed
        and all((later.name, later.arguments) != (call.name, call.arguments) for later in calls[index + 1 :])
    ]


def _calls(messages: list[JsonObject]) -> Iterator[_Call]:
    results = {block["tool_use_id"]: block for block in _blocks(messages, "tool_result")}
    for block in _blocks(messages, "tool_use"):
        result = results[block["id"]]
        yield _Call(block["name"], block["input"], _text_of(result["content"]), bool(result.get("is_error")))


def _blocks(messages: list[JsonObject], kind: str) -> Iterator[JsonObject]:
    for message in messages:
        content: str | list[JsonObject] = message["content"]
        if not isinstance(content, str):
            yield from (block for block in content if block["type"] == kind)


def _first_prompt(messages: list[JsonObject]) -> str:
    return _text_of(messages[0]["content"])


def _text_of(content: str | list[JsonObject]) -> str:
    return content if isinstance(content, str) else " ".join(block.get("text", "") for block in content)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _use(name: str, arguments: dict[str, Any]) -> JsonObject:
    return {"type": "tool_use", "name": name, "input": arguments}
