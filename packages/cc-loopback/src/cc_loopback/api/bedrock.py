"""The Messages API's events and errors in Amazon Bedrock's format. This module knows no paths, statuses or sockets."""

import base64
import json

from .eventstream import encode_message
from .types import JsonObject

EVENT_STREAM = "application/vnd.amazon.eventstream"
# Where Bedrock has no exception with the same meaning, the most general exception stands.
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
    """Return an event as a message in Amazon's event stream; an `error` event becomes an exception."""
    if event["type"] == "error":
        name = _exception_name(event)
        kind = {":message-type": "exception", ":exception-type": name[0].lower() + name[1:]}
        payload: JsonObject = {"message": event["error"]["message"]}
    else:
        kind = {":message-type": "event", ":event-type": "chunk"}
        payload = {"bytes": base64.b64encode(_json(event)).decode()}
    return encode_message({**kind, ":content-type": "application/json"}, _json(payload))


def error_parts(body: JsonObject) -> tuple[JsonObject, dict[str, str]]:
    """Return body and headers for Bedrock's response to an API error."""
    return {"message": body["error"]["message"]}, {"x-amzn-errortype": _exception_name(body)}


def _exception_name(body: JsonObject) -> str:
    """Return Amazon's name for the error type; an unknown type stays unchanged."""
    kind: str = body["error"]["type"]
    return _EXCEPTION_BY_TYPE.get(kind, kind)


def _json(value: JsonObject) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
