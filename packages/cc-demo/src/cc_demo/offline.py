"""The scripted model that answers without a login, behind the loopback API.

It sees the request bodies that Claude would see, and knows a single conversation: look up, repeat calls that failed,
give the plan, and all again for another traveller and night.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cc_loopback import JsonObject, Reply, call

from .agent import CITIES

# Seconds before each event in a terminal: long enough to see the text stream, too short to be a wait.
EVENT_DELAY = 0.01

_BUDGET = re.compile(r"(\d[\d,. ]*)\s*(?:€|eur)", re.IGNORECASE)
_NIGHTS = re.compile(r"(\d+|one|two|three|four|five|six|seven)\s+nights?", re.IGNORECASE)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


@dataclass(frozen=True, slots=True)
class _Run:
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
    """Answer a request from the travel planner."""
    runs = list(_runs(body["messages"]))
    plans = [index for index, run in enumerate(runs) if run.name == "trip_plan" and not run.failed]
    finished_runs = runs[plans[-1] + 1 :] if plans else runs
    wish = _wish(_text_of(body["messages"][0]["content"]))
    for index in plans:
        plan = runs[index].arguments
        wish = _Wish([plan["city"]], plan["nights"] + 1, plan["travellers"] + 1, wish.budget)
    if not finished_runs:
        return _look_up(wish, weather_too=not plans)
    latest = {(run.name, json.dumps(run.arguments)): run for run in finished_runs}
    if calls := [call(run.name, **run.arguments) for run in latest.values() if run.failed]:
        return [_text("The weather station asks for a second try."), *calls]
    return _plan(wish, runs)


def _look_up(wish: _Wish, *, weather_too: bool) -> Reply:
    places = " and ".join(wish.cities)
    if weather_too:
        text = f"I look up the weather and the prices for {places}."
        if not wish.is_known:
            text = f"I am only a script, and your question is not in it; I take {places}. {text}"
    else:
        text = f"The weather in {places} I know already; I look up the price for {wish.travellers}."
    price = {"nights": wish.nights, "travellers": wish.travellers}
    weather = [call("weather", city=city) for city in wish.cities if weather_too]
    return [_text(text), *weather, *(call("price", city=city, **price) for city in wish.cities)]


def _plan(wish: _Wish, runs: list[_Run]) -> Reply:
    """Give the plan: the warmest city within the budget, or else the cheapest city."""
    results = [(run.name, json.loads(run.result)) for run in runs if run.name != "trip_plan" and not run.failed]
    weather = {result["city"]: result for name, result in results if name == "weather"}
    totals = {result["city"]: result["total_eur"] for name, result in results if name == "price"}
    cities = [city for city in wish.cities if wish.budget is None or totals[city] <= wish.budget]
    degrees = {city: result["degrees"] for city, result in weather.items()}
    city = max(cities, key=degrees.__getitem__) if cities else min(wish.cities, key=totals.__getitem__)
    sky = f"{weather[city]['sky']}, {degrees[city]} degrees"
    fits = None if wish.budget is None else bool(cities)
    plan = {
        "city": city,
        "nights": wish.nights,
        "travellers": wish.travellers,
        "weather": sky,
        "total_eur": totals[city],
        "within_budget": fits,
        "pack": ["umbrella", "sweater"] if degrees[city] < 12 else ["sunglasses", "light jacket"],
    }
    money = {None: "", True: f", within your {wish.budget}", False: f", which is more than your {wish.budget}"}[fits]
    return [_text(f"{city}: {sky}, for {totals[city]} euros{money}."), call("trip_plan", **plan)]


def _wish(prompt: str) -> _Wish:
    cities = sorted((city for city in CITIES if city in prompt), key=prompt.index)
    budget, nights = _BUDGET.search(prompt), _NIGHTS.search(prompt)
    euros, count = _number(budget[1]) if budget else None, _number(nights[1]) if nights else 2
    return _Wish(cities or list(CITIES)[:2], count, travellers=1, budget=euros, is_known=bool(cities))


def _number(word: str) -> int:
    return _NUMBERS.get(word.lower()) or int(re.sub(r"\D", "", word))


def _runs(messages: list[JsonObject]) -> Iterator[_Run]:
    results = {block["tool_use_id"]: block for block in _blocks(messages, "tool_result")}
    for block in _blocks(messages, "tool_use"):
        result = results[block["id"]]
        yield _Run(block["name"], block["input"], _text_of(result["content"]), bool(result.get("is_error")))


def _blocks(messages: list[JsonObject], kind: str) -> Iterator[JsonObject]:
    for message in messages:
        content: str | list[JsonObject] = message["content"]
        if not isinstance(content, str):
            yield from (block for block in content if block["type"] == kind)


def _text_of(content: str | list[JsonObject]) -> str:
    return content if isinstance(content, str) else " ".join(block.get("text", "") for block in content)


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
