"""Render an answer's Markdown, if the extra `html` is installed. A log's HTML stays text, and nothing is loaded."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..extras import has_extra, need
from .safe import harmless, text

__all__ = ["answer_html", "renders_markdown"]

# An answer without these characters is plain paragraphs; rendering takes most of a page's time.
_MARKS = re.compile(r"[*_`#|\[\]<>&\\~]|^\s*(?:[-+=]|\d+[.)])|^ {4}|\t", re.MULTILINE)
_SCHEMES = ("http://", "https://", "mailto:")


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
    return f'<div class="md">{harmless(_renderer()(harmless(answer)))}</div>'


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
    """Replace table cells' style attributes, which the page's policy forbids, and let links send no address."""
    for token in state.tokens:
        if "text-align:right" in str(token.attrs.pop("style", "")):
            token.attrSet("class", "n")
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("rel", "noreferrer")
