"""Cache breakpoints in a request that sets none."""

import copy
from typing import Any

import pytest

from cc_messages.api.breakpoints import with_breakpoints
from warm_clients.api_data import text

BREAK = {"cache_control": {"type": "ephemeral"}}
LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
TOOL: dict[str, Any] = {"name": "f", "input_schema": {"properties": {"cache_control": {"type": "string"}}}}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def assistant(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


PLACED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "system and last message": (
        {"tools": [TOOL], "system": "S", "messages": [user("a"), assistant("x"), user([text("b"), text("c")])]},
        {
            "tools": [TOOL],
            "system": [text("S", **BREAK)],
            "messages": [user("a"), assistant("x"), user([text("b"), text("c", **BREAK)])],
        },
    ),
    "tools without system": (
        {"tools": [TOOL, TOOL], "messages": [user("a")]},
        {"tools": [TOOL, {**TOOL, **BREAK}], "messages": [user([text("a", **BREAK)])]},
    ),
    "last block of the system": (
        {"system": [text("A"), text("B")], "messages": [user("a")]},
        {"system": [text("A"), text("B", **BREAK)], "messages": [user([text("a", **BREAK)])]},
    ),
    "a result": (
        {"messages": [user([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}])]},
        {"messages": [user([{"type": "tool_result", "tool_use_id": "t", "content": "ok", **BREAK}])]},
    ),
}


@pytest.mark.parametrize(("body", "placed"), PLACED.values(), ids=PLACED)
def test_breakpoints_stand_where_claude_code_places_them(body: dict[str, Any], placed: dict[str, Any]) -> None:
    """MSG-71"""
    before = copy.deepcopy(body)
    assert with_breakpoints(body) == placed
    assert body == before


UNTOUCHED: dict[str, dict[str, Any]] = {
    "automatic": {"system": "S", "messages": [user("a")], **BREAK},
    "at a tool": {"system": "S", "tools": [{**TOOL, **LONG}], "messages": [user("a")]},
    "in the system": {"system": [text("S", **LONG)], "messages": [user("a")]},
    "in an early message": {"system": "S", "messages": [user([text("a", **LONG)]), assistant("x"), user("b")]},
    "in a result": {
        "system": "S",
        "messages": [user([{"type": "tool_result", "tool_use_id": "t", "content": [text("r", **BREAK)]}])],
    },
}


@pytest.mark.parametrize("body", UNTOUCHED.values(), ids=UNTOUCHED)
def test_the_callers_breakpoints_are_the_only_ones(body: dict[str, Any]) -> None:
    """MSG-70"""
    assert with_breakpoints(body) == body


NO_PLACE: dict[str, dict[str, Any]] = {
    "blank texts": {"system": " ", "messages": [user("\n")]},
    "an answer begun": {"messages": [user("a"), assistant("I think")]},
    "unknown blocks": {"system": [{"type": "hologram"}], "messages": [user([{"type": "hologram"}])]},
    "nonsense": {"system": 1, "tools": "f", "messages": ["a"]},
}


@pytest.mark.parametrize("body", NO_PLACE.values(), ids=NO_PLACE)
def test_a_body_without_a_place_gets_no_breakpoint(body: dict[str, Any]) -> None:
    assert with_breakpoints(body) == body
