"""MCP servers of a caller whose tools the CLI calls in its own loop: the options that let it, and a result's length.

The server itself is the caller's. Nothing here knows a session.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from claude_agent_sdk import ClaudeAgentOptions
from mcp.types import ContentBlock, TextContent

from cc_types import JsonValue

__all__ = ["TOOL_CALL_ID", "TOOL_META", "calling_freely", "check_length"]

TOOL_CALL_ID: Final = "claudecode/toolUseId"
"""Key in the `_meta` of the CLI's `tools/call` with the id of the model's call."""

_PATIENT = {
    # A person may have to answer. In milliseconds; the maximum of the CLI.
    "MCP_TOOL_TIMEOUT": "2147483647",
    # A longer result would go into a file, and its path to the model. The second limit of that kind is in the tool's
    # `_meta`.
    "MAX_MCP_OUTPUT_TOKENS": "100000000",
}

# The CLI's maximum for the length of a result, in UTF-16 units. It puts a longer one into a file, unless an image is
# with it.
_MAX_TEXT = 500_000

TOOL_META: Final[Mapping[str, JsonValue]] = {
    # A tool in the request from the start, not behind the CLI's tool search.
    "anthropic/alwaysLoad": True,
    "anthropic/maxResultSizeChars": _MAX_TEXT,
}
"""`_meta` of a tool that the model sees from the start, and whose results it gets unchanged."""


def calling_freely(options: ClaudeAgentOptions, name: str) -> ClaudeAgentOptions:
    """Return options with which the CLI calls the tools of an MCP server without a permission and without a limit.

    It continues by itself after each answer.
    """
    return replace(
        options,
        allowed_tools=[*options.allowed_tools, f"mcp__{name}"],
        # The CLI's own loop goes on after an answer, which takes a second API call.
        max_turns=None if options.max_turns == 1 else options.max_turns,
        env={**_PATIENT, **options.env},
    )


def check_length(blocks: Sequence[ContentBlock]) -> None:
    """Raise if the CLI would put a tool's result into a file and name it to the model.

    Raises:
        ValueError: The texts are longer than the CLI allows.
    """
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    length = sum(len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in texts)
    if length > _MAX_TEXT and len(texts) == len(blocks):
        raise ValueError(f"A tool's text can have {_MAX_TEXT} characters (of UTF-16); this one has {length}")
