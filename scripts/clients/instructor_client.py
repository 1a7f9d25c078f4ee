"""The instructor library over the official client: every answer has a type."""

from typing import Any

import abilities
import instructor
from abilities import CITY, LOOK, TOKEN, failure, request
from anthropic import Anthropic
from city import City


def claude(token: str = TOKEN) -> instructor.Instructor:
    return instructor.from_anthropic(Anthropic(api_key=token))


def typed(content: Any, *token: str) -> Any:
    return claude(*token).create(response_model=City, max_retries=1, **request(content))


def text(prompt: str = abilities.HELLO) -> str:
    return claude().create(response_model=None, **request(prompt)).content[0].text


def stream() -> list[str]:
    return [part.model_dump() for part in claude().create_partial(response_model=City, **request(CITY))]


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    text(abilities.REFUSE)
    refused, stranger = failure(lambda: typed(CITY)), failure(lambda: typed(CITY, abilities.WRONG_TOKEN))
    text(abilities.OVERLOAD)
    return [refused, stranger, text()]


IMAGE = instructor.Image(source="", media_type="image/png", data=abilities.PNG_BASE64)
abilities.report(
    text,
    "instructor",
    "anthropic",
    stream=stream,
    structured=lambda: typed(CITY).model_dump(),
    images=lambda: typed([LOOK, IMAGE]).name,
    errors=errors,
)
