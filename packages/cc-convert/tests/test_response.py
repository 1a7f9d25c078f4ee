import logging
from collections.abc import Callable
from typing import TypeAlias

import pytest

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse, CLIUsage, DeferredToolUse, MessageParseError, ModelUsage, PermissionDenial

Frame: TypeAlias = dict[str, object]
Form: TypeAlias = Callable[[Frame], object]


RESULT: Frame = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 203, "duration_api_ms": 81,
    "num_turns": 1, "session_id": "s1",
}  # fmt: skip


def result(**fields: object) -> Frame:
    return RESULT | fields


def assistant(*texts: str, parent: str | None = None) -> Frame:
    content = [{"type": "text", "text": text} for text in texts]
    return {"type": "assistant", "message": {"model": "m", "content": content}, "parent_tool_use_id": parent}


def test_the_text_the_metadata_and_the_usage_are_in_the_response(form: Form) -> None:
    """SDK-US1-1, SDK-FR-001"""
    plain = {"total_cost_usd": 0.25, "stop_reason": "end_turn", "terminal_reason": "completed", "uuid": "u1"}
    denial = {"tool_name": "Read", "tool_use_id": "t1", "tool_input": {"file_path": "x"}}
    deferred = {"id": "t2", "name": "Bash", "input": {"command": "ls"}}
    full = result(
        result="Sunny.",
        usage={"input_tokens": 100, "output_tokens": 20},
        modelUsage={"m": {"inputTokens": 100, "costUSD": 0.25}},
        permission_denials=[denial],
        deferred_tool_use=deferred,
        **plain,
    )

    response = convert_sdk_messages_to_cli_response([form(assistant("Let me see.")), form(full)])

    assert response == CLIResponse(
        subtype="success", is_error=False, duration_ms=203, duration_api_ms=81, num_turns=1, session_id="s1",
        result="Sunny.", total_cost_usd=0.25, stop_reason="end_turn", terminal_reason="completed", uuid="u1",
        usage=CLIUsage(input_tokens=100, output_tokens=20),
        model_usage={"m": ModelUsage(input_tokens=100, cost_usd=0.25)},
        permission_denials=[PermissionDenial(tool_name="Read", tool_use_id="t1", tool_input={"file_path": "x"})],
        deferred_tool_use=DeferredToolUse(id="t2", name="Bash", input={"command": "ls"}),
    )  # fmt: skip
    assert CLIResponse.model_validate_json(response.model_dump_json()) == response  # SDK-ADD-02


def test_the_last_result_wins(form: Form) -> None:
    """SDK-US1-2"""
    messages = [result(result="first", session_id="s1"), assistant("and"), result(result="second", session_id="s2")]

    response = convert_sdk_messages_to_cli_response(form(message) for message in messages)

    assert (response.result, response.session_id) == ("second", "s2")


ONE, NOTHING = result(result="one"), result(result=None)


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([result(result="done"), assistant("the next turn begins"), None], "done"),
        ([assistant("Let me", "see."), assistant(), assistant("Sunny."), NOTHING], "Let me\nsee.\nSunny."),
        ([assistant("thinking"), result(result="")], ""),
        ([assistant("one"), ONE, assistant("two"), NOTHING], "two"),
        ([assistant("one"), ONE, NOTHING], ""),
        ([assistant("Asking."), assistant("Hi", parent="toolu_1"), assistant("Done."), NOTHING], "Asking.\nDone."),
        ([assistant("Sunny."), None, NOTHING], "Sunny."),
    ],
    ids=["behind", "several", "empty", "of an earlier turn", "of no turn", "of a subagent", "gap"],
)
def test_a_result_without_text_takes_the_assistants_text(form: Form, messages: list[Frame | None], text: str) -> None:
    """SDK-US1-2, SDK-US1-3, SDK-US3-1: messages after the last result do not matter, and an empty text is a text.

    A gap is the parser's `None`, which the SDK yields for an unknown message before 0.1.44.
    """
    turn = [message and form(message) for message in messages]

    assert convert_sdk_messages_to_cli_response(turn).result == text


def test_a_result_that_lacks_the_field_takes_the_assistants_text() -> None:
    """SDK-US1-3: on an error the CLI omits the field."""
    assert convert_sdk_messages_to_cli_response([assistant("Let me see."), result()]).result == "Let me see."


def test_an_object_is_carried_as_structured_output(form: Form) -> None:
    """SDK-US1-4"""
    output = {"city": "Paris", "days": [{"high": 21.5, "rain": None}]}

    assert convert_sdk_messages_to_cli_response([form(result(structured_output=output))]).structured_output == output


@pytest.mark.parametrize("output", [["a"], "text", 3, True])
def test_any_other_structured_output_is_left_out_with_a_warning(
    form: Form, output: object, caplog: pytest.LogCaptureFixture
) -> None:
    """SDK-EC-5, SDK-EC-1"""
    response = convert_sdk_messages_to_cli_response([form(result(structured_output=output))])

    assert response.structured_output is None
    assert [record.message for record in caplog.records] == [
        f"structured_output is of type {type(output).__name__} and not an object; leaving it out"
    ]


def test_messages_without_a_result_are_refused(form: Form) -> None:
    """SDK-EC-2, SDK-EC-3"""
    with pytest.raises(ValueError, match="no messages to convert"):
        convert_sdk_messages_to_cli_response([])
    with pytest.raises(ValueError, match="None of the 2 messages is a result"):
        convert_sdk_messages_to_cli_response([form(assistant("Let me see.")), None])


def test_the_messages_are_left_as_they_are() -> None:
    """SDK-DP-5: the functions are pure."""
    usage: dict[str, object] = {"input_tokens": "many", "server_tool_use": {"web_search_requests": -1}}
    frame = result(usage=usage, modelUsage={"m": {"inputTokens": None}}, errors=[1], structured_output=[])
    before = repr(frame)

    convert_sdk_messages_to_cli_response([frame])

    assert repr(frame) == before


UNUSABLE: list[tuple[str, object, object]] = [
    ("duration_ms", "soon", 0),
    ("num_turns", -1, 0),
    ("total_cost_usd", float("nan"), None),
    ("session_id", 7, None),
    ("uuid", ["u"], None),
    ("errors", "odd", None),
    ("errors", ["good", 3, "too", None], ["good", "too"]),
    ("modelUsage", [], None),
    ("modelUsage", {"a": 3, "b": {}}, {"b": ModelUsage()}),
    ("modelUsage", {"b": {"costUSD": "dear"}}, {"b": ModelUsage()}),
    ("permission_denials", [{"tool_name": "Read"}, 3], []),
    ("permission_denials", [{"tool_name": [], "tool_use_id": []}], []),
    ("origin", {"kind": {1, 2}}, {}),
    ("origin", {1: 2}, {}),
]


@pytest.mark.parametrize(("field", "value", "expected"), UNUSABLE)
def test_what_is_unusable_is_left_out_and_the_rest_is_kept(
    field: str, value: object, expected: object, caplog: pytest.LogCaptureFixture
) -> None:
    """SDK-EC-1: robust, and never silent."""
    response = convert_sdk_messages_to_cli_response([result(result="kept", **{field: value})])

    assert getattr(response, "model_usage" if field == "modelUsage" else field) == expected
    assert response.result == "kept"
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert all(record.message.startswith(f"Left out result.{field}") for record in caplog.records)


def test_a_warning_never_shows_the_value(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-ADD-08"""
    secret = "the prompt said so"
    usage = {"input_tokens": secret, "service_tier": [secret], "server_tool_use": secret, "iterations": secret}

    convert_sdk_messages_to_cli_response(
        [result(result=[secret], usage=usage, structured_output=secret, errors=[{"text": secret}], origin=secret)]
    )

    assert len(caplog.records) >= 6
    assert secret not in caplog.text


@pytest.mark.parametrize("field", ["subtype", "is_error"])
def test_a_result_must_state_how_the_turn_ended(form: Form, field: str) -> None:
    """SDK-EC-1: neither field has a default."""
    with pytest.raises(MessageParseError, match=field) as caught:
        convert_sdk_messages_to_cli_response([form(result(**{field: None}))])

    assert isinstance(caught.value.data, dict)
    assert caught.value.data["session_id"] == "s1"
    with pytest.raises(MessageParseError, match="the field subtype is missing"):
        convert_sdk_messages_to_cli_response([{"type": "result", "is_error": False}])
