"""Figures that are read when Prometheus asks: processes, requests in progress, budgets, and the limits of the API."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from ..transport import ClaudeCodeTransport
from .admission import Admission

if TYPE_CHECKING:
    from .usage_store import UsageTotal

__all__ = ["StateCollector"]

_MEGABYTE = 1_000_000


class StateCollector(Collector):
    """Reads the state of a server.

    Args:
        transport: Has the processes and the limits of the API.
        admission: Has the clients.
    """

    def __init__(self, transport: ClaudeCodeTransport, admission: Admission) -> None:
        self._transport, self._admission = transport, admission
        self.usage: Mapping[str, UsageTotal] = {}
        """The usage of the clients in this UTC day, as far as it could be read."""

    @override
    def collect(self) -> Iterator[Metric]:
        """Yield all figures."""
        yield from self._processes()
        yield from self._clients()
        yield from self._limits()

    def _processes(self) -> Iterator[Metric]:
        stats = self._transport.stats()
        states = GaugeMetricFamily("cc_messages_processes", "Claude Code processes", labels=["state"])
        for state in ("idle", "busy", "resetting", "starting"):
            states.add_metric([state], getattr(stats, state))
        yield states
        yield GaugeMetricFamily("cc_messages_processes_max", "Maximum number of processes", stats.size)
        yield GaugeMetricFamily(
            "cc_messages_processes_memory_bytes",
            "Last measured memory of idle and busy processes",
            stats.memory_mb * _MEGABYTE,
        )
        yield GaugeMetricFamily("cc_messages_waiting", "Requests that wait for a process", stats.waiting)
        for name, text, count in (
            ("process_starts", "Started processes", stats.starts),
            ("process_failed_starts", "Processes that could not be started", stats.failed_starts),
            ("process_leases", "Requests that got a process", stats.leases),
            ("process_waits", "Requests of these that waited, for a start or for another request", stats.waits),
            ("process_wait_timeouts", "Requests that got no process in time", stats.queue_timeouts),
        ):
            yield CounterMetricFamily(f"cc_messages_{name}", text, count)
        ended = CounterMetricFamily("cc_messages_process_ends", "Ended processes", labels=["reason"])
        for reason, count in stats.recycled.items():
            ended.add_metric([reason], count)
        yield ended

    def _clients(self) -> Iterator[Metric]:
        progress = GaugeMetricFamily("cc_messages_in_progress", "Requests in progress", labels=["client"])
        budget = GaugeMetricFamily("cc_messages_budget", "Budget of a UTC day", labels=["client", "unit"])
        used = GaugeMetricFamily("cc_messages_budget_used", "Usage in this UTC day", labels=["client", "unit"])
        for client in self._admission.clients().clients:
            progress.add_metric([client.name], self._admission.in_progress[client.name])
            budgets = {"tokens": client.tokens_per_day, "dollars": client.dollars_per_day}
            if (spent := self.usage.get(client.name)) is None:
                continue
            for unit, limit in budgets.items():
                used.add_metric([client.name, unit], getattr(spent, unit))
                if limit is not None:
                    budget.add_metric([client.name, unit], limit)
        yield from (progress, budget, used)

    def _limits(self) -> Iterator[Metric]:
        limits = self._transport.limits
        if limits is None:
            return
        yield GaugeMetricFamily("cc_messages_limits_age_seconds", "Time since the API reported its limits", limits.age)
        used = GaugeMetricFamily("cc_messages_limit_used_ratio", "Used share of a plan's window", labels=["window"])
        reset = GaugeMetricFamily("cc_messages_limit_reset_timestamp_seconds", "Reset of a limit", labels=["limit"])
        for window in limits.windows:
            used.add_metric([window.kind], math.nan if window.utilization is None else window.utilization)
            if window.resets_at is not None:
                reset.add_metric([window.kind], window.resets_at.timestamp())
        allowed = GaugeMetricFamily("cc_messages_rate_limit", "Limit of an API key in a minute", labels=["limit"])
        left = GaugeMetricFamily("cc_messages_rate_limit_remaining", "Remaining number of it", labels=["limit"])
        for rate in limits.rates:
            for family, number in ((allowed, rate.limit), (left, rate.remaining)):
                if number is not None:
                    family.add_metric([rate.kind], number)
            if rate.resets_at is not None:
                reset.add_metric([rate.kind], rate.resets_at.timestamp())
        yield from (used, reset, allowed, left)
