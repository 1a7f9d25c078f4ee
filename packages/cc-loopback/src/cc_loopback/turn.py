"""The current turn of a conversation: the last prompt and the tool calls since then.

Text that clients add to messages, such as feedback and reminders, is not a prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .api.types import JsonObject

_TRY_AGAIN = "Fix the errors and try again"
# User text that no user wrote: an agent's feedback about invalid output, and the CLI reminders.
_FEEDBACK = ("<pyai:validation_errors>", "<pyai:retry_feedback>", _TRY_AGAIN)
_REMINDER = "<system-reminder>"
_OUTPUT_TOOL_NAMES = ("final_result", "StructuredOutput")
_OUTPUT_TOOL_DESCRIPTION = "The final response which ends this conversation"


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A tool call with the result so far."""

    name: str
    failed: bool
    result: str


@dataclass(frozen=True, slots=True)
class CurrentTurn:
    """The last prompt as text, and the tool calls since then."""

    prompt: str
    runs: Sequence[ToolRun]

    def runs_of(self, name: str) -> list[ToolRun]:
        """Return the calls to a tool, oldest first."""
        return [run for run in self.runs if run.name == name]


def is_output_tool(name: str, description: str = "") -> bool:
    """Return true if a tool takes an agent's final output, by name or description, as the API has no such field."""
    return name.split("__")[-1].startswith(_OUTPUT_TOOL_NAMES) or _OUTPUT_TOOL_DESCRIPTION in description


def current_turn(messages: Sequence[JsonObject]) -> CurrentTurn:
    """Return the turn that the next assistant message belongs to.

    A user message starts a turn if it contains more than tool results, feedback on an output and reminders. A message
    with results continues the turn, because tools may add text, unless a result belongs to the output tool, which ended
    the previous turn.
    """
    names = {block["id"]: block["name"] for message in messages for block in _of_type(message, "tool_use")}
    start = max((index for index, message in enumerate(messages) if _is_prompt(message, names)), default=0)
    results = {block["tool_use_id"]: block for message in messages for block in _of_type(message, "tool_result")}
    calls = [block for message in messages[start:] for block in _of_type(message, "tool_use")]
    runs = [_run(call, results.get(call["id"])) for call in calls]
    return CurrentTurn(prompt=" ".join(_prompt_texts(messages[start])), runs=runs)


def texts_of(content: str | Sequence[JsonObject] | None) -> list[str]:
    """Return the texts in the content of a message, system prompt or tool result."""
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if block.get("type") == "text"]


def _of_type(message: JsonObject, kind: str) -> list[JsonObject]:
    return [block for block in _blocks(message) if block.get("type") == kind]


def _blocks(message: JsonObject) -> list[JsonObject]:
    content: str | list[JsonObject] = message.get("content", [])
    return [] if isinstance(content, str) else content


def _is_prompt(message: JsonObject, names: dict[str, str]) -> bool:
    if message["role"] != "user":
        return False
    results = _of_type(message, "tool_result")
    outputs = [result for result in results if is_output_tool(names.get(result["tool_use_id"], ""))]
    if results and all(map(_failed, outputs)):
        return False
    # An image or a document is a prompt, too.
    media = any(block.get("type") not in ("text", "tool_result") for block in _blocks(message))
    return media or bool(_prompt_texts(message))


def _prompt_texts(message: JsonObject) -> list[str]:
    texts = texts_of(message.get("content"))
    return [text for text in texts if not text.startswith(_REMINDER) and not any(mark in text for mark in _FEEDBACK)]


def _run(call: JsonObject, result: JsonObject | None) -> ToolRun:
    if result is None:
        return ToolRun(call["name"], failed=False, result="nothing yet")
    text = " ".join(texts_of(result.get("content")))
    return ToolRun(call["name"], failed=_failed(result), result=text)


def _failed(result: JsonObject) -> bool:
    return bool(result.get("is_error")) or any(_TRY_AGAIN in text for text in texts_of(result.get("content")))
