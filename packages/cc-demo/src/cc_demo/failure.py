"""Conversion from an exception to the paragraph that the demo's user reads."""

from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError

from .login import AnswerSource


def explain(error: Exception, login: AnswerSource) -> str:
    """Return the error and the action to take, in a paragraph."""
    match error:
        case ModelHTTPError():
            text = f"The API answered with status {error.status_code}: {_api_message(error.body)}. {error.hint or ''}"
        case UserError() | AgentRunError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error} (With --debug you see where.)"
    return text.rstrip() if login is AnswerSource.OFFLINE else f"{text.rstrip()} `cc-demo --offline` needs no login."


def _api_message(body: object) -> str:
    """Return the message from the API's error body, or another body as a text."""
    match body:
        case {"error": {"message": str(message)}}:
            return message.rstrip(".")
        case _:
            return str(body)
