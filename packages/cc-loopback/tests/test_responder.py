"""The default responder, request by request, as seen by an agent."""

from typing import Any

import httpx2
import pytest
from anthropic.types import MessageParam, TextBlock, ToolParam, ToolResultBlockParam

from cc_loopback import SchemaError, default_respond

from .conftest import Connect, Serve

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: dict[str, Any] = {"name": "weather", "input_schema": CITY}
CLOCK: dict[str, Any] = {"name": "clock", "input_schema": {"type": "object", "properties": {}}}
OUTPUT: dict[str, Any] = {"name": "final_result", "input_schema": CITY}
FEEDBACK = "Your last output was wrong\n<pyai:validation_errors>\n[]\n</pyai:validation_errors>"
RETRY = "1 validation error\n\nFix the errors and try again."


def user(*content: str | dict[str, Any]) -> dict[str, Any]:
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {"role": "user", "content": blocks}


def called(*names: str) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"id_{name}", "name": name, "input": {}} for name in names
    ]
    return {"role": "assistant", "content": blocks}


def result(name: str, content: Any = "fine", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"id_{name}", "content": content, **fields}


def respond(messages: list[dict[str, Any]], *tools: dict[str, Any], **fields: Any) -> Any:
    return default_respond({"model": "m", "max_tokens": 9, "messages": messages, "tools": list(tools), **fields})


def names_in(reply: Any) -> list[str]:
    """Return the called tools' names, none for a text."""
    return [] if isinstance(reply, str) else [block["name"] for block in reply if block["type"] == "tool_use"]


MARKER = "Always respond with a JSON object that's compatible with this schema:"


@pytest.mark.parametrize(
    ("messages", "fields", "quoted"),
    [
        ([user("one two three four five six seven eight nine")], {}, "one two three four five six seven eight …"),
        ([{"role": "user", "content": "Hello"}], {}, "Hello"),
        ([user("Hi"), {"role": "system", "content": "Environment"}], {}, "Hi"),
        *(([user("Hi")], {"system": f"{MARKER} {rest}"}, "Hi") for rest in ("", "{", "none")),
    ],
    ids=["long", "plain string", "system message", "no schema", "half a schema", "no JSON"],
)
def test_without_tools_and_schema_the_prompt_is_quoted(messages: Any, fields: dict[str, Any], quoted: str) -> None:
    assert respond(messages, **fields) == f'You said: "{quoted}".'


def test_same_body_gets_the_same_content_from_any_server(serve: Serve) -> None:
    """LOOP-24: also for formats whose examples could be a time or a random number."""
    formats = ("date-time", "uuid", "email", "ipv4", "uri")
    fields = {name: {"type": "string", "format": name} for name in formats}
    tool = {"name": "book", "input_schema": {"type": "object", "properties": fields, "required": formats}}
    body = {"model": "m", "max_tokens": 9, "messages": [user("Hi")], "tools": [WEATHER, tool]}
    answers = [httpx2.post(f"{server.url}/v1/messages", json=body).json() for server in (serve(None), serve(None))]
    first, second = ([block | {"id": ""} for block in answer["content"]] for answer in answers)
    assert first == second
    assert {*first[-1]["input"]} == {*formats}


def test_summary_contains_the_result_of_each_tool() -> None:
    """LOOP-21."""
    results = user(result("weather", [{"type": "text", "text": "sunny"}]), result("clock", "x" * 100))
    reply = respond([user("Hi"), called("weather", "clock"), results], WEATHER, CLOCK)
    assert reply == f'You said: "Hi".\nweather returned: sunny\nclock returned: {"x" * 80}…'


HI, WEATHER_DONE = user("Hi"), [called("weather"), user(result("weather"))]
DONE = [HI, *WEATHER_DONE, {"role": "assistant", "content": "Done."}]
BOOM = [called("weather"), user(result("weather", "boom", is_error=True))]
RETRIED = [called("weather"), user(result("weather", RETRY))]
OUTPUT_DONE = [called("final_result"), user(result("final_result"))]
OUTPUT_REFUSED = [called("final_result"), user(result("final_result", RETRY))]
AGAIN = user(result("final_result", "Final result processed."), "Again")
OTHER = {**OUTPUT, "name": "final_result_Other"}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
ONE_BY_ONE = {"type": "auto", "disable_parallel_tool_use": True}
REQUIRED: list[dict[str, Any]] = [{"type": "tool", "name": "weather"}, {"type": "any"}]

# The conversation, the offered tools, the tool choice, and the tools that are called then.
NEXT: dict[str, tuple[list[Any], list[Any], dict[str, Any], list[str]]] = {
    "a tool that was not called yet": ([HI, *WEATHER_DONE], [WEATHER, CLOCK], {}, ["clock"]),
    "one at a time": ([HI], [WEATHER, CLOCK], ONE_BY_ONE, ["weather"]),
    "a new prompt starts a new turn": ([*DONE, user("Again")], [WEATHER], {}, ["weather"]),
    "an image starts a new turn": ([*DONE, user({"type": "image", "source": {}})], [WEATHER], {}, ["weather"]),
    "feedback does not": ([*DONE, user(FEEDBACK)], [WEATHER], {}, []),
    "a retry does not": ([*DONE, user(RETRY)], [WEATHER], {}, []),
    "a reminder does not": ([*DONE, user("<system-reminder>Be brief.</system-reminder>")], [WEATHER], {}, []),
    "a failed tool again": ([HI, *BOOM], [WEATHER], {}, ["weather"]),
    "a failed tool a third time": ([HI, *BOOM * 2], [WEATHER], {}, ["weather"]),
    "a tool that wants a retry again": ([HI, *RETRIED], [WEATHER], {}, ["weather"]),
    "a tool that wants a retry a third time": ([HI, *RETRIED * 2], [WEATHER], {}, ["weather"]),
    "no server tool and no deferred one": ([HI], [SEARCH, {**WEATHER, "defer_loading": True}], {}, []),
    "no forbidden tool": ([HI], [WEATHER, OUTPUT], {"type": "none"}, []),
    "a required tool a third time": ([HI, *WEATHER_DONE * 2], [WEATHER], REQUIRED[0], ["weather"]),
    "a required tool no fourth time": ([HI, *WEATHER_DONE * 3], [WEATHER], REQUIRED[0], []),
    "any required tool a third time": ([HI, *WEATHER_DONE * 2], [WEATHER], REQUIRED[1], ["weather"]),
    "any required tool no fourth time": ([HI, *WEATHER_DONE * 3], [WEATHER], REQUIRED[1], []),
    "one output of several": ([HI], [OUTPUT, OTHER], {}, ["final_result"]),
    "no second output": ([HI, *OUTPUT_DONE], [OUTPUT, OTHER], {}, []),
    "a refused output again": ([HI, *OUTPUT_REFUSED], [OUTPUT], {}, ["final_result"]),
    "a refused output no fourth time": ([HI, *OUTPUT_REFUSED * 3], [OUTPUT], {}, []),
    "a prompt beside the result of an output starts a new turn": (
        [HI, *WEATHER_DONE, called("final_result"), AGAIN],
        [WEATHER, OUTPUT],
        {},
        ["weather"],
    ),
}


@pytest.mark.parametrize(("messages", "tools", "choice", "names"), NEXT.values(), ids=NEXT)
def test_tools_are_called_next(messages: list[Any], tools: list[Any], choice: dict[str, Any], names: list[str]) -> None:
    """LOOP-21."""
    fields = {"tool_choice": choice} if choice else {}
    assert names_in(respond(messages, *tools, **fields)) == names


@pytest.mark.parametrize("failure", [BOOM, RETRIED], ids=["error", "retry"])
def test_tool_that_failed_three_times_is_told(failure: list[dict[str, Any]]) -> None:
    assert respond([HI, *failure * 3], WEATHER).startswith('You said: "Hi".\nweather failed with: ')


@pytest.mark.parametrize("extra", ["More about it.", "<system-reminder>Be brief.</system-reminder>"])
def test_text_beside_results_continues_the_turn(extra: str) -> None:
    reply = respond([user("Hi"), called("weather"), user(result("weather"), extra)], WEATHER)
    assert reply == 'You said: "Hi".\nweather returned: fine'


def test_call_without_a_result_counts_as_made() -> None:
    assert "weather returned: nothing yet" in respond([user("Hi"), called("weather"), user(FEEDBACK)], WEATHER)


@pytest.mark.parametrize("properties", [{}, None])
def test_forced_tool_is_called_alone_and_without_text(properties: object) -> None:
    choice = {"type": "tool", "name": "clock"}
    clock = {**CLOCK, "input_schema": {"type": "object", "properties": properties}}
    assert respond([user("Hi")], WEATHER, clock, tool_choice=choice) == [
        {"type": "tool_use", "name": "clock", "input": {}}
    ]


@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "any"}])
@pytest.mark.parametrize(
    "output",
    [
        OUTPUT,
        {**OUTPUT, "name": "final_result_Weather"},
        {**OUTPUT, "name": "mcp__agent__final_result"},
        {**OUTPUT, "name": "StructuredOutput"},
        {**OUTPUT, "name": "report", "description": "Report: The final response which ends this conversation"},
    ],
)
def test_output_tool_comes_last_and_alone(choice: dict[str, str], output: dict[str, Any]) -> None:
    """LOOP-22."""
    first = respond([user("Hi")], output, WEATHER, tool_choice=choice)
    assert names_in(first) == ["weather"]
    history = [user("Hi"), called("weather"), user(result("weather"))]
    last = respond(history, output, WEATHER, tool_choice=choice)
    assert last == [{"type": "tool_use", "name": output["name"], "input": {"city": "Paris"}}]


def test_schema_without_an_example_names_the_tool() -> None:
    with pytest.raises(SchemaError, match="tool 'odd': no example found"):
        respond(
            [user("Hi")], {"name": "odd", "input_schema": {"type": "object", "required": ["a"], "maxProperties": 0}}
        )


def test_official_client_runs_a_tool_loop_to_its_end(serve: Serve, connect: Connect) -> None:
    """LOOP-21."""
    client = connect(serve(None))
    messages: list[MessageParam] = [{"role": "user", "content": "What is the weather?"}]
    tools: list[ToolParam] = [{"name": "weather", "input_schema": CITY}, {"name": "clock", "input_schema": CITY}]
    for expected in ("tool_use", "end_turn"):
        with client.messages.stream(model="m", max_tokens=99, messages=messages, tools=tools) as stream:
            content = stream.get_final_message().content
            assert stream.get_final_message().stop_reason == expected
        results: list[ToolResultBlockParam] = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"{block.name} of {block.input['city']}"}
            for block in content
            if block.type == "tool_use"
        ]
        messages.append({"role": "assistant", "content": content})
        messages.append({"role": "user", "content": results})
    (last,) = [block for message in messages[3:4] for block in message["content"]]
    assert isinstance(last, TextBlock)
    assert last.text.endswith("weather returned: weather of Paris\nclock returned: clock of Paris")
