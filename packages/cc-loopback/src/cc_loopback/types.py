"""Types of the package's public signatures.

This is the lowest layer: it imports nothing of the package.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonValue: TypeAlias = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""Any JSON value."""

JsonObject: TypeAlias = dict[str, Any]
"""A parsed JSON object of a known shape; with `Any`, so that a test can index it without casts."""

Reply: TypeAlias = Sequence[Mapping[str, object]] | str | Mapping[str, object]
"""Return value of a responder: content blocks, one text, or a message with `content`."""

Respond: TypeAlias = Callable[[JsonObject], Reply | Awaitable[Reply]]
"""Responder: a sync or async function from a request body to a reply."""

Login: TypeAlias = Literal["api-key", "oauth", "vertex", "bedrock"]
"""Login of a CLI: an API key, a subscription's OAuth token, Vertex AI, or Amazon Bedrock."""


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request as received."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers with names in lower case; for a repeated header, the last value."""
    body: JsonObject | None
    """The parsed body, or None if it is empty or not a JSON object."""
    raw: bytes = field(default=b"", repr=False)
    """The body as received."""
