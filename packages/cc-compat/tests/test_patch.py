import importlib
import inspect
import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

from cc_compat.patch import apply
from cc_compat.wrapper import is_wrapped

OddSDK: TypeAlias = Callable[..., str]

RAISES = """
class MessageParseError(Exception): ...
def parse_message(data):
    raise MessageParseError("Unknown message type: " + data["type"])
"""
SKIPS = """
class MessageParseError(Exception): ...
def parse_message(data):
    return None
"""
USER = "from .message_parser import parse_message as parse"


def test_every_reference_is_replaced(odd_sdk: OddSDK) -> None:
    """SDK-ADD-09: also a reference under another name, and a reference taken after the import."""
    package = odd_sdk(
        init="__version__ = '0.1'; from ._internal import user", message_parser=RAISES, user=USER, late=USER
    )

    status = apply(package)

    late = importlib.import_module("odd_sdk._internal.late")
    user = importlib.import_module("odd_sdk._internal.user")
    assert late.parse is user.parse
    assert user.parse({"type": "weather_event"}) is None
    assert status.applied
    assert status.sdk_version == "0.1"
    assert status.patched == ("odd_sdk._internal.message_parser.parse_message", "odd_sdk._internal.user.parse")


@pytest.mark.parametrize(("parser", "skips"), [(RAISES, False), (SKIPS, True)])
def test_status_tells_whether_the_sdk_raises_or_skips(
    odd_sdk: OddSDK, caplog: pytest.LogCaptureFixture, parser: str, skips: bool
) -> None:
    """SDK-ADD-10"""
    status = apply(odd_sdk(message_parser=parser))

    importlib.import_module("odd_sdk._internal.message_parser").parse_message({"type": "weather_event"})
    assert (status.applied, status.sdk_skips_unknown) == (True, skips)
    assert (status.reason == "An unknown type no longer ends the stream.") != skips
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    ("parser", "reason"),
    [
        (None, "cannot be imported as expected: ModuleNotFoundError"),
        ("raise RuntimeError('broken')", "cannot be imported as expected: RuntimeError('broken')"),
        ("class MessageParseError(Exception): ...", "no parser at the known place"),
        ("MessageParseError = None\ndef parse_message(data): ...", "no parser at the known place"),
        ("class MessageParseError: ...\ndef parse_message(data): ...", "no parser at the known place"),
        (RAISES.replace("Unknown message type", "Unexpected message type"), "handles unknown types in a new way"),
        (SKIPS.replace("None", "data"), "handles unknown types in a new way"),
        (RAISES.replace("raise MessageParseError", "raise KeyError"), "handles unknown types in a new way"),
    ],
)
def test_an_unexpected_sdk_is_left_unchanged(odd_sdk: OddSDK, parser: str | None, reason: str) -> None:
    """SDK-EC-4, SDK-ADD-10"""
    files = {} if parser is None else {"message_parser": parser}

    status = apply(odd_sdk(**files))

    assert not status.applied
    assert reason in status.reason
    assert (status.patched, status.sdk_skips_unknown) == ((), None)
    module = sys.modules.get("odd_sdk._internal.message_parser")
    assert not is_wrapped(getattr(module, "parse_message", None))


def test_a_missing_sdk_does_not_raise() -> None:
    """SDK-EC-4"""
    status = apply("no_such_sdk")

    assert not status.applied
    assert status.sdk_version is None


def test_a_module_that_is_none_is_skipped(odd_sdk: OddSDK, monkeypatch: pytest.MonkeyPatch) -> None:
    package = odd_sdk(message_parser=RAISES)
    monkeypatch.setitem(sys.modules, "odd_sdk.blocked", None)  # pyright: ignore[reportArgumentType]

    assert apply(package).applied


def test_applying_twice_wraps_once(odd_sdk: OddSDK) -> None:
    """SDK-US3-3"""
    package = odd_sdk(message_parser=RAISES)

    assert apply(package) == apply(package)

    wrapper = importlib.import_module("odd_sdk._internal.message_parser").parse_message
    assert is_wrapped(wrapper)
    assert not is_wrapped(inspect.unwrap(wrapper))
