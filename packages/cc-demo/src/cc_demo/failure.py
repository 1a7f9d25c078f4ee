"""From an exception to the paragraph that the user of the demo reads."""

from collections.abc import Mapping
from typing import cast

from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError

from .login import AnswerSource

__all__ = ["explain"]


def explain(error: Exception, login: AnswerSource) -> str:
    """Return the error and the action to take, in one paragraph."""
    advice = "" if login is AnswerSource.OFFLINE else "`cc-demo --offline` needs no login."
    return " ".join(filter(None, (_what(error), advice)))


def _what(error: Exception) -> str:
    match error:
        case ModelHTTPError():
            said = _sentence(_api_message(error.body))
            return f"The API answered with status {error.status_code}: {said} {error.hint or ''}".rstrip()
        case UserError() | AgentRunError():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error} (With --debug you see where.)"


def _api_message(body: object) -> str:
    """The message in an error of the API, or all that came instead."""
    error = _field(body, "error")
    return str(body if error is None else _field(error, "message") or error)


def _field(value: object, name: str) -> object:
    return cast("Mapping[str, object]", value).get(name) if isinstance(value, Mapping) else None


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", ")")) else f"{text}."
