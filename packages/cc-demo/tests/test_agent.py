"""The demo's agent, with a model that does not follow the script."""

from pydantic_ai import AgentRunResult
from pydantic_ai.messages import ModelResponse, ToolReturnPart

from cc_demo.agent import CITIES, Price, TravelDesk, TripPlan, planner
from cc_loopback import JsonObject, LoopbackServer, Reply, call
from cc_model import ClaudeCodeModel

PLAN = {
    "city": "Vienna",
    "nights": 1,
    "travellers": 3,
    "weather": "cloudy",
    "total_eur": 520,
    "within_budget": None,
    "pack": ["scarf"],
}


def play(shared_api: LoopbackServer, *replies: Reply) -> None:
    remaining = iter(replies)

    def respond(body: JsonObject) -> Reply:
        return next(remaining)

    shared_api.respond = respond


def returned(result: AgentRunResult[TripPlan]) -> list[ToolReturnPart]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


async def test_a_turn_that_ends_in_words_is_rejected(shared_api: LoopbackServer, model: ClaudeCodeModel) -> None:
    play(shared_api, "Vienna is lovely.", [call("trip_plan", **PLAN)])
    result = await planner.run("Where to?", model=model, deps=TravelDesk(CITIES))
    assert result.output == TripPlan.model_validate(PLAN)
    assert "Give the plan with the output tool." in str(shared_api.requests[1]["messages"][-1])


async def test_the_model_may_write_beside_its_calls(shared_api: LoopbackServer, model: ClaudeCodeModel) -> None:
    play(shared_api, [{"type": "text", "text": "Vienna!"}, call("trip_plan", **PLAN)])
    result = await planner.run("Where to?", model=model, deps=TravelDesk(CITIES))
    assert shared_api.requests[0].get("tool_choice", {"type": "auto"})["type"] == "auto"
    assert any(message.text == "Vienna!" for message in result.all_messages() if isinstance(message, ModelResponse))


async def test_the_answer_to_an_unknown_city_lists_the_known_cities(
    shared_api: LoopbackServer, model: ClaudeCodeModel
) -> None:
    desk = TravelDesk(CITIES, station_is_awake=True)
    play(
        shared_api,
        [call("weather", city="Oz"), call("price", city="Oz", nights=1, travellers=1)],
        [call("trip_plan", **PLAN)],
    )
    result = await planner.run("Oz?", model=model, deps=desk)
    first, second, *_ = returned(result)
    assert (first.outcome, second.outcome) == ("retried", "retried")
    assert "Lisbon, Bergen, Vienna" in str(first.content)
    assert first.content == second.content


async def test_a_room_is_for_two(shared_api: LoopbackServer, model: ClaudeCodeModel) -> None:
    play(shared_api, [call("price", city="Vienna", nights=1, travellers=3)], [call("trip_plan", **PLAN)])
    result = await planner.run("Three of us.", model=model, deps=TravelDesk(CITIES))
    assert returned(result)[0].content == Price(city="Vienna", flights_eur=330, rooms_eur=190, total_eur=520)
