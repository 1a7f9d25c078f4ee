"""Paths on Vertex AI and Amazon Bedrock: the API path for the same request, and the response HTTP encoding."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from . import bedrock, events
from .types import JsonObject, JsonValue

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"
MODELS = "/v1/models"

_VERTEX = re.compile(
    r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamRawPredict|rawPredict)"
)
# A model may be an ARN, which contains slashes and colons.
_BEDROCK = re.compile(r"/model/(?P<model>.+)/invoke(?P<stream>-with-response-stream)?")
# In Vertex AI's path for token counts, this stands in place of the model, which is in the body.
_COUNTER = "count-tokens"


@dataclass(frozen=True, slots=True)
class Dialect:
    """HTTP encoding for events, errors and request ids."""

    event_stream: str
    """Content type of a stream."""
    id_header: str
    """Header for the request id."""
    encode_event: Callable[[JsonObject], bytes]
    error_parts: Callable[[JsonObject], tuple[JsonObject, Mapping[str, str]]]
    """Function from the Messages API error body to body and headers for the response."""


ANTHROPIC = Dialect("text/event-stream; charset=utf-8", "request-id", events.encode_event, lambda body: (body, {}))
BEDROCK = Dialect(bedrock.EVENT_STREAM, "x-amzn-requestid", bedrock.encode_event, bedrock.error_parts)


@dataclass(frozen=True, slots=True)
class Route:
    """The request that a path means."""

    path: str
    """The API path for the request."""
    fields: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Body fields that the path contains."""
    dialect: Dialect = ANTHROPIC


def route_of(path: str) -> Route:
    """Return the route for a path; any path outside the clouds stays unchanged."""
    if match := _VERTEX.fullmatch(path):
        model = match["model"]
        return Route(COUNT_TOKENS) if model == _COUNTER else Route(MESSAGES, {"model": model})
    if match := _BEDROCK.fullmatch(path):
        return Route(MESSAGES, {"model": match["model"], "stream": bool(match["stream"])}, BEDROCK)
    return Route(path)
