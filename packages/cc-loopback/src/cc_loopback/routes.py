"""The request behind a path: the API's own path for the same request, and the dialect of the answer.

Knows the paths of the API, of Vertex AI and of Amazon Bedrock. Whether a path is served is the application's business.
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
# A model may be an ARN, with slashes and colons in it.
_BEDROCK = re.compile(r"/model/(?P<model>.+)/invoke(?P<stream>-with-response-stream)?")
# What Vertex AI has for a model where tokens are counted; the model stands in the body.
_COUNTER = "count-tokens"


@dataclass(frozen=True, slots=True)
class Route:
    """The meaning of a path."""

    path: str
    """The API's own path for it."""
    fields: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The fields of the body that stand in this path."""
    dialect: Dialect = ANTHROPIC


def route_of(path: str) -> Route:
    """Return what a path means; one that no cloud has stands for itself."""
    if found := _VERTEX.fullmatch(path):
        model = found["model"]
        return Route(COUNT_TOKENS) if model == _COUNTER else Route(MESSAGES, {"model": model})
    if found := _BEDROCK.fullmatch(path):
        return Route(MESSAGES, {"model": found["model"], "stream": bool(found["stream"])}, BEDROCK)
    return Route(path)
