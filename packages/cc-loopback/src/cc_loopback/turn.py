"""What has happened in a conversation since its last prompt.

Reads a request's messages and tells prompts from what clients add to them; decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .types import JsonObject

_TRY_AGAIN = "Fix the errors and try again"
# User text that no user wrote: what agents say about an output they refuse, and what the CLI slips in.
_FEEDBACK = ("<pyai:validation_errors>", "<pyai:retry_feedback>", _TRY_AGAIN)
_REMINDER = "<system-reminder>"
_OUTPUT_TOOL_NAMES = ("final_result", "StructuredOutput")
_OUTPUT_TOOL_DESCRIPTION = "The final response which ends this conversation"


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One tool call, and what came of it so far."""

    name: str
    failed: bool
    result: str


@dataclass(frozen=True, slots=True)
class Turn:
    """The last prompt's text, and the tool calls since then."""

    prompt: str
    runs: Sequence[ToolRun]

    def runs_of(self, name: str) -> list[ToolRun]:
        """Return the calls of one tool, oldest first."""
        return [run for run in self.runs if run.name == name]


def is_output_tool(name: str, description: str = "") -> bool:
    """Whether a tool takes an agent's final output: the API does not say, so its name or description must tell."""
    return name.split("__")[-1].startswith(_OUTPUT_TOOL_NAMES) or _OUTPUT_TOOL_DESCRIPTION in description


def current_turn(messages: Sequence[JsonObject]) -> Turn:
    """Return the turn that the next assistant message belongs to.

    A user message starts a turn if it holds more than tool results, feedback on an output and reminders. With results
    in it, it goes on with the turn, since tools may add text of their own, unless the output was among them: that ended
    the turn before.
    """
    names = {block["id"]: block["name"] for message in messages for block in _of_type(message, "tool_use")}
    start = max((index for index, message in enumerate(messages) if _is_prompt(message, names)), default=0)
    results = {block["tool_use_id"]: block for message in messages for block in _of_type(message, "tool_result")}
    calls = [block for message in messages[start:] for block in _of_type(message, "tool_use")]
    runs = [_run(call, results.get(call["id"])) for call in calls]
    return Turn(prompt=" ".join(_prompt_texts(messages[start])), runs=runs)


def texts_of(content: str | Sequence[JsonObject] | None) -> list[str]:
    """Return the texts in a message's, a system prompt's or a tool result's content."""
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if block.get("type") == "text"]


def _of_type(message: JsonObject, kind: str) -> list[JsonObject]:
    return [block for block in _blocks(message) if block.get("type") == kind]


def _blocks(message: JsonObject) -> list[JsonObject]:
    content: str | list[JsonObject] = message["content"]
    return [] if isinstance(content, str) else content


def _is_prompt(message: JsonObject, names: dict[str, str]) -> bool:
    if message["role"] != "user":
        return False
    results = _of_type(message, "tool_result")
    if results and not any(_ended_turn(result, names) for result in results):
        return False
    # An image or a document makes a prompt too.
    media = any(block.get("type") not in ("text", "tool_result") for block in _blocks(message))
    return media or bool(_prompt_texts(message))


def _ended_turn(result: JsonObject, names: dict[str, str]) -> bool:
    return is_output_tool(names.get(result["tool_use_id"], "")) and not _failed(result)


def _prompt_texts(message: JsonObject) -> list[str]:
    texts = texts_of(message["content"])
    return [text for text in texts if not text.startswith(_REMINDER) and not any(mark in text for mark in _FEEDBACK)]


def _run(call: JsonObject, result: JsonObject | None) -> ToolRun:
    if result is None:
        return ToolRun(call["name"], failed=False, result="nothing yet")
    text = " ".join(texts_of(result.get("content")))
    return ToolRun(call["name"], failed=_failed(result), result=text)


def _failed(result: JsonObject) -> bool:
    return bool(result.get("is_error")) or any(_TRY_AGAIN in text for text in texts_of(result.get("content")))
