"""The model's answers: the last prompt's mark, with the format, delay and size that the prompt requests.

A mark is unique to a run, so that an answer for another run is detected.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

MARK = re.compile(r"<\d+>")
MARK_HEADER = "x-mark"
"""Header for the run's mark, which not all requests have."""

SLOWLY = "slowly"
"""In a prompt: the answer starts after `SLOW_SECONDS`."""
HUGELY = "hugely"
"""In a prompt: the answer has `HUGE_CHARACTERS`."""

SLOW_SECONDS = 2.0
HUGE_CHARACTERS = 10_000_000

LOOK = "look"
"""Tool name; the tool is called if it is available."""
FAILED = "look failed"
"""In an answer: the tool's result was an error."""

_WORD = "word " * 200


class MixedUpError(Exception):
    """A request with marks from several runs."""


def marks_of(body: Mapping[str, Any], header: str = "") -> list[str]:
    """Return the different marks in a request: from messages first, then from other fields and the header."""
    return [*dict.fromkeys(MARK.findall(f"{body.get('messages')} {body} {header}"))]


async def respond(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Answer a request; raise `MixedUpError` if it has marks from several runs."""
    marks = {*marks_of(body)}
    if len(marks) > 1:
        raise MixedUpError(f"a request has the marks {sorted(marks)}")
    mark = next(iter(marks), "nothing")
    last = _blocks(body["messages"][-1])
    result = next((block for block in last if block["type"] == "tool_result"), None)
    prompt = " ".join(str(block.get("text", "")) for block in last)
    if SLOWLY in prompt:
        await asyncio.sleep(SLOW_SECONDS)
    if call := _call(body, is_answered=result is not None):
        return [{"type": "tool_use", "name": call, "input": {"mark": mark}}]
    if "format" in (body.get("output_config") or {}):
        return f'{{"mark": "{mark}"}}'
    answer = f"Found {mark}. {_result_text(result)} " + "And so on. " * 10
    return answer + _WORD * (HUGE_CHARACTERS // len(_WORD)) if HUGELY in prompt else answer


def _call(body: Mapping[str, Any], *, is_answered: bool) -> str | None:
    """Return the name of the tool to call, as in the request: with a prefix if the CLI runs the loop."""
    names = [str(tool.get("name")) for tool in cast("list[dict[str, Any]]", body.get("tools") or [])]
    if not is_answered and (look := next((name for name in names if name.split("__")[-1] == LOOK), None)):
        return look
    return "final_result" if "final_result" in names else None


def _blocks(message: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[dict[str, Any]]", content)


def _result_text(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return ""
    if result.get("is_error"):
        return f"{FAILED}: {str(result.get('content'))[:200]}."
    content = result.get("content") or ""
    return content if isinstance(content, str) else " ".join(str(block.get("text")) for block in content)
