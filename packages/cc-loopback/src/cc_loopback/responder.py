"""The default responder: it calls each offered tool once, and then returns the output or a summary.

With it, any agent runs to the end without a script and without a network. This module knows no HTTP.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .api.types import JsonObject, JsonValue, Reply
from .turn import CurrentTurn, current_turn, is_output_tool, texts_of

# A call, and two more after errors: enough to see a retry, and a limit if a tool always fails.
_MAX_CALLS = 3
_PROMPT_WORDS = 8
_RESULT_LENGTH = 80
# pydantic-ai's prompt for an output that uses neither a tool nor the API format.
_PROMPTED_SCHEMA = "Always respond with a JSON object that's compatible with this schema:"


def default_respond(body: JsonObject) -> Reply:
    """Answer a request.

    All tools that were not called in this turn are called in one message, with arguments valid for their schemas. A
    tool whose last result was an error is called again, at most three times in all. Then comes the output: a call to
    the output tool alone, or JSON for `output_config.format` or for a schema in the prompt, or else a summary as text.

    Raises:
        SchemaError: No valid arguments or output were found for a schema.
    """
    turn = current_turn(body["messages"])
    choice: Mapping[str, Any] = body.get("tool_choice") or {"type": "auto"}
    tools = _tools_to_call(_offered(body), turn, choice)
    if tools:
        forced = choice["type"] != "auto"
        return _calls(tools, silent=forced or _is_output(tools[0]))
    schema = _output_schema(body)
    return _summary(turn) if schema is None else json.dumps(_example(schema))


def _offered(body: JsonObject) -> list[JsonObject]:
    """Return the tools that the client runs. Deferred tools are left out, as a model must search for them first."""
    return [tool for tool in body.get("tools") or () if "input_schema" in tool and not tool.get("defer_loading")]


def _tools_to_call(tools: list[JsonObject], turn: CurrentTurn, choice: Mapping[str, Any]) -> list[JsonObject]:
    if choice["type"] == "none":
        return []
    if choice["type"] == "tool":
        return _may_repeat([tool for tool in tools if tool["name"] == choice["name"]], turn)
    functions = [tool for tool in tools if not _is_output(tool)]
    outputs = [tool for tool in tools if _is_output(tool)]
    runs = {tool["name"]: turn.runs_of(tool["name"]) for tool in tools}
    due = [tool for tool in functions if not runs[tool["name"]] or runs[tool["name"]][-1].failed]
    due = [tool for tool in due if len(runs[tool["name"]]) < _MAX_CALLS]
    if due:
        return due[:1] if choice.get("disable_parallel_tool_use") else due
    # A run needs only one output tool.
    if _may_repeat(outputs, turn) and all(run.failed for tool in outputs for run in runs[tool["name"]]):
        return outputs[:1]
    return _may_repeat(outputs or functions, turn) if choice["type"] == "any" else []


def _is_output(tool: JsonObject) -> bool:
    return is_output_tool(tool["name"], tool.get("description") or "")


def _may_repeat(tools: list[JsonObject], turn: CurrentTurn) -> list[JsonObject]:
    """Return the first tool, for a client that requires a call, unless it was called `_MAX_CALLS` times."""
    return [tool for tool in tools[:1] if len(turn.runs_of(tool["name"])) < _MAX_CALLS]


def _calls(tools: Sequence[JsonObject], *, silent: bool) -> list[JsonObject]:
    names = " and ".join(tool["name"] for tool in tools)
    # As with the API, a forced call comes without text.
    text: list[JsonObject] = [] if silent else [{"type": "text", "text": f"I will call {names}."}]
    return [*text, *({"type": "tool_use", "name": tool["name"], "input": _arguments(tool)} for tool in tools)]


def _example(schema: Mapping[str, Any]) -> JsonValue:
    # Imported here: jsonschema takes longer to import than the whole server, and a scripted server does not need it.
    from .schemas.schema import example

    return example(schema)


def _arguments(tool: JsonObject) -> JsonValue:
    from .schemas.schema import SchemaError

    schema = {name: value for name, value in tool["input_schema"].items() if value is not None}  # as the API takes it
    try:
        return _example(schema)
    except SchemaError as error:
        raise SchemaError(f"tool {tool['name']!r}: {error}") from error


def _output_schema(body: JsonObject) -> Mapping[str, Any] | None:
    config: JsonObject = body.get("output_config") or {}
    output_format: JsonObject = config.get("format") or {}
    return output_format["schema"] if output_format.get("type") == "json_schema" else _prompted_schema(body)


def _prompted_schema(body: JsonObject) -> Mapping[str, Any] | None:
    texts = texts_of(body.get("system"))
    texts += [text for message in body["messages"] for text in texts_of(message.get("content"))]
    for text in reversed(texts):
        _, marker, rest = text.rpartition(_PROMPTED_SCHEMA)
        if marker:
            try:
                return json.JSONDecoder().raw_decode(rest[rest.index("{") :])[0]
            except ValueError:
                continue
    return None


def _summary(turn: CurrentTurn) -> str:
    words = turn.prompt.split()
    start = " ".join(words[:_PROMPT_WORDS]) + (" …" if len(words) > _PROMPT_WORDS else "")
    lines = [f'You said: "{start}".']
    last_runs = {run.name: run for run in turn.runs}.values()
    lines += [
        f"{run.name} {'failed with' if run.failed else 'returned'}: {_shortened(run.result)}" for run in last_runs
    ]
    return "\n".join(lines)


def _shortened(text: str) -> str:
    return text if len(text) <= _RESULT_LENGTH else f"{text[:_RESULT_LENGTH]}…"
