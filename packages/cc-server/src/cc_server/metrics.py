"""`/metrics`: an application's figures for Prometheus, in a registry of the application.

The only module that knows prometheus-client; without the extra `cc-server[metrics]` it is not imported.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from typing_extensions import override

from cc_messages import ClaudeCodeTransport
from cc_types import RateLimits
from cc_types.failures import BY_TYPE

from .admission import Admission
from .request_record import RequestRecord
from .usage import Usage, UsageTotal

# Seconds. A warm process adds tens of milliseconds, a start hundreds; an answer can take minutes.
_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, math.inf)
# A lease of an idle process takes milliseconds.
_WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, math.inf)

# Labels have few values, whatever clients and APIs send.
_PATHS = {
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/v1/chat/completions": "chat_completions",
    "/v1/responses": "responses",
    "/v1/limits": "limits",
    "/v1/usage": "usage",
    "/v1/status": "status",
    "/metrics": "metrics",
}
# Paths that are answered with a message.
_MESSAGES = frozenset({"messages", "chat_completions", "responses"})
_ERRORS = BY_TYPE.keys() | {"client_left"}


class Metrics(Collector):
    """Counts finished requests and their usage, reads the server state when asked, and writes all figures."""

    def __init__(self, transport: ClaudeCodeTransport, admission: Admission) -> None:
        self._transport, self._admission = transport, admission
        self._usage: Mapping[str, UsageTotal] = {}
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(self)
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        text = "Finished requests, by client, path and HTTP status; 499: the client left before the response"
        self._requests = counter("cc_server_requests", text, ("client", "path", "status"))
        text = "Requests that failed, by the API's name for the error; also those that failed in mid-stream"
        self._errors = counter("cc_server_errors", text, ("client", "kind"))
        text = "Time to the first event of a stream, the wait for a process included"
        self._first_event = histogram("cc_server_first_event_seconds", text, buckets=_BUCKETS)
        text = "Duration of successful requests for a message"
        self._duration = histogram("cc_server_request_seconds", text, buckets=_BUCKETS)
        text = "Wait of a request for a process, a start included"
        self._wait = histogram("cc_server_process_wait_seconds", text, buckets=_WAIT_BUCKETS)
        self._tokens = counter("cc_server_tokens", "Tokens as the API counts them", ("client", "kind"))
        text = "List price of these tokens in US dollars, without models that have no price"
        self._dollars = counter("cc_server_cost_dollars", text, ("client",))

    def count_request(self, record: RequestRecord) -> None:
        """Count a finished request."""
        path = _PATHS.get(record.path) or ("models" if record.path.startswith("/v1/models") else "other")
        self._requests.labels(record.client, path, str(record.status)).inc()
        if record.error is not None:
            kind = record.error if record.error in _ERRORS else "other"
            self._errors.labels(record.client, kind).inc()
        elif path in _MESSAGES:
            self._duration.observe(record.seconds)
        if record.first_event_seconds is not None and path in _MESSAGES:
            self._first_event.observe(record.first_event_seconds)
        if record.report is not None:
            self._wait.observe(record.report.wait_seconds)

    def count_usage(self, client: str, usage: Usage) -> None:
        """Count usage. May be called in any thread."""
        for kind in ("input", "output", "cache_read", "cache_write"):
            # A counter never falls, should the API's last count be below the first.
            self._tokens.labels(client, kind).inc(max(0, getattr(usage, kind)))
        if math.isfinite(usage.dollars):
            self._dollars.labels(client).inc(max(0.0, usage.dollars))

    def write(self, accept: str, usage: Mapping[str, UsageTotal]) -> tuple[bytes, str]:
        """Return all figures and their content type; with the clients' usage today, as far as it could be read."""
        self._usage = usage
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    @override
    def collect(self) -> Iterator[Metric]:
        """Yield the figures of processes, clients and limits."""
        yield from self._processes()
        yield from self._clients()
        if (limits := self._transport.limits) is not None:
            yield from _of_limits(limits)
        if (end := self._transport.login_expires_at) is not None:
            text = "End of the login with /login"
            yield GaugeMetricFamily("cc_server_login_expires_timestamp_seconds", text, end.timestamp())

    def _processes(self) -> Iterator[Metric]:
        stats = self._transport.stats()
        states = {(state,): getattr(stats, state) for state in ("idle", "busy", "resetting", "starting")}
        yield _gauge("processes", "Claude Code processes", ("state",), states)
        for name, text, number in (
            ("processes_max", "Maximum number of processes", stats.size),
            ("processes_memory_bytes", "Last measured memory of idle and busy processes", stats.memory_mb * 1_000_000),
            ("waiting", "Requests that wait for a process", stats.waiting),
        ):
            yield GaugeMetricFamily(f"cc_server_{name}", text, number)
        for name, text, number in (
            ("process_starts", "Started processes", stats.starts),
            ("process_failed_starts", "Processes that could not be started", stats.failed_starts),
            ("process_leases", "Requests that got a process", stats.leases),
            ("process_waits", "Requests of these that waited, for a start or for another request", stats.waits),
            ("process_wait_timeouts", "Requests that got no process in time", stats.queue_timeouts),
        ):
            yield CounterMetricFamily(f"cc_server_{name}", text, number)
        ends = CounterMetricFamily("cc_server_process_ends", "Ended processes", labels=["reason"])
        for reason, number in stats.recycled.items():
            ends.add_metric([reason], number)
        yield ends

    def _clients(self) -> Iterator[Metric]:
        clients, in_progress = self._admission.clients().clients, self._admission.in_progress
        used = {client: self._usage[client.name] for client in clients if client.name in self._usage}
        units = ("tokens", "dollars")
        budgets = {(client.name, unit): getattr(client, f"{unit}_per_day") for client in used for unit in units}
        usage = {(client.name, unit): getattr(total, unit) for client, total in used.items() for unit in units}
        requests = {(client.name,): in_progress[client.name] for client in clients}
        yield _gauge("in_progress", "Requests in progress", ("client",), requests)
        yield _gauge("budget", "Budget of a UTC day", ("client", "unit"), budgets)
        yield _gauge("budget_used", "Usage in this UTC day", ("client", "unit"), usage)


def _of_limits(limits: RateLimits) -> Iterator[Metric]:
    yield GaugeMetricFamily("cc_server_limits_age_seconds", "Time since the API reported its limits", limits.age)
    windows, rates = limits.windows, limits.rates
    used = {(window.kind,): math.nan if window.utilization is None else window.utilization for window in windows}
    resets = {(part.kind,): part.resets_at and part.resets_at.timestamp() for part in (*windows, *rates)}
    maximum, remaining = ({(rate.kind,): getattr(rate, name) for rate in rates} for name in ("limit", "remaining"))
    yield _gauge("limit_used_ratio", "Used share of a plan's window", ("window",), used)
    yield _gauge("limit_reset_timestamp_seconds", "Reset of a limit", ("limit",), resets)
    yield _gauge("rate_limit", "Limit of an API key in a minute", ("limit",), maximum)
    yield _gauge("rate_limit_remaining", "Remaining number of it", ("limit",), remaining)


def _gauge(name: str, text: str, labels: tuple[str, ...], samples: Mapping[Any, float | None]) -> Metric:
    """Return a gauge with a sample for each value that is not None, by label values."""
    gauge = GaugeMetricFamily(f"cc_server_{name}", text, labels=labels)
    for values, number in samples.items():
        if number is not None:
            gauge.add_metric(values, number)
    return gauge
