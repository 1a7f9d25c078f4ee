"""Claude Code messages and logs into typed responses and usage.

Pure functions over what is given to them. They know the shape of SDK messages and of stream-json, and no SDK, process,
file or framework.
"""

from .response import convert_sdk_messages_to_cli_response, extract_text_from_assistant_message
from .shapes import AssistantMessageLike
from .usage import convert_usage_dict_to_cli_usage

__all__ = [
    "AssistantMessageLike",
    "convert_sdk_messages_to_cli_response",
    "convert_usage_dict_to_cli_usage",
    "extract_text_from_assistant_message",
]
