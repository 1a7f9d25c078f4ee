"""Routing of paths: the API's own path for the same request, and the dialect of the response.

This module knows the paths of the API, of Vertex AI and of Amazon Bedrock. The application decides which are served.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .dialects import ANTHROPIC, BEDROCK, Dialect
from .types import JsonValue

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"
MODELS = "/v1/models"

_VERTEX = re.compile(
    r"/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamRawPredict|rawPredict)"
)
# A model may be an ARN, which contains slashes and colons.
_BEDROCK = re.compile(r"/model/(?P<model>.+)/invoke(?P<stream>-with-response-stream)?")
# In the path for counting tokens, Vertex AI has this in place of the model, which is in the body.
_COUNTER = "count-tokens"


@dataclass(frozen=True, slots=True)
class Route:
    """The request that a path means."""

    path: str
    """The API's own path for the request."""
    fields: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Fields of the body that are given in the path."""
    dialect: Dialect = ANTHROPIC


def route_of(path: str) -> Route:
    """Return the route of a path; a path of no cloud is returned unchanged."""
    if found := _VERTEX.fullmatch(path):
        model = found["model"]
        return Route(COUNT_TOKENS) if model == _COUNTER else Route(MESSAGES, {"model": model})
    if found := _BEDROCK.fullmatch(path):
        return Route(MESSAGES, {"model": found["model"], "stream": bool(found["stream"])}, BEDROCK)
    return Route(path)
