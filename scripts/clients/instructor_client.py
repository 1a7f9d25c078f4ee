"""The instructor library over the official client: every answer has a type."""

from typing import Any

import instructor
from abilities import (
    CITY,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG_BASE64,
    REFUSE,
    WRONG_TOKEN,
    failure,
    report,
)
from anthropic import Anthropic
from city import City

claude = instructor.from_anthropic(Anthropic())


def ask(content: Any, client: Any = claude) -> Any:
    """Return a city."""
    messages = [{"role": "user", "content": content}]
    return client.create(response_model=City, model=MODEL, max_tokens=100, messages=messages, max_retries=1)


def text(prompt: str = HELLO) -> str:
    """Return a text, without a type."""
    messages: Any = [{"role": "user", "content": prompt}]
    return claude.create(response_model=None, model=MODEL, max_tokens=100, messages=messages).content[0].text


def stream() -> list[str]:
    """Return the parts of a city as they come."""
    messages: Any = [{"role": "user", "content": CITY}]
    parts = [*claude.create_partial(response_model=City, model=MODEL, max_tokens=100, messages=messages)]
    return [part.model_dump() for part in parts]


def images() -> str:
    """Ask about an image."""
    seen = ask([LOOK, instructor.Image(source="", media_type="image/png", data=PNG_BASE64)])
    return seen.name


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    text(REFUSE)
    refused = failure(lambda: ask(CITY))
    stranger = failure(lambda: ask(CITY, instructor.from_anthropic(Anthropic(api_key=WRONG_TOKEN))))
    text(OVERLOAD)
    return [refused, stranger, text()]


report(
    "instructor",
    "anthropic",
    text=text,
    stream=stream,
    structured=lambda: ask(CITY).model_dump(),
    images=images,
    errors=errors,
)
