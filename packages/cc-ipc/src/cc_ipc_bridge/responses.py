"""Conversion from the parent responses to MCP responses, without I/O.

A result may have megabytes. It is decoded, so that the client never gets invalid JSON, and the original bytes are
passed on.
"""

from __future__ import annotations

from .payload import decode_json, decode_json_at, encode_json
from .protocol import INTERNAL_ERROR, INVALID_PARAMS, error_line, result_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cc_types import JsonValue

    from .protocol import CallFrame

_TOOL_NOT_FOUND = "ToolNotFoundError"

# How `cc_ipc.IPCServer` begins a response.
_RESULT = b'{"result":'
_MODERN_RESULT = b'{"resultType":"complete",'


def response_line(call: CallFrame, payload: bytes) -> bytes:
    """Return the response to a call as a line."""
    try:
        return _line(call, payload)
    except ValueError as error:
        return _fault(call, f"The response of the parent process is not JSON: {error}")


def _line(call: CallFrame, payload: bytes) -> bytes:
    result = _cut_result(payload)
    if result is not None:
        return _answer(call, *result)
    message = decode_json(payload)
    if not isinstance(message, dict) or ("result" in message) == ("error" in message):
        return _fault(call, "The response of the parent process must have either 'result' or 'error'")
    if "result" in message:
        return _answer(call, message["result"], encode_json(message["result"]))
    return _failure(call, message["error"])


def _cut_result(payload: bytes) -> tuple[JsonValue, bytes] | None:
    """Return the result and the bytes for it if they can be cut out of the payload unchanged, otherwise `None`."""
    if not payload.startswith(_RESULT) or b"\n" in payload:  # a line break would end the message to the client
        return None
    text = payload.decode()
    try:
        result, end = decode_json_at(text, len(_RESULT))
    except ValueError:
        return None
    return (result, payload[len(_RESULT) : -1]) if text[end:] == "}" else None


def _answer(call: CallFrame, result: JsonValue, raw: bytes) -> bytes:
    if not isinstance(result, dict) or not isinstance(result.get("content"), list):
        return _fault(call, "The response of the parent process has a result without 'content'")
    if call.modern and "resultType" not in result:
        raw = _MODERN_RESULT + raw[1:]
    return result_line(call.request_id, raw)


def _failure(call: CallFrame, error: JsonValue) -> bytes:
    """Return the response that tells the model about the failure. In MCP, an unknown tool is an error of the client."""
    payload = error if isinstance(error, dict) else {"message": error}
    kind, message = str(payload.get("type", "Exception")), str(payload.get("message", ""))
    if kind == _TOOL_NOT_FOUND:
        return error_line(call.request_id, INVALID_PARAMS, message, {"type": kind})
    result: JsonValue = {"content": [{"type": "text", "text": f"{kind}: {message}"}], "isError": True}
    return _answer(call, result, encode_json(result))


def _fault(call: CallFrame, message: str) -> bytes:
    return error_line(call.request_id, INTERNAL_ERROR, message, {"type": "IPCError"})
