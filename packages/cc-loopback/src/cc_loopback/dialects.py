"""The two ways in which events, errors and request ids are put into HTTP. Knows no request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import bedrock, events
from .types import JsonObject


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an API puts events, errors and request ids into HTTP."""

    event_stream: str
    """The content type of a stream."""
    id_header: str
    """The header of the request id."""
    encode_event: Callable[[JsonObject], bytes]
    error_parts: Callable[[JsonObject], tuple[JsonObject, Mapping[str, str]]]
    """The body and the headers that say what an error body of the Messages API says."""


ANTHROPIC = Dialect("text/event-stream; charset=utf-8", "request-id", events.encode_event, lambda body: (body, {}))
BEDROCK = Dialect(bedrock.EVENT_STREAM, "x-amzn-requestid", bedrock.encode_event, bedrock.error_parts)
