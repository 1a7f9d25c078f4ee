"""A body becomes a plan: refused parts, their errors, and the rest."""

import json
import re
from typing import Any

import pytest

from cc_messages.api.request import PLAIN_MODEL
from cc_messages.loop.request import parse_request
from cc_session.internals import Login
from cc_types import APIError
from warm_clients.api_data import text

HELLO = [{"role": "user", "content": "Hello."}]
BREAK = {"type": "ephemeral"}


def body(**fields: Any) -> bytes:
    full = {"model": "claude-m", "max_tokens": 9, "messages": HELLO, **fields}
    return json.dumps({name: value for name, value in full.items() if value is not ...}).encode()


def refused(data: bytes) -> str:
    with pytest.raises(APIError) as caught:
        parse_request(data)
    assert caught.value.status == 400
    assert caught.value.error_type == "invalid_request_error"
    return caught.value.message


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": ...}, "model: "),
    ({"model": ""}, "model: "),
    ({"model": 1}, "model: "),
    ({"model": "a\0b"}, "model: "),
    ({"model": "m" * 257}, "model: at most 256 characters are allowed, and it has 257"),
    ({"max_tokens": ...}, "max_tokens: Field required"),
    ({"max_tokens": None}, "max_tokens: Field required"),
    ({"stream": "yes"}, "stream: "),
    ({"messages": ...}, "messages: Field required"),
    ({"messages": []}, "messages: at least one"),
    ({"messages": "Hello."}, "messages: Input should be a valid list"),
    ({"messages": [*HELLO, None]}, r"messages\.1: Input should be an object"),
    ({"tools": 1}, "tools: Input should be a valid list"),
    ({"thread": {"type": "create"}}, "thread: "),
]


@pytest.mark.parametrize(("fields", "named"), WRONG)
def test_a_wrong_field_is_refused_by_its_name(fields: dict[str, Any], named: str) -> None:
    """MSG-09"""
    assert re.match(named, refused(body(**fields)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b'{"max_tokens": NaN}',
        b'{"temperature": 1e999}',
        b'{"system": "\\ud800"}',
        b'{"a": ' * 500_000 + b"1" + b"}" * 500_000,
        b"[" * 100_000,
        b'{"system": "\xed\xa0\x80"}',
        '{"system": ""}'.encode("utf-16"),
    ],
    ids=[
        "nothing",
        "half",
        "no unicode",
        "not a number",
        "infinite",
        "half a pair",
        "nested",
        "nested and open",
        "half a pair in bytes",
        "another encoding",
    ],
)
def test_a_body_that_is_not_json_is_refused(data: bytes) -> None:
    assert refused(data).startswith("The request body")


def test_a_body_that_is_not_an_object_is_refused() -> None:
    assert refused(b"[]") == "The request body must be a JSON object"


def test_a_body_is_passed_on_as_it_is() -> None:
    """MSG-01, MSG-02, MSG-03: right or wrong, the API sees it; the CLI sets `model` and `stream` itself."""
    odd: dict[str, Any] = {
        "max_tokens": "9",
        "temperature": None,
        "tools": ["g"],
        "something_new": {"a": []},
    }
    request = parse_request(body(system="Be brief.", stream=True, **odd), "b-2, a-1,")
    sent = {**odd, "model": "claude-m", "betas": ["b-2", "a-1"], "system": "Be brief.", "messages": HELLO}
    assert json.loads(request.extra_body) == sent
    assert (request.model, request.stream, request.betas, request.system) == ("claude-m", True, "", ())


MODELS: list[tuple[Login, str, bool]] = [
    (Login.API_KEY, "claude-haiku-4-5", True),
    (Login.API_KEY, "haiku", False),
    (Login.API_KEY, "claude-Sonnet-5", True),
    (Login.API_KEY, "claude-sonnet-5[1m]", False),
    (Login.GATEWAY, "my-model", False),
    (Login.SUBSCRIPTION, "claude-haiku-4-5", True),
    (Login.VERTEX, "claude-haiku-4-5@20251001", True),
    (Login.BEDROCK, "claude-haiku-4-5", False),
    (Login.BEDROCK, "us.anthropic.claude-haiku-4-5-20251001-v1:0", True),
    (Login.FOUNDRY, "claude-haiku-4-5", True),
    (Login.FOUNDRY, "my-deployment", False),
    (Login.FOUNDRY, "claude-Sonnet_Prod", True),
    (Login.CLOUD, "claude-haiku-4-5", False),
]


@pytest.mark.parametrize(("login", "model", "is_in_body"), MODELS)
def test_the_id_of_a_model_stands_in_the_body(login: Login, model: str, is_in_body: bool) -> None:
    """MSG-02, MSG-183: other names are set on the process, because the CLI has their ids."""
    request = parse_request(body(model=model), login=login)
    assert json.loads(request.extra_body).get("model") == (model if is_in_body else None)
    assert request.process_model == (PLAIN_MODEL if is_in_body else model)


def test_betas_stand_where_bedrock_takes_them() -> None:
    """MSG-73"""
    request = parse_request(body(), "b-2, a-1,", login=Login.BEDROCK)
    assert json.loads(request.extra_body)["anthropic_beta"] == ["b-2", "a-1"]


@pytest.mark.parametrize("name", ["betas", "user_profile_id", "workspace_id"])
@pytest.mark.parametrize("login", list(Login))
def test_headers_in_the_body_are_refused_as_by_the_api(login: Login, name: str) -> None:
    """MSG-73, MSG-180: Claude Code would make headers of them, for the login's betas, too."""
    for value in (["b-2"], "b-2", None):
        with pytest.raises(APIError, match=f"{name}: Extra inputs are not permitted"):
            parse_request(body(**{name: value}), login=login)


@pytest.mark.parametrize("system", [{}, 0, False, [None], "x", " "])
def test_a_system_prompt_that_is_not_empty_is_the_apis_to_judge(system: Any) -> None:
    """MSG-09"""
    assert json.loads(parse_request(body(system=system)).extra_body)["system"] == system


@pytest.mark.parametrize("login", [Login.SUBSCRIPTION, Login.CLOUD])
def test_a_logins_own_betas_are_extended_when_a_process_starts(login: Login) -> None:
    """MSG-02"""
    request = parse_request(body(), "b-2, a-1,", login=login)
    assert request.betas == "b-2, a-1,"
    assert "betas" not in json.loads(request.extra_body)


@pytest.mark.parametrize(("system", "stream"), [(None, None), ("", False), ([], ...), (..., ...)])
def test_by_default_no_system_prompt_replaces_the_clis_and_nothing_is_streamed(system: Any, stream: Any) -> None:
    request = parse_request(body(system=system, stream=stream))
    assert json.loads(request.extra_body)["system"] == []
    assert not request.stream


def test_with_a_subscription_the_system_prompt_is_the_clis_to_send() -> None:
    """MSG-07: the CLI's blocks precede the prompt; a CLI block from a client is repeated there."""
    system = [text("x-anthropic-billing-header: cc_version=1"), text("One.", cache_control=BREAK), text("Two.")]
    request = parse_request(body(system=system), login=Login.SUBSCRIPTION)
    assert request.system == ("One.", "Two.")
    assert "system" not in json.loads(request.extra_body)
    assert parse_request(body(system="Be brief."), login=Login.SUBSCRIPTION).system == ("Be brief.",)
    for wrong, place in ((1, "system: "), ([text("a"), {"type": "image"}], "system.1: only text blocks")):
        with pytest.raises(APIError, match=place):
            parse_request(body(system=wrong), login=Login.SUBSCRIPTION)
