"""MCP servers whose tools the CLI calls in its loop."""

import sys
from dataclasses import replace

import pytest
from claude_agent_sdk import ClaudeAgentOptions
from mcp.types import ContentBlock, ImageContent, TextContent

from cc_session.internals import calling_freely, check_length

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

LONGEST = "w" * 500_000


def test_a_limit_of_turns_and_other_tools_stay(options: ClaudeAgentOptions) -> None:
    """SES-95: but not the sealed limit, a single API call."""
    own = calling_freely(replace(options, max_turns=2, allowed_tools=["Read"]), "calls")
    assert (own.max_turns, own.allowed_tools) == (2, ["Read", "mcp__calls"])
    assert calling_freely(options, "calls").max_turns is None


def test_results_that_the_cli_would_put_into_a_file_are_refused() -> None:
    """SES-95: counted in UTF-16; with an image beside it, a text may be longer."""
    image = ImageContent(type="image", data="", mime_type="image/png")
    fitting: list[list[ContentBlock]] = [[], [_text(LONGEST)], [_text(LONGEST + "w"), image]]
    for blocks in fitting:
        check_length(blocks)
    for blocks in ([_text(LONGEST + "w")], [_text("\N{GRINNING FACE}" * 150_000)] * 2):
        with pytest.raises(ValueError, match=r"500000 characters.*has [56]0000[01]"):
            check_length(blocks)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
