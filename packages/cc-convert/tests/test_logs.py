"""Logs that the CLI wrote, read without an SDK."""

from collections.abc import Callable
from typing import TypeAlias

import pytest

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse

Frame: TypeAlias = dict[str, object]
Log: TypeAlias = Callable[[str], list[Frame]]


@pytest.mark.parametrize(
    ("name", "text", "succeeded", "tokens"),
    [
        ("tool_call", "The file says: sunny, 21 degrees.", True, 240),
        ("api_error", "API Error: 400 messages: too odd", False, 0),
        ("max_turns", "Let me look.", False, 120),
        ("structured_output", '{"city":"Paris","temp":3}', True, 120),
    ],
)
def test_a_recorded_log_converts_as_plain_validation_reads_it(
    recorded: Log, name: str, text: str, tokens: int, caplog: pytest.LogCaptureFixture, *, succeeded: bool
) -> None:
    """SDK-ADD-13, SDK-US1-1, SDK-FR-001"""
    messages = recorded(name)

    response = convert_sdk_messages_to_cli_response(messages)

    assert (response.result, response.succeeded) == (text, succeeded)
    assert response.usage.input_tokens + response.usage.output_tokens == tokens
    assert (response.model_extra, caplog.records) == ({}, [])
    assert response == CLIResponse.model_validate(messages[-1]).model_copy(update={"result": text})


@pytest.mark.parametrize("name", ["tool_call", "api_error", "max_turns", "structured_output"])
def test_what_the_sdk_carries_of_a_log_converts_alike(recorded: Log, name: str) -> None:
    """SDK-ADD-05: through the SDK's own parser. It passes on fewer fields than the CLI sends."""
    parser = pytest.importorskip("claude_agent_sdk._internal.message_parser")
    messages = recorded(name)

    raw = convert_sdk_messages_to_cli_response(messages)
    parsed = convert_sdk_messages_to_cli_response([parser.parse_message(message) for message in messages])

    carried = parsed.model_dump(exclude_none=True)
    assert carried == {name: value for name, value in raw.model_dump(exclude_none=True).items() if name in carried}
    assert {"result", "usage", "modelUsage", "permission_denials", "terminal_reason"} <= carried.keys()
