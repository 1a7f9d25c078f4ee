"""The CLI's telemetry: a receiver for OTLP over HTTP, and the variables that make a process send to it."""

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class CLISpan:
    """A span from the CLI."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str


class Receiver(ThreadingHTTPServer):
    """Stores the received spans."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[CLISpan] = []
        self.has_news = threading.Condition()

    def env(self) -> dict[str, str]:
        """Return the variables that make the CLI trace its work and send the spans here at once."""
        return {
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
            "CLAUDE_CODE_PROPAGATE_TRACEPARENT": "1",
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server_address[1]}",
            "OTEL_TRACES_EXPORT_INTERVAL": "50",
        }

    def wait_for(self, name: str, count: int) -> list[CLISpan]:
        """Wait for `count` spans with a name, ten seconds at most."""
        with self.has_news:
            self.has_news.wait_for(lambda: len(self._named(name)) >= count, timeout=10)
        return self._named(name)

    def take(self, body: Any) -> None:
        """Return and remove the received spans."""
        with self.has_news:
            for resource in body.get("resourceSpans", []):
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        self.spans.append(
                            CLISpan(span["name"], span["traceId"], span["spanId"], span.get("parentSpanId", ""))
                        )
            self.has_news.notify_all()

    def _named(self, name: str) -> list[CLISpan]:
        return [span for span in self.spans if span.name == name]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver  # pyright: ignore[reportIncompatibleVariableOverride]  # set by serve_forever()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")
        self.server.take(json.loads(body))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def receiving() -> Generator[Receiver]:
    """Yield a receiver that listens on loopback during the block."""
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
