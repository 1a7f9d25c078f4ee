"""Constants for the programs in this folder, and `report()`, which prints a JSON line for each client ability.

Standard library only: each program runs in the client's environment. `check_clients.py` scripts the API and judges
the results.
"""

import base64
import importlib.metadata
import json
import os
from collections.abc import Callable
from typing import Any

MODEL = "claude-sonnet-5"
HELLO = "Say hello."
WEATHER = "What is the weather in Paris?"
CITY = "Which city?"
LOOK = "What is in the image?"
# The API then answers the next request with the status.
REFUSE = "Refuse the next request with 400."
OVERLOAD = "Refuse the next request with 529."
WRONG_TOKEN = "wrong"
URL, TOKEN = os.environ.get("ANTHROPIC_BASE_URL", ""), os.environ.get("ANTHROPIC_API_KEY", "")

CITY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
    "additionalProperties": False,
}
WEATHER_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da63fcff1f0003030200efa2a75b"
    "0000000049454e44ae426082"
)
PNG_BASE64 = base64.b64encode(PNG).decode()

# The same question for the Messages API, and for chat completions.
IMAGE = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}},
    {"type": "text", "text": LOOK},
]
CHAT_IMAGE = [
    {"type": "text", "text": LOOK},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_BASE64}"}},
]


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


def request(content: Any) -> Any:
    """Return the arguments for a request to the Messages API with one prompt."""
    return {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": content}]}


def failure(function: Callable[[], object]) -> str:
    """Return the class and the text of the exception that a call raises."""
    try:
        value = function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"no error, but {value!r}")


def report(
    ask: Callable[..., str],
    *packages: str,
    refuse: str = REFUSE,
    retried: Callable[[str], str] | None = None,
    versions: dict[str, str] | None = None,
    **abilities: Callable[[], object] | None,
) -> None:
    """Print the versions of packages, and the result of each ability.

    Args:
        ask: Returns the answer to a prompt as text; a second argument replaces the right token.
        packages: Distribution names.
        refuse: The prompt after which the API refuses a request.
        retried: As `ask`, but repeats a request after a 529; None if `ask` does.
        versions: Versions of programs that are not distributions.
        abilities: Functions by ability; text and errors have a default. None for an ability that is not tried.
    """

    def errors() -> list[str]:
        ask(refuse)
        refused, stranger = failure(lambda: ask(HELLO)), failure(lambda: ask(HELLO, WRONG_TOKEN))
        ask(OVERLOAD)
        return [refused, stranger, (retried or ask)(HELLO)]

    _say("versions", value={**(versions or {}), **{name: importlib.metadata.version(name) for name in packages}})
    for name, ability in {"text": lambda: ask(HELLO), "errors": errors, **abilities}.items():
        if ability is None:
            continue
        try:
            _say(name, value=ability())
        except Exception as error:
            _say(name, error=f"{type(error).__name__}: {error}")


def _say(name: str, **result: object) -> None:
    print(json.dumps({"ability": name, **result}, default=str), flush=True)
