"""The HTTP encodings of events, errors and request ids: the API's own, and Bedrock's. This module knows no requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import bedrock, events
from .types import JsonObject


@dataclass(frozen=True, slots=True)
class Dialect:
    """HTTP encoding of events, errors and request ids."""

    event_stream: str
    """Content type of a stream."""
    id_header: str
    """Header of the request id."""
    encode_event: Callable[[JsonObject], bytes]
    error_parts: Callable[[JsonObject], tuple[JsonObject, Mapping[str, str]]]
    """Function from an error body of the Messages API to the body and the headers of the response."""


ANTHROPIC = Dialect("text/event-stream; charset=utf-8", "request-id", events.encode_event, lambda body: (body, {}))
BEDROCK = Dialect(bedrock.EVENT_STREAM, "x-amzn-requestid", bedrock.encode_event, bedrock.error_parts)
