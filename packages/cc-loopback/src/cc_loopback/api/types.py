"""Types in the package's public signatures."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonValue: TypeAlias = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
"""Any JSON value."""

JsonObject: TypeAlias = dict[str, Any]
"""A parsed JSON object with a known shape; with `Any`, so that a test can index it without casts."""

Reply: TypeAlias = Sequence[Mapping[str, object]] | str | Mapping[str, object]
"""A responder's return value: content blocks, a text, or a message with `content`."""

Respond: TypeAlias = Callable[[JsonObject], Reply | Awaitable[Reply]]
"""Responder: a sync or async function from a request body to a reply."""

Login: TypeAlias = Literal["api-key", "oauth", "vertex", "bedrock", "foundry"]
"""A CLI login: an API key, a subscription's OAuth token, Vertex AI, or Amazon Bedrock."""


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request as received."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Headers, names in lower case; a repeated header has the last value."""
    body: JsonObject | None
    """The parsed body, or None if it is empty or not a JSON object."""
    raw: bytes = field(default=b"", repr=False)
    """The body as received."""
