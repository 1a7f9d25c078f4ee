"""Convert a turn's messages to one `CLIResponse`. The result message has nearly all data."""

import logging
from collections.abc import Iterable, Mapping

from cc_types import CLIResponse

from .lenient import read
from .shapes import AssistantMessageLike, is_assistant, is_from_subagent, is_result, result_fields, texts
from .usage import checked_model_usage, checked_usage

_logger = logging.getLogger(__name__)


def convert_sdk_messages_to_cli_response(messages: Iterable[object]) -> CLIResponse:
    """Convert the messages in one or more turns; the last result counts.

    If that result has no text, the main thread's text since the result before it is used. An unusable field is left
    out after a warning, and so is a `structured_output` that is not an object.

    Args:
        messages: SDK messages, or dicts from stream-json, in order. Other kinds of message may be among them.

    Returns:
        The last result.

    Raises:
        ValueError: There are no messages, or no message is a result.
        MessageParseError: The result does not state how the turn ended.
    """
    all_messages = list(messages)
    position = _last_result(all_messages, len(all_messages))
    if not all_messages:
        raise ValueError("There are no messages to convert. Pass those of a whole turn, up to its result.")
    if position < 0:
        raise ValueError(
            f"None of the {len(all_messages)} messages is a result. Pass those of a whole turn, up to its result; "
            "if the stream ended without one, the CLI stopped before the turn was over."
        )
    fields = result_fields(all_messages[position])
    fields["type"] = "result"
    if fields.get("result") is None:
        fields["result"] = _text_before(all_messages, position)
    output = fields.get("structured_output")
    if output is not None and not isinstance(output, dict):
        _logger.warning("structured_output is of type %s and not an object; leaving it out", type(output).__name__)
        fields["structured_output"] = None
    fields["usage"] = checked_usage(fields.get("usage"))
    for name in ("modelUsage", "model_usage_since_last_result"):
        if name in fields:
            fields[name] = checked_model_usage(fields[name], name)
    return read(CLIResponse, fields, where="result")


def extract_text_from_assistant_message(message: AssistantMessageLike | Mapping[str, object]) -> str:
    """Extract the model text, without thinking and tool calls.

    Args:
        message: An assistant message from the SDK, or a dict from stream-json.

    Returns:
        The text blocks, joined with newlines; empty if there are none.
    """
    return "\n".join(texts(message))


def _last_result(messages: list[object], end: int) -> int:
    """Return the position of the last result before `end`; -1 without one."""
    return next((position for position in range(end - 1, -1, -1) if is_result(messages[position])), -1)


def _text_before(messages: list[object], end: int) -> str:
    turn = messages[_last_result(messages, end) + 1 : end]
    answers = (message for message in turn if is_assistant(message) and not is_from_subagent(message))
    return "\n".join(text for message in answers for text in texts(message))
