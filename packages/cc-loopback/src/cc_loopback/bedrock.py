"""The Messages API's events and errors in the format of Amazon Bedrock.

Pure functions from the API's objects to Bedrock's. This module knows no paths, statuses or sockets.
"""

import base64
import json

from .eventstream import encode_message
from .types import JsonObject

EVENT_STREAM = "application/vnd.amazon.eventstream"
# If Bedrock has no exception of the same meaning, its most general one is used.
_EXCEPTION_BY_TYPE = {
    "invalid_request_error": "ValidationException",
    "authentication_error": "UnrecognizedClientException",
    "billing_error": "AccessDeniedException",
    "permission_error": "AccessDeniedException",
    "not_found_error": "ResourceNotFoundException",
    "request_too_large": "ValidationException",
    "rate_limit_error": "ThrottlingException",
    "api_error": "InternalServerException",
    "timeout_error": "ModelTimeoutException",
    "overloaded_error": "ServiceUnavailableException",
}


def encode_event(event: JsonObject) -> bytes:
    """Return one event of the API as a message of the stream; an `error` event becomes an exception."""
    if event["type"] == "error":
        name = _exception_name(event)
        kind = {":message-type": "exception", ":exception-type": name[0].lower() + name[1:]}
        payload: JsonObject = {"message": event["error"]["message"]}
    else:
        kind = {":message-type": "event", ":event-type": "chunk"}
        payload = {"bytes": base64.b64encode(_json(event)).decode()}
    return encode_message({**kind, ":content-type": "application/json"}, _json(payload))


def error_parts(body: JsonObject) -> tuple[JsonObject, dict[str, str]]:
    """Return the body and the headers of Bedrock's response for an error body of the API."""
    return {"message": body["error"]["message"]}, {"x-amzn-errortype": _exception_name(body)}


def _exception_name(body: JsonObject) -> str:
    """Return Amazon's name for an error type of the API; unknown types are returned unchanged."""
    kind: str = body["error"]["type"]
    return _EXCEPTION_BY_TYPE.get(kind, kind)


def _json(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
