"""The page at `/`, and `/v1/status`: what the server does now, and what its clients have used. No prompt is in it.

The page is a file without figures, so it needs no token. Its script asks for `/v1/status` with a token that may read
figures, which the user types, or which comes in the address after `#`, where no server and no log sees it.
"""

import asyncio
import base64
import hashlib
import math
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response, StreamingResponse

from cc_messages import ClaudeCodeTransport
from cc_types import JsonValue

from .admission import Admission
from .request_record import RequestRecord
from .usage import UsageTotal
from .usage_database import UsageError

_SECONDS = 1.0
# A page asks again after so many: a longer stream would keep a server that is told to stop from ending.
_EVENTS = 5
_MOST_FAILURES = 20
_PROCESSES = ("size", "idle", "busy", "resetting", "starting", "waiting", "starts")
_FIRST_FAILURE = 400


def page_response() -> Response:
    """Return the page, which may run its own script alone, and ask this server alone."""
    text = (files(__package__ or "cc_server") / "page.html").read_text("utf-8")
    sources = {
        kind: f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
        for kind, content in re.findall(r"<(script|style)>(.*?)</\1>", text, flags=re.DOTALL)
    }
    policy = (
        f"default-src 'none'; script-src {sources['script']}; style-src {sources['style']}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "cache-control": "no-cache", "referrer-policy": "no-referrer"}
    return Response(text, media_type="text/html", headers=headers)


class ServerStatus:
    """The requests in progress and the last failures, and figures of the processes and the usage. On one event loop."""

    def __init__(self, transport: ClaudeCodeTransport, admission: Admission) -> None:
        self._transport, self._admission = transport, admission
        self._active: dict[RequestRecord, None] = {}
        self._failures: deque[dict[str, JsonValue]] = deque(maxlen=_MOST_FAILURES)
        self._began = time.monotonic()

    def begin(self, record: RequestRecord) -> None:
        """Note a request that begins."""
        self._active[record] = None

    def end(self, record: RequestRecord) -> None:
        """Note a request that has ended."""
        del self._active[record]
        if record.error is not None or record.status >= _FIRST_FAILURE:
            self._failures.appendleft(
                {
                    "at": datetime.now(UTC).isoformat(timespec="seconds"),
                    "client": record.client,
                    "path": record.path[:100],
                    "model": record.model[:100],
                    "status": record.status,
                    "reason": record.error or "",
                }
            )

    async def response(self, accept: str) -> Response:
        """Return the figures: once, or each second as a stream of events where the client accepts one."""
        if "text/event-stream" not in accept:
            return Response(to_json(await self.figures()), media_type="application/json")
        return StreamingResponse(self._events(), media_type="text/event-stream", headers={"cache-control": "no-cache"})

    async def figures(self) -> dict[str, Any]:
        """Return all figures."""
        stats, limits = self._transport.stats(), self._transport.limits
        try:
            usage: list[dict[str, JsonValue]] | None = [
                {"client": client, "model": model, "today": _amount(today), "week": _amount(week)}
                for client, model, today, week in await self._admission.ledger.by_model()
            ]
        except UsageError:  # the log has it
            usage = None
        return {
            "seconds": round(time.monotonic() - self._began),
            "processes": {name: getattr(stats, name) for name in _PROCESSES},
            "memory_mb": round(stats.memory_mb),
            "requests": [_request(record) for record in self._active if record.context is not None],
            "windows": [window.model_dump(mode="json") for window in limits.windows] if limits is not None else [],
            "usage": usage,
            "failures": [*self._failures],
        }

    async def _events(self) -> AsyncIterator[bytes]:
        for _ in range(_EVENTS):
            yield b"data: " + to_json(await self.figures()) + b"\n\n"
            await asyncio.sleep(_SECONDS)


def _request(record: RequestRecord) -> dict[str, JsonValue]:
    model = "" if record.context is None else record.context.model or ""
    return {"client": record.client, "path": record.path, "model": model[:100], "seconds": round(record.seconds)}


def _amount(total: UsageTotal) -> dict[str, JsonValue]:
    """Return an amount; dollars are None after an answer without a price."""
    dollars = round(total.dollars, 6) if math.isfinite(total.dollars) else None
    return {"requests": total.requests, "tokens": total.tokens, "dollars": dollars}
