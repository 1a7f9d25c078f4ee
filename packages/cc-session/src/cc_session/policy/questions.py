"""Questions to the user: Claude's, those in forms of MCP servers, and the CLI dialogs.

Each question goes to the caller's function, within a deadline. A question without an answer is refused: an unanswered
dialog would block the turn.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from claude_agent_sdk import HookContext, HookJSONOutput, PermissionResult, PermissionResultAllow, PermissionResultDeny

from cc_types import JsonValue

from ..hooks.calls import CallbackRunner, CallerGoneError
from ..identity import value_class
from ..mcp.names import mcp_name

logger = logging.getLogger(__name__)

QUESTION_TOOL = "AskUserQuestion"
"""The tool with which Claude asks the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question to the user."""

    kind: Literal["question", "form", "dialog"]
    """`"question"` from Claude, with the tool `AskUserQuestion`; `"form"` from an MCP server (elicitation);
    `"dialog"` from the CLI."""
    source: str
    """`"Claude"`, the MCP server name, or the kind of dialog, such as `"refusal_fallback_prompt"`."""
    text: str
    """Text for the user; empty for a dialog."""
    details: Mapping[str, Any]
    """The CLI fields. A question has `questions`, each with `question`, `header`, `multiSelect` and `options` with
    `label` and `description`. A form has `mode`: `"form"` with `requested_schema`, or `"url"` with `url`. A dialog has
    its payload."""


Answer: TypeAlias = Callable[[Question], Awaitable[JsonValue] | JsonValue]


@value_class
@dataclass(frozen=True, slots=True)
class Questions:
    """A program's answers to questions to the user, for `Session.open(questions=…)`.

    ```python
    async def answer(question: Question) -> JsonValue:
        return {part["question"]: part["options"][0]["label"] for part in question.details["questions"]}
    ```

    Raises:
        TypeError: `answer` is not callable.
        ValueError: `dialogs` is a text.
    """

    answer: Answer
    """Returns the answer, or None to refuse. A coroutine function runs on the event loop of the turn's caller, any
    other function in a thread, where it runs on, without effect, when the turn ends or `Timeouts.question` seconds are
    over; a coroutine is cancelled then.

    The answer to a question: for each question text, a text, which need not be an option, or several in a list. To a
    form: its fields, and `{}` to agree to an address (mode `"url"`). To a dialog: the result, as the CLI defines it."""
    dialogs: Sequence[str] = ()
    """Kinds of dialogs that `answer` knows. The CLI sends no others, and goes on without them."""

    def __post_init__(self) -> None:
        if not callable(self.answer):
            raise TypeError(f"Questions() takes the function that answers, not {self.answer!r}")
        if isinstance(self.dialogs, str):
            raise ValueError(f"dialogs is a sequence of names, not a text: write dialogs=[{self.dialogs!r}]")
        object.__setattr__(self, "dialogs", tuple(self.dialogs))


class QuestionDesk:
    """A session's questions, as callbacks for the CLI. They never raise."""

    def __init__(self, questions: Questions | None, callback_runner: CallbackRunner, seconds: float | None) -> None:
        self.can_answer = questions is not None
        self.dialogs = () if questions is None else tuple(questions.dialogs)
        self._questions, self._callback_runner, self._seconds = questions, callback_runner, seconds

    async def permission(self, input: Mapping[str, Any], turn: str | None) -> PermissionResult:
        """Return the permission for a call to `QUESTION_TOOL`, with the answers in the input."""
        text = "\n".join(str(part.get("question")) for part in input.get("questions", []))
        question = Question(kind="question", source="Claude", text=text, details=input)
        answers, refusal = await self._answer(turn, question)
        if refusal:
            return PermissionResultDeny(message=f"The user has not answered: {refusal}.")
        try:
            return PermissionResultAllow(updated_input={**input, "answers": _texts(answers)})
        except TypeError as error:
            logger.error("The answer to a question of Claude's is not used", exc_info=error)
            return PermissionResultDeny(message="The user has not answered: the program's answer has a wrong type.")

    async def control(self, request: Any, _id: str | None, _context: HookContext) -> HookJSONOutput:
        """Return the response to a control request of the CLI for an answer."""
        match request:
            case {"subtype": "elicitation", "mcp_server_name": str(server), "message": str(text)}:
                question = Question(kind="form", source=server, text=text, details=request)
                content, refusal = await self._answer(None, question)
                if not refusal and not isinstance(content, Mapping):
                    logger.error("The answer to a form of %s is not used: it is %r, not a dict", server, type(content))
                    refusal = "the program's answer has a wrong type"
                response = {"action": "decline"} if refusal else {"action": "accept", "content": content}
            case {"subtype": "request_user_dialog", "dialog_kind": str(kind), "payload": {**payload}}:
                question = Question(kind="dialog", source=kind, text="", details=payload)
                result, refusal = await self._answer(None, question)
                response = {"behavior": "cancelled"} if refusal else {"behavior": "completed", "result": result}
            case _:
                raise ValueError(f"a question without the expected fields: {request!r}")
        return cast(HookJSONOutput, response)

    async def _answer(self, turn: str | None, question: Question) -> tuple[JsonValue, str]:
        """Return the caller's answer, and an empty text or else the reason why there is none."""
        if self._questions is None:
            logger.warning(
                "%s asked the user %r, and was refused: Questions(answer) for the session would answer",
                question.source, question.text,
            )  # fmt: skip
            return None, "nobody can answer in this session"
        prefix = mcp_name(question.source, "")
        if question.kind == "form" and any(tool.startswith(prefix) for tool in self._callback_runner.left_tools):
            logger.warning("A form of %s is declined: an abandoned turn may be the one that it is for", question.source)
            return None, "nobody knows for which turn it is"
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                answer = await self._callback_runner.call(turn, self._questions.answer, question)
            return answer, "the program refused" if answer is None else ""
        except CallerGoneError as error:
            return None, str(error)
        except Exception as error:
            is_late = limit.expired() and isinstance(error, TimeoutError)
            refusal = f"no answer within {self._seconds:g} seconds" if is_late else "the program failed"
            cause = None if is_late else error
            logger.error("%s asked the user %r: %s", question.source, question.text, refusal, exc_info=cause)
            return None, refusal


def _texts(answers: JsonValue) -> dict[str, str]:
    """Return the answers as the CLI takes them: several answers to a question are one text."""
    if not isinstance(answers, Mapping):
        raise TypeError(f"the answer to a question is a dict from its text, not {answers!r}")
    return {
        question: ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer)
        for question, answer in answers.items()
    }
