"""HTTP encodings for events, errors and request ids: the API's own, and Bedrock's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import bedrock, events
from .types import JsonObject


@dataclass(frozen=True, slots=True)
class Dialect:
    """HTTP encoding for events, errors and request ids."""

    event_stream: str
    """Content type of a stream."""
    id_header: str
    """Header for the request id."""
    encode_event: Callable[[JsonObject], bytes]
    error_parts: Callable[[JsonObject], tuple[JsonObject, Mapping[str, str]]]
    """Function from the Messages API's error body to body and headers for the response."""


ANTHROPIC = Dialect("text/event-stream; charset=utf-8", "request-id", events.encode_event, lambda body: (body, {}))
BEDROCK = Dialect(bedrock.EVENT_STREAM, "x-amzn-requestid", bedrock.encode_event, bedrock.error_parts)
