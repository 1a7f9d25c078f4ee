"""Options with which the CLI calls a server's tools in its own loop, and the longest text of a result."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from claude_agent_sdk import ClaudeAgentOptions
from mcp.types import ContentBlock, TextContent

from cc_types import JsonValue

from .names import server_rule

TOOL_CALL_ID: Final = "claudecode/toolUseId"
"""Key in the `_meta` of the CLI's `tools/call` for the call id that the model uses."""

LONGEST_CALL: Final = 2**31 - 1
"""The CLI's longest time for a tool call, in milliseconds. A person may have to answer."""

_PATIENT = {
    "MCP_TOOL_TIMEOUT": str(LONGEST_CALL),
    # A longer result would go into a file, and the path to the model. The second such limit is in the tool's `_meta`.
    "MAX_MCP_OUTPUT_TOKENS": "100000000",
}

# Longest result in UTF-16 units. The CLI puts a longer result into a file, unless an image is with it.
_MAX_TEXT = 500_000

TOOL_META: Final[Mapping[str, JsonValue]] = {
    # The tool stands in the request from the start, not behind the CLI tool search.
    "anthropic/alwaysLoad": True,
    "anthropic/maxResultSizeChars": _MAX_TEXT,
}
"""`_meta` for a tool that the model sees from the start, and whose results it gets unchanged."""


def calling_freely(options: ClaudeAgentOptions, name: str) -> ClaudeAgentOptions:
    """Return options with which the CLI calls an MCP server's tools without permissions and limits, and continues."""
    return replace(
        options,
        allowed_tools=[*options.allowed_tools, server_rule(name)],
        # The CLI loop goes on after an answer, with a second API call.
        max_turns=None if options.max_turns == 1 else options.max_turns,
        env={**_PATIENT, **options.env},
    )


def check_length(blocks: Sequence[ContentBlock]) -> None:
    """Raise `ValueError` if the CLI would put a tool result into a file, and only name the file to the model."""
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    length = sum(len(text.encode("utf-16-le", "surrogatepass")) // 2 for text in texts)
    if length > _MAX_TEXT and len(texts) == len(blocks):
        raise ValueError(f"A tool's text can have {_MAX_TEXT} characters (of UTF-16); this text has {length}")
