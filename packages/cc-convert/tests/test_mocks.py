"""Test doubles, as callers' tests use them."""

from unittest.mock import MagicMock

import pytest

from cc_convert import convert_sdk_messages_to_cli_response, extract_text_from_assistant_message
from cc_types import CLIUsage


def test_doubles_of_sdk_messages_convert() -> None:
    """SDK-US1-1: a double has the attributes that were set on it, and mocks for all others."""
    sdk = pytest.importorskip("claude_agent_sdk")
    text = MagicMock(spec=sdk.TextBlock, text="Sunny.")
    assistant = MagicMock(spec=sdk.AssistantMessage, model="m", content=[MagicMock(spec=sdk.ThinkingBlock), text])
    result = MagicMock(spec=sdk.ResultMessage, subtype="success", is_error=False, num_turns=1, result=None, usage=None)

    response = convert_sdk_messages_to_cli_response([assistant, result])

    assert (response.result, response.usage, response.model_extra) == ("Sunny.", CLIUsage(), {})
    assert extract_text_from_assistant_message(assistant) == "Sunny."
