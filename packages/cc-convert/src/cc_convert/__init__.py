"""Claude Code messages and logs into typed responses and usage.

The functions here are pure. They know the shape of SDK and stream-json messages,
and no SDK, process, file or framework. `cc_convert.logs` reads whole logs and computes their sums.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .messages.response import convert_sdk_messages_to_cli_response, extract_text_from_assistant_message
    from .messages.shapes import AssistantMessageLike
    from .messages.usage import convert_usage_dict_to_cli_usage

__all__ = [
    "AssistantMessageLike",
    "convert_sdk_messages_to_cli_response",
    "convert_usage_dict_to_cli_usage",
    "extract_text_from_assistant_message",
]

_PLACES = {
    "AssistantMessageLike": "shapes",
    "convert_sdk_messages_to_cli_response": "response",
    "convert_usage_dict_to_cli_usage": "usage",
    "extract_text_from_assistant_message": "response",
}


def __getattr__(name: str) -> object:
    # On demand: importing pydantic's models takes longer than a whole report over a small log.
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".messages.{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value
