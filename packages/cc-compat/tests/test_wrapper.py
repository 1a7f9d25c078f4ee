import importlib
from typing import Any

import pytest

from cc_compat.wrapper import is_wrapped, surviving_unknown_types

# From the parser's own module, as in the patch: not every version of the SDK has a public name for it.
MessageParseError: type[Exception] = importlib.import_module("claude_agent_sdk._errors").MessageParseError


def raising(message: str) -> Any:
    def parse_message(data: object) -> object:
        raise MessageParseError(message)

    return surviving_unknown_types(parse_message, MessageParseError)


def test_an_unknown_type_is_none_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US3-1: as SDK versions before 0.1.44 report it."""
    parse = raising("Unknown message type: weather_event")

    assert parse({"type": "weather_event", "sky": "blue"}) is None
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "Skipped a message of the unknown type 'weather_event': {'sky': 'blue', 'type': 'weather_event'}",
        )
    ]


@pytest.mark.parametrize(
    "message", ["Missing required field in user message: 'content'", "unknown message type: x", ""]
)
def test_every_other_parse_error_passes_untouched(message: str, caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US3-2, SDK-EC-4: also an unknown type, if it is worded in another way."""
    with pytest.raises(MessageParseError) as caught:
        raising(message)({"type": "weather_event"})

    assert str(caught.value) == message
    assert caplog.records == []


def test_errors_of_other_kinds_pass_untouched() -> None:
    """SDK-US3-2"""

    def parse_message(data: object) -> object:
        raise KeyError("Unknown message type: weather_event")

    with pytest.raises(KeyError):
        surviving_unknown_types(parse_message, MessageParseError)({"type": "weather_event"})


def test_a_parser_that_skips_by_itself_gets_the_warning_only(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-ADD-10"""
    parse = surviving_unknown_types(dict[str, object]().get, MessageParseError)

    assert parse("weather_event") is None
    assert len(caplog.records) == 1


def test_large_data_is_shortened_in_the_warning(caplog: pytest.LogCaptureFixture) -> None:
    """SDK-US3-1, SDK-ADD-09"""
    raising("Unknown message type: x")({"type": "x", "data": [["long " * 100_000] * 100] * 100})

    assert 500 < len(caplog.records[0].getMessage()) < 600


def test_data_that_is_no_object_is_warned_about_too(caplog: pytest.LogCaptureFixture) -> None:
    raising("Unknown message type: x")(["x"])

    assert [record.getMessage() for record in caplog.records] == ["Skipped a message of the unknown type ?: ['x']"]


def test_a_wrapper_is_told_from_a_parser() -> None:
    assert is_wrapped(raising(""))
    assert not is_wrapped(str)
