"""Put log texts into the page: escaped, and answers with their Markdown rendered if the extra `html` is installed.

A log's HTML stays text, and nothing is loaded. No other module puts a log text into the page.
"""

import re
from collections.abc import Callable
from functools import cache
from html import escape
from typing import Any

from ..extras import has_extra, need

# Control characters cannot be shown, and those that change the writing direction can mislead.
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
# An answer without these characters is plain paragraphs; rendering takes most of a page's time.
_MARKS = re.compile(r"[*_`#|\[\]<>&\\~]|^\s*(?:[-+=]|\d+[.)])|^ {4}|\t", re.MULTILINE)
_SCHEMES = ("http://", "https://", "mailto:")


def _harmless(value: str) -> str:
    """Replace characters that cannot be shown or that mislead. A carriage return ends a line, as on Windows."""
    if "\r" in value:
        value = value.replace("\r\n", "\n").replace("\r", "\n")
    return _HARMFUL.sub("\N{REPLACEMENT CHARACTER}", value)


def text(value: str) -> str:
    """Escape a text for any place in a page, including quoted attributes."""
    return escape(_harmless(value), quote=True)


def shortened(value: str, most: int) -> str:
    """Escape a text for a page; cut a long text and count the cut characters."""
    if len(value) <= most:
        return text(value)
    return f"{text(value[:most])}\n[{len(value) - most:,} more characters are in the log]"


@cache
def renders_markdown() -> bool:
    """Return true if the extra is installed."""
    return has_extra("markdown_it")


def answer_html(answer: str) -> str:
    """Return an answer for the page."""
    if not renders_markdown():
        return f"<pre>{text(answer)}</pre>"
    if not _MARKS.search(answer):
        paragraphs = (text(part.strip()) for part in answer.split("\n\n") if part.strip())
        return f'<div class="md">{"".join(f"<p>{part}</p>" for part in paragraphs)}</div>'
    # Cleaned again: an entity in the Markdown can stand for a harmful character.
    return f'<div class="md">{_harmless(_renderer()(_harmless(answer)))}</div>'


@cache
def _renderer() -> Callable[[str], str]:
    parser: Any = need("markdown_it", "Rendered Markdown").MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = _is_safe_link
    parser.add_render_rule("image", _image)
    parser.core.ruler.push("plain", _without_styles)
    return parser.render


def _is_safe_link(address: str) -> bool:
    """Return true if a link leads to a page or a mailbox; a relative one leads nowhere from a report."""
    return address.lower().startswith(_SCHEMES)


def _image(renderer: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """Render an image as a link, since a page loads nothing."""
    token = tokens[at]
    name = renderer.renderInlineAsText(token.children, options, env) or "image"
    return f'<a href="{text(str(token.attrs["src"]))}" rel="noreferrer">{text(name)}</a>'


def _without_styles(state: Any) -> None:
    """Replace table cells' style attributes, which the page policy forbids, and let links send no address."""
    for token in state.tokens:
        if "text-align:right" in str(token.attrs.pop("style", "")):
            token.attrSet("class", "n")
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noreferrer")
