"""The bridge's MCP protocol without a process: lines go in, actions come out."""

import json
import os
import random
from importlib import metadata
from typing import Any

import pytest

from cc_ipc_bridge import protocol
from cc_ipc_bridge.protocol import mcp_tools
from cc_ipc_bridge.responses import response_line
from cc_types import JsonValue

FUZZ_LINES = int(os.environ.get("CC_IPC_FUZZ_FRAMES", "2000"))
MODERN: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOLS: list[JsonValue] = [{"name": "echo", "description": "Echo.", "inputSchema": {"type": "object"}}]


def receive(message: object) -> Any:
    """Return the server's action for a message, with a reply as parsed JSON."""
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    action = protocol.McpServer(TOOLS).receive(line + b"\n")
    if not isinstance(action, bytes):
        return action
    assert action.endswith(b"\n")
    assert action.count(b"\n") == 1
    return json.loads(action)


def request(method: str, params: object = None, **fields: object) -> Any:
    return receive({"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}, **fields})


COMPLETE: dict[str, object] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
INFO = {"_meta": {"io.modelcontextprotocol/serverInfo": protocol.SERVER_INFO}}
DISCOVERED: dict[str, object] = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    **COMPLETE,
    **INFO,
}


@pytest.mark.parametrize(
    ("method", "handshake", "modern"),
    [
        ("server/discover", DISCOVERED, DISCOVERED),
        ("ping", {}, {"resultType": "complete", **INFO}),
        ("tools/list", {"tools": TOOLS}, {"tools": TOOLS, **COMPLETE, **INFO}),
    ],
)
def test_discover_ping_and_list_are_answered_without_the_parent_in_both_forms(
    method: str, handshake: object, modern: dict[str, object]
) -> None:
    """IPC-D-14, IPC-P-32: with and without the fields that the current version adds."""
    assert request(method)["result"] == handshake
    assert request(method, {"_meta": MODERN})["result"] == modern


@pytest.mark.parametrize(
    ("version", "agreed"),
    [
        *((version, version) for version in protocol.HANDSHAKE_VERSIONS),
        *((version, "2025-11-25") for version in ("1999-01-01", "2026-07-28", None, ["2025-11-25"])),
    ],
)
def test_a_handshake_version_is_accepted_or_the_newest_is_offered(version: object, agreed: str) -> None:
    """IPC-P-32: the previous version has a handshake."""
    assert request("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {}}) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": protocol.SERVER_INFO},
    }


def test_a_future_version_is_refused_with_a_list_of_the_supported_ones() -> None:
    meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    error = request("server/discover", {"_meta": meta})["error"]
    assert error["code"] == protocol.UNSUPPORTED_PROTOCOL_VERSION
    assert error["data"] == {"supported": ["2026-07-28", *protocol.HANDSHAKE_VERSIONS], "requested": "2031-01-01"}


def test_a_call_is_passed_on_with_the_models_id() -> None:
    """IPC-P-38."""
    call = request("tools/call", {"name": "echo", "arguments": {"a": 1}, "_meta": {"claudecode/toolUseId": "toolu_1"}})
    assert isinstance(call, protocol.CallFrame)
    assert call.params == {"name": "echo", "arguments": {"a": 1}, "tool_use_id": "toolu_1"}
    assert (call.request_id, call.modern) == (7, False)


@pytest.mark.parametrize("meta", [None, {}, {"progressToken": 1}, {"claudecode/toolUseId": 5}, 5])
def test_a_call_without_an_id_or_arguments_is_a_call(meta: object) -> None:
    call = request("tools/call", {"name": "echo", "_meta": meta})
    assert call.params == {"name": "echo", "arguments": {}}
    assert request("tools/call", {"name": "echo", "_meta": MODERN}).modern


def test_a_cancellation_names_a_request() -> None:
    """IPC-P-32."""
    cancel = receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "x"}})
    assert isinstance(cancel, protocol.CancelFrame)
    assert cancel.request_id == 7


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"   ",
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [7]},
        {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {"requestId": 7}},
        {"jsonrpc": "2.0", "id": 7, "result": {}},
        {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": ""}},
    ],
    ids=str,
)
def test_notifications_responses_and_blank_lines_get_no_answer(message: object) -> None:
    assert receive(message) is None


@pytest.mark.parametrize(
    ("message", "code", "request_id"),
    [
        (b"nonsense", protocol.PARSE_ERROR, None),
        (b"\xff", protocol.PARSE_ERROR, None),
        ([], protocol.INVALID_REQUEST, None),
        ({}, protocol.INVALID_REQUEST, None),
        ({"id": True, "method": "ping"}, protocol.INVALID_REQUEST, None),
        ({"id": None, "method": "ping"}, protocol.INVALID_REQUEST, None),
        ({"id": 1.5, "method": "ping"}, protocol.INVALID_REQUEST, None),
        ({"id": "\ud800", "method": "ping"}, protocol.INVALID_REQUEST, None),
        ({"id": 7}, protocol.INVALID_REQUEST, 7),
        ({"id": 7, "method": 5}, protocol.INVALID_REQUEST, 7),
        ({"id": 7, "method": "ping", "params": [1]}, protocol.INVALID_PARAMS, 7),
        *(
            ({"id": 7, "method": "tools/call", "params": params}, protocol.INVALID_PARAMS, 7)
            for params in ({}, {"name": 1}, {"name": "echo", "arguments": [1]}, [1])
        ),
        *(
            ({"id": 7, "method": method}, protocol.METHOD_NOT_FOUND, 7)
            for method in ("resources/list", "prompts/list", "logging/setLevel", "subscriptions/listen", "\ud800")
        ),
    ],
    ids=str,
)
def test_invalid_messages_invalid_calls_and_unknown_methods_are_refused(
    message: object, code: int, request_id: object
) -> None:
    reply = receive(message)
    assert (reply["error"]["code"], reply["id"]) == (code, request_id)


def test_the_server_reports_the_version_of_the_package() -> None:
    assert protocol.SERVER_INFO == {"name": "cc-ipc", "version": metadata.version("cc-ipc")}


def test_random_lines_raise_nothing() -> None:
    """IPC-P-09, for the client's side."""
    chance = random.Random(2)
    good = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {}}})
    server = protocol.McpServer(TOOLS)
    for _ in range(FUZZ_LINES):
        line = bytearray(good.encode() if chance.random() < 0.8 else chance.randbytes(chance.randint(1, 60)))
        for _ in range(chance.randint(0, 4)):
            line[chance.randrange(len(line))] = chance.randrange(256)
        assert isinstance(server.receive(bytes(line)), bytes | protocol.CallFrame | protocol.CancelFrame | None)


# The schema file:


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[1]",
        b'[{"name": "a", "description": ""}]',
        b'[{"name": 1, "description": "", "input_schema": {}}]',
        b'[{"name": "a", "description": "\\ud800", "input_schema": {}}]',
    ],
)
def test_a_file_without_schemas_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        mcp_tools(content)


# Responses from the parent:

CALL = protocol.CallFrame(7, {"name": "echo", "arguments": {}}, modern=False)
MODERN_CALL = protocol.CallFrame("seven", {"name": "echo", "arguments": {}}, modern=True)
RESULT = {"content": [{"type": "text", "text": "Zürich"}], "isError": True, "structuredContent": {"a": 1}}


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("before", [{}, {"later": 1}], ids=["alone", "with more"])
def test_a_result_reaches_the_client_whole_in_any_formatting(indent: int | None, before: object) -> None:
    """IPC-D-17, IPC-P-20: compact or not, with unknown fields."""
    payload = json.dumps({**dict(before), "result": RESULT}, indent=indent).encode()  # type: ignore[call-overload]
    line = response_line(CALL, payload)
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"jsonrpc": "2.0", "id": 7, "result": RESULT}
    modern = json.loads(response_line(MODERN_CALL, payload))
    assert modern == {"jsonrpc": "2.0", "id": "seven", "result": {"resultType": "complete", **RESULT}}


def test_a_result_with_a_result_type_keeps_it() -> None:
    payload = json.dumps({"result": {**RESULT, "resultType": "partial"}}, separators=(",", ":")).encode()
    assert json.loads(response_line(MODERN_CALL, payload))["result"]["resultType"] == "partial"


def test_an_unknown_tool_is_an_mcp_error() -> None:
    """IPC-P-E05, IPC-P-34."""
    line = response_line(CALL, b'{"error":{"message":"not known","type":"ToolNotFoundError"}}')
    assert json.loads(line)["error"] == {
        "code": protocol.INVALID_PARAMS,
        "message": "not known",
        "data": {"type": "ToolNotFoundError"},
    }


@pytest.mark.parametrize(
    "payload",
    [
        b"nonsense",
        b"\xff",
        b'{"result":\xff}',
        b'{"result":{"content":[]}',
        b'{"result":{"content":[]},"result":{"content":[]},"error":1}',
        b'{"result":{"content":[NaN]}}',
        b"[]",
        b"{}",
        b'{"result":{"content":[]},"error":{}}',
        b'{"result":1}',
        b'{"result":{"content":{}}}',
        b'{"error":{"message":"\\ud800","type":"E"}}',
        b'{"result": {"content":["\\ud800"]}}',
        b'{"result":' + b"[" * 100_000,
    ],
    ids=lambda payload: repr(payload[:50]),
)
def test_an_invalid_response_is_an_mcp_error(payload: bytes) -> None:
    """IPC-P-E03, IPC-P-34, IPC-D-15: invalid JSON never reaches the client."""
    error = json.loads(response_line(CALL, payload))["error"]
    assert error["code"] == protocol.INTERNAL_ERROR
    assert error["data"] == {"type": "IPCError"}
