"""`/metrics`: figures of one application for Prometheus, in a registry of its own.

The only modules that know prometheus-client are this one and `server/state_collector.py`; without the extra
`cc-messages[metrics]` they are not imported.
"""

import math
from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder

from cc_types.failures import BY_TYPE

from ..transport import ClaudeCodeTransport
from .admission import Admission
from .request_record import RequestRecord
from .state_collector import StateCollector
from .usage_meter import Usage
from .usage_store import UsageTotal

__all__ = ["Metrics"]

# Seconds. A warm process adds tens of milliseconds, a start hundreds; an answer can take minutes.
_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, math.inf)
# A lease of an idle process takes milliseconds.
_WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, math.inf)

# Labels have few values, whatever clients and APIs send.
_PATHS = {
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/v1/limits": "limits",
    "/metrics": "metrics",
}
_ERRORS = BY_TYPE.keys() | {"client_left"}


class Metrics:
    """Counts finished requests and their usage, and writes all figures.

    Args:
        transport: Has the figures of the processes and the limits of the API.
        admission: Has the requests in progress, the clients and their budgets.
    """

    def __init__(self, transport: ClaudeCodeTransport, admission: Admission) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._state = StateCollector(transport, admission)
        registry.register(self._state)
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        self._requests = counter(
            "cc_messages_requests",
            "Finished requests, by client, path and HTTP status; 499: the client left before the response",
            ("client", "path", "status"),
        )
        self._errors = counter(
            "cc_messages_errors",
            "Requests that failed, by the API's name for the error; also those that failed in mid-stream",
            ("client", "kind"),
        )
        self._first_event = histogram(
            "cc_messages_first_event_seconds",
            "Time to the first event of a stream, the wait for a process included",
            buckets=_BUCKETS,
        )
        self._duration = histogram(
            "cc_messages_request_seconds", "Duration of successful requests for a message", buckets=_BUCKETS
        )
        self._wait = histogram(
            "cc_messages_process_wait_seconds",
            "Wait of a request for a process, a start included",
            buckets=_WAIT_BUCKETS,
        )
        self._tokens = counter("cc_messages_tokens", "Tokens as the API counts them", ("client", "kind"))
        self._dollars = counter(
            "cc_messages_cost_dollars", "List price of these tokens in US dollars, without models that have no price",
            ("client",),
        )  # fmt: skip

    def count_request(self, record: RequestRecord) -> None:
        """Count a finished request."""
        path = _PATHS.get(record.path) or ("models" if record.path.startswith("/v1/models") else "other")
        self._requests.labels(record.client, path, str(record.status)).inc()
        if record.error is not None:
            kind = record.error if record.error in _ERRORS else "other"
            self._errors.labels(record.client, kind).inc()
        elif path == "messages":
            self._duration.observe(record.seconds)
        if record.first_event_seconds is not None:
            self._first_event.observe(record.first_event_seconds)
        if record.report is not None:
            self._wait.observe(record.report.wait_seconds)

    def count_usage(self, client: str, usage: Usage) -> None:
        """Count usage. May be called in any thread."""
        for kind in ("input", "output", "cache_read", "cache_write"):
            # A counter never falls, should the API's last count be below its first.
            self._tokens.labels(client, kind).inc(max(0, getattr(usage, kind)))
        if math.isfinite(usage.dollars):
            self._dollars.labels(client).inc(max(0.0, usage.dollars))

    def write(self, accept: str, usage: Mapping[str, UsageTotal]) -> tuple[bytes, str]:
        """Return all figures and their content type.

        Args:
            accept: The header `Accept`, for the format.
            usage: The usage of the clients in this UTC day.
        """
        self._state.usage = usage
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type
