"""Answers of the model: the mark of the last prompt, with the format, delay and size that the prompt requests.

A mark is unique to a run, so that an answer for another run is detected.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

MARK = re.compile(r"<\d+>")
MARK_HEADER = "x-mark"
"""Header of a request with the mark of its run, which not all have."""

SLOWLY = "slowly"
"""In a prompt: the answer starts after `SLOW_SECONDS`."""
HUGELY = "hugely"
"""In a prompt: the answer has `HUGE_CHARACTERS`."""

SLOW_SECONDS = 2.0
HUGE_CHARACTERS = 10_000_000

LOOK = "look"
"""Name of the tool that is called if it is available."""
FAILED = "look failed"
"""Part of the answer if the tool's result was an error."""

_WORD = "word " * 200


class MixedUpError(Exception):
    """A request that contains marks of several runs."""


def marks_of(body: Mapping[str, Any], header: str = "") -> list[str]:
    """Return the different marks in a request: those in its messages come first, then other fields and its header."""
    return [*dict.fromkeys(MARK.findall(f"{body.get('messages')} {body} {header}"))]


async def respond(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Answer a request.

    Raises:
        MixedUpError: It has marks of several runs.
    """
    marks = {*marks_of(body)}
    if len(marks) > 1:
        raise MixedUpError(f"a request has the marks {sorted(marks)}")
    mark = next(iter(marks), "nothing")
    last = _blocks(body["messages"][-1])
    result = next((block for block in last if block["type"] == "tool_result"), None)
    prompt = " ".join(str(block.get("text", "")) for block in last)
    if SLOWLY in prompt:
        await asyncio.sleep(SLOW_SECONDS)
    call = _call(body, mark, is_answered=result is not None)
    if call is not None:
        return [{"type": "tool_use", "name": call, "input": {"mark": mark}}]
    if "format" in (body.get("output_config") or {}):
        return f'{{"mark": "{mark}"}}'
    answer = f"Found {mark}. {_seen(result)} " + "And so on. " * 10
    return answer + _WORD * (HUGE_CHARACTERS // len(_WORD)) if HUGELY in prompt else answer


def _call(body: Mapping[str, Any], mark: str, *, is_answered: bool) -> str | None:
    """Return the name of the tool to call, as in the request: with a prefix if the CLI runs the loop."""
    names = [str(tool.get("name")) for tool in cast("list[dict[str, Any]]", body.get("tools") or [])]
    if not is_answered and (look := next((name for name in names if name.split("__")[-1] == LOOK), None)):
        return look
    return "final_result" if "final_result" in names else None


def _blocks(message: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[dict[str, Any]]", content)


def _seen(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return ""
    if result.get("is_error"):
        return f"{FAILED}: {str(result.get('content'))[:200]}."
    content = result.get("content") or ""
    return content if isinstance(content, str) else " ".join(str(block.get("text")) for block in content)
