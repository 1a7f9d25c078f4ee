"""An outsider's endpoint for Vertex AI and Amazon Bedrock: plain HTTP, with an event stream framing of its own."""

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from text_events import sse, text_events

__all__ = ["Cloud", "CloudEndpoint", "cloud_endpoint"]

Cloud = Literal["vertex", "bedrock"]

_STRING = 7
_ERROR_NAMES = {400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException"}


@dataclass
class CloudEndpoint:
    """A running endpoint."""

    cloud: Cloud
    port: int = 0
    status: int = 200
    """Status of the next answers."""
    exception: str = ""
    """Name of an exception in the next streams, in place of a later event."""
    exception_at: int = 0
    """The number of events before it."""
    paths: list[str] = field(default_factory=list[str])
    """Paths of the messages' requests, in order."""

    @property
    def last_id(self) -> str:
        """Return the id that the last answer had."""
        return f"id-of-{self.cloud}-{len(self.paths)}"

    def env(self) -> dict[str, str]:
        """Return the CLI's environment, without credentials."""
        url = f"http://127.0.0.1:{self.port}"
        others = {"ANTHROPIC_API_KEY": "", "CLAUDE_CODE_OAUTH_TOKEN": "", "ANTHROPIC_BASE_URL": ""}
        if self.cloud == "vertex":
            own = {"CLAUDE_CODE_USE_VERTEX": "1", "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1", "CLOUD_ML_REGION": "us-east5"}
            return others | own | {"ANTHROPIC_VERTEX_PROJECT_ID": "p", "ANTHROPIC_VERTEX_BASE_URL": f"{url}/v1"}
        own = {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1", "AWS_REGION": "us-east-1"}
        return others | own | {"ANTHROPIC_BEDROCK_BASE_URL": url}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests on a connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = next((line for line in head.splitlines() if line.startswith("content-length:")), ":0")
                await reader.readexactly(int(length.partition(":")[2]))
                writer.write(self._answer(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, head: str) -> bytes:
        if not head.startswith("post"):
            return _http(200, {"content-type": "application/json"}, b'{"inferenceProfileSummaries": []}')
        self.paths.append(head.split()[1])
        identity = {"x-amzn-requestid" if self.cloud == "bedrock" else "request-id": self.last_id}
        if self.status != 200:
            return _http(self.status, identity | self._error_headers(), self._error())
        kind = "application/vnd.amazon.eventstream" if self.cloud == "bedrock" else "text/event-stream"
        events = [*map(self._event, text_events("From the cloud."))]
        if self.exception:
            exception = _frame(
                b'{"message": "Not today"}', {":message-type": "exception", ":exception-type": self.exception}
            )
            events[self.exception_at :] = [exception]
        return _http(200, identity | {"content-type": kind}, b"".join(events))

    def _error_headers(self) -> dict[str, str]:
        name = {"x-amzn-errortype": _ERROR_NAMES.get(self.status, "InternalServerException")}
        return {"content-type": "application/json"} | (name if self.cloud == "bedrock" else {})

    def _error(self) -> bytes:
        error = {"type": "error", "error": {"type": "made_up_error", "message": "Not today"}}
        return json.dumps({"message": "Not today"} if self.cloud == "bedrock" else error).encode()

    def _event(self, event: dict[str, Any]) -> bytes:
        if self.cloud == "vertex":
            return sse(event)
        payload = json.dumps({"bytes": base64.b64encode(json.dumps(event).encode()).decode()}).encode()
        return _frame(payload, {":message-type": "event", ":event-type": "chunk"})


@asynccontextmanager
async def cloud_endpoint(cloud: Cloud) -> AsyncGenerator[CloudEndpoint]:
    """Yield an endpoint."""
    endpoint = CloudEndpoint(cloud)
    async with await asyncio.start_server(endpoint.serve, "127.0.0.1", 0) as server:
        endpoint.port = server.sockets[0].getsockname()[1]
        yield endpoint


def _http(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} Made up", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


def _frame(payload: bytes, fields: Mapping[str, str]) -> bytes:
    headers = b""
    for name, value in {":content-type": "application/json", **fields}.items():
        headers += (
            bytes([len(name)]) + name.encode() + bytes([_STRING]) + struct.pack("!H", len(value)) + value.encode()
        )
    prelude = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))
