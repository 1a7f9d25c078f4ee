"""The demo agent: a travel planner with a table of fares and a weather station.

Plain pydantic-ai, independent of the model and of the screen.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext, TextOutput, ToolOutput

FIRST_PROMPT = "I have 400 euros and a free weekend, two nights. Lisbon or Bergen?"
NEXT_PROMPT = "And if a friend comes along, and we stay one night longer?"


@dataclass(frozen=True, slots=True)
class City:
    """The travel desk's data about a city."""

    flight_eur: int
    night_eur: int
    sky: str
    degrees: int


CITIES: Mapping[str, City] = {
    "Lisbon": City(flight_eur=140, night_eur=85, sky="sunny", degrees=19),
    "Bergen": City(flight_eur=190, night_eur=120, sky="rain", degrees=7),
    "Vienna": City(flight_eur=110, night_eur=95, sky="cloudy", degrees=9),
}


@dataclass
class TravelDesk:
    """Dependencies for a run."""

    cities: Mapping[str, City]
    station_is_awake: bool = False


class Weather(BaseModel):
    """The forecast for a city."""

    city: str
    sky: str
    degrees: int


class Price(BaseModel):
    """Cost for a trip, for all travellers together."""

    city: str
    flights_eur: int
    rooms_eur: int
    total_eur: int


class TripPlan(BaseModel):
    """Where a trip goes, and what it takes."""

    city: str
    nights: int = Field(ge=1)
    travellers: int = Field(ge=1)
    weather: str
    total_eur: int
    within_budget: bool | None = Field(description="null if no budget was named")
    pack: list[str] = Field(description="up to four things to take along")


def _reject_words(text: str) -> TripPlan:
    """Reject a turn that ends in words.

    Words must be allowed: a model that is forced to call a tool says nothing beside it, and nothing would stream.
    """
    raise ModelRetry("Give the plan with the output tool.")


planner = Agent(
    deps_type=TravelDesk,
    output_type=[ToolOutput(TripPlan, name="trip_plan"), TextOutput(_reject_words)],
    retries=3,
    instructions=(
        "You are a travel planner. Look up the weather and the price of every city in question with the tools, several "
        "at once where you can. Before each round of tool calls, say in one short sentence what you do. A room is for "
        "two. At the end say in one or two sentences what you recommend and why, and give the plan with `trip_plan` in "
        "the same message."
    ),
)


@planner.instructions
def _places(ctx: RunContext[TravelDesk]) -> str:
    return f"The travel desk sells trips to {', '.join(ctx.deps.cities)}, and to no other place."


@planner.tool
async def weather(ctx: RunContext[TravelDesk], city: str) -> Weather:
    """The forecast for a city, for the days in question."""
    if not ctx.deps.station_is_awake:
        ctx.deps.station_is_awake = True
        raise ModelRetry(f"The weather station of {city} was asleep. It is awake now: ask again.")
    data = _city(ctx.deps, city)
    return Weather(city=city, sky=data.sky, degrees=data.degrees)


@planner.tool
async def price(ctx: RunContext[TravelDesk], city: str, nights: int, travellers: int) -> Price:
    """Cost of flights and rooms, for all travellers together."""
    data = _city(ctx.deps, city)
    rooms = -(-travellers // 2)
    flights_eur, rooms_eur = travellers * data.flight_eur, nights * rooms * data.night_eur
    return Price(city=city, flights_eur=flights_eur, rooms_eur=rooms_eur, total_eur=flights_eur + rooms_eur)


def _city(desk: TravelDesk, name: str) -> City:
    if name not in desk.cities:
        raise ModelRetry(f"There are no trips to {name}; choose from {', '.join(desk.cities)}.")
    return desk.cities[name]
