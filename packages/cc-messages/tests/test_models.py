"""`/v1/models` returns Claude Code's list, in pages as the API has them."""

from typing import Any

import pytest

from cc_messages.api.models import catalogue, find, page, resolve
from cc_types import APIError

LISTED: list[Any] = [
    {"value": "default", "resolvedModel": "claude-b-1", "displayName": "Default"},
    {"value": "a", "resolvedModel": "claude-a-1", "displayName": "A"},
    {"value": "b", "resolvedModel": "claude-b-1"},
    {"value": "claude-c-1", "resolvedModel": "claude-c-1", "displayName": "C"},
    {"value": 5},
    "nothing",
]
MODELS = catalogue(LISTED)


def test_aliases_and_ids_are_listed_once() -> None:
    """MSG-28"""
    names = [(model["id"], model["display_name"]) for model in MODELS]
    assert names == [
        ("default", "Default"),
        ("a", "A"),
        ("b", "b"),
        ("claude-c-1", "C"),
        ("claude-b-1", "claude-b-1"),
        ("claude-a-1", "claude-a-1"),
    ]
    assert catalogue(None) == []


def test_a_model_is_found_by_its_name() -> None:
    assert find(MODELS, "a")["type"] == "model"
    with pytest.raises(APIError) as caught:
        find(MODELS, "z")
    assert (caught.value.status, caught.value.error_type) == (404, "not_found_error")


def test_an_alias_stands_for_an_id() -> None:
    assert [resolve(LISTED, name) for name in ("a", "default", "claude-c-1", "z")] == [
        "claude-a-1",
        "claude-b-1",
        "claude-c-1",
        "z",
    ]
    assert resolve(None, "a") == "a"


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [
        ({}, ["default", "a", "b", "claude-c-1", "claude-b-1", "claude-a-1"], False),
        ({"limit": "2"}, ["default", "a"], True),
        ({"limit": "2", "after_id": "a"}, ["b", "claude-c-1"], True),
        ({"limit": "2", "after_id": "claude-b-1"}, ["claude-a-1"], False),
        ({"after_id": "claude-a-1"}, [], False),
        ({"limit": "2", "before_id": "claude-c-1"}, ["a", "b"], True),
        ({"before_id": "default"}, [], False),
    ],
)
def test_pages_are_those_of_the_api(query: dict[str, str], ids: list[str], more: bool) -> None:
    answer: Any = page(MODELS, query)
    assert [model["id"] for model in answer["data"]] == ids
    assert answer["has_more"] is more
    assert (answer["first_id"], answer["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "1001"}, {"limit": "x"}, {"after_id": "z"}])
def test_a_page_that_cannot_be_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(APIError, match=next(iter(query))) as caught:
        page(MODELS, query)
    assert caught.value.status == 400
