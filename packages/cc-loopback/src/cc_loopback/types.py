"""The types that the package's public signatures name.

Lowest layer: it imports nothing of the package and knows no server.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonValue: TypeAlias = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""Anything that JSON can say."""

JsonObject: TypeAlias = dict[str, Any]
"""A parsed JSON object whose reader knows its shape; `Any`, so that a test can index into it without casts."""

Reply: TypeAlias = Sequence[Mapping[str, object]] | str | Mapping[str, object]
"""What a responder may return: content blocks, one text, or a message with `content`."""

Respond: TypeAlias = Callable[[JsonObject], Reply | Awaitable[Reply]]
"""Answers one request body, sync or async."""

Login: TypeAlias = Literal["api-key", "oauth", "vertex", "bedrock"]
"""How a CLI logs in: with an API key, with a subscription's token, on Vertex AI, or on Amazon Bedrock."""


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case; of a repeated header, the last value."""
    body: JsonObject | None
    """The parsed body, or None where it is empty or no JSON object."""
    raw: bytes = field(default=b"", repr=False)
    """The body as it came over the wire."""
