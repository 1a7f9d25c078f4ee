"""Load the server over HTTP with two clients, one of which spends its budget, and compare its figures with the API's.

    uv run scripts/server_load.py [--seconds 300] [--at-once 8]

The server runs as a command, over the loopback API and with the real CLI. Each request has a mark, which determines its
answer and its usage. Exits with 1 if an answer was wrong, a budget did not hold to the request, or figures differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
from prometheus_client.parser import text_string_to_metric_families

from cc_loopback import LoopbackServer

MODEL = "claude-sonnet-5"
CLIENTS = ("alice", "bob")
# So that the budget is spent before the end, also on a slow machine.
_SHARE_OF_BUDGET = 0.3
_TOKENS_PER_ANSWER = 300
_ANSWERS_PER_SECOND = 10
_FAILURE_EVERY = 97
_SCRAPE_SECONDS = 2.0
_START_SECONDS = 60.0
_REQUEST_SECONDS = 120.0
_KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def usage_of(mark: str) -> dict[str, int]:
    """Return the usage of the answer to the request with a mark."""
    number = int(mark.rpartition("-")[2])
    return dict(zip(_KINDS.values(), (50 + number % 7, 200 + number % 11, number % 101, number % 3), strict=True))


@dataclass
class Served:
    """The counts of the API: usage and answers by client, and the failures."""

    usage: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    answers: Counter[str] = field(default_factory=Counter[str])

    def tokens(self, client: str) -> int:
        """Return all tokens of a client."""
        return self.usage[client].total()

    def respond(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a request, and count it."""
        mark = body["messages"][-1]["content"][0]["text"]
        client = mark.partition("-")[0]
        self.usage[client].update(usage_of(mark))
        self.answers[client] += 1
        return {"content": f"The answer to {mark}.", "usage": usage_of(mark)}


@dataclass
class Load:
    """The requests of one run, and the problems that were seen.

    Args:
        url: The address of the server.
        api: The loopback API.
        served: Its counts.
        budget: The budget of the second client, in tokens.
    """

    url: str
    api: LoopbackServer
    served: Served
    budget: int
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in CLIENTS})
    seconds: list[float] = field(default_factory=list[float])
    problems: list[str] = field(default_factory=list[str])
    received: Counter[str] = field(default_factory=Counter[str])
    """Tokens of the answers that have arrived, by client."""
    sent: int = 0

    async def run(self, seconds: float, at_once: int) -> None:
        """Send requests of all clients, `at_once` each, for some time."""
        end = time.monotonic() + seconds
        async with httpx2.AsyncClient(base_url=self.url, timeout=_REQUEST_SECONDS, trust_env=False) as http:
            async with asyncio.TaskGroup() as tasks:
                for client in CLIENTS:
                    for _ in range(at_once):
                        tasks.create_task(self._work(http, client, end))
                tasks.create_task(self._scrape(http, end))

    async def _work(self, http: httpx2.AsyncClient, client: str, end: float) -> None:
        while time.monotonic() < end:
            await self._ask(http, client)
            if self.statuses[client][429]:
                await asyncio.sleep(0.05)  # refusals take a millisecond, and are not the load to be measured

    async def _ask(self, http: httpx2.AsyncClient, client: str) -> None:
        self.sent += 1
        mark, stream = f"{client}-{self.sent}", self.sent % 2 == 0
        if self.sent % _FAILURE_EVERY == 0:
            self.api.fail_next(529)
        body = {"model": MODEL, "max_tokens": 999, "stream": stream, "messages": [{"role": "user", "content": mark}]}
        received, began = self.received[client], time.monotonic()
        response = await http.post("/v1/messages", json=body, headers={"x-api-key": client})
        self.statuses[client][response.status_code] += 1
        match response.status_code:
            case 200:
                self.seconds.append(time.monotonic() - began)
                self.received[client] += sum(usage_of(mark).values())
                if (told := _answer(response, stream)) != (f"The answer to {mark}.", usage_of(mark)):
                    self.problems.append(f"{mark}: {told}")
                if client == CLIENTS[1] and received >= self.budget:
                    self.problems.append(f"{mark} was answered, although {received} tokens were spent before it")
            case 429 if client == CLIENTS[1]:
                if "tokens of today's budget" not in response.text or response.headers["x-should-retry"] != "false":
                    self.problems.append(f"{mark}: {response.text}")
                if self.served.tokens(client) < self.budget:
                    self.problems.append(f"{mark} was refused, although {self.served.tokens(client)} tokens were spent")
            case 529:
                pass
            case _:
                self.problems.append(f"{mark}: {response.status_code} {response.text}")

    async def _scrape(self, http: httpx2.AsyncClient, end: float) -> None:
        while (left := end - time.monotonic()) > 0:
            await figures(http)
            await asyncio.sleep(min(_SCRAPE_SECONDS, left))


def _answer(response: httpx2.Response, stream: bool) -> tuple[str, dict[str, int]]:
    """Return the text and the usage of an answer."""
    if not stream:
        message = response.json()
        texts, usage = [block["text"] for block in message["content"]], message["usage"]
    else:
        events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
        texts = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
        usage = events[0]["message"]["usage"]
        for event in events:
            usage |= event.get("usage", {})
    return "".join(texts), {name: usage[name] for name in _KINDS.values()}


async def figures(http: httpx2.AsyncClient) -> dict[tuple[str, ...], float]:
    """Return the server's figures by name and values of labels."""
    response = await http.get("/metrics", headers={"x-api-key": "prometheus"})
    response.raise_for_status()
    families = text_string_to_metric_families(response.text)
    samples = (sample for family in families for sample in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


def differences(load: Load, found: dict[tuple[str, ...], float], usage: Path) -> list[str]:
    """Return the differences between the server's figures, its database, the API's counts and the clients'."""
    expected: dict[tuple[str, ...], float] = {}
    for client in CLIENTS:
        for kind, name in _KINDS.items():
            expected["cc_messages_tokens_total", client, kind] = load.served.usage[client][name]
        for status, count in load.statuses[client].items():
            expected["cc_messages_requests_total", client, "messages", str(status)] = count
        expected["cc_messages_budget_used", client, "tokens"] = load.served.tokens(client)
        expected["cc_messages_errors_total", client, "overloaded_error"] = load.statuses[client][529]
        expected["cc_messages_errors_total", client, "rate_limit_error"] = load.statuses[client][429]
        if load.served.answers[client] != load.statuses[client][200]:
            expected["answers of the API", client] = load.statuses[client][200]
    differing = [
        f"{' '.join(key)}: {found.get(key, 0):g} is not {value:g}"
        for key, value in expected.items()
        if found.get(key, 0) != value
    ]
    with closing(sqlite3.connect(usage)) as database:
        rows = {
            client: (requests, tokens)
            for client, requests, tokens in database.execute(
                "SELECT client, sum(requests), sum(tokens) FROM usage GROUP BY client"
            )
        }
    counted = {client: (load.served.answers[client], load.served.tokens(client)) for client in CLIENTS}
    return differing if rows == counted else [*differing, f"database: {rows} is not {counted}"]


@contextmanager
def serving(api: LoopbackServer, folder: Path, budget: int) -> Generator[tuple[str, int, Path]]:
    """Run the server; yield its address, its process id and its database."""
    clients = folder / "clients.toml"
    clients.touch(0o600)
    clients.write_text(
        f'[clients.alice]\ntoken = "alice"\n[clients.bob]\ntoken = "bob"\ntokens_per_day = {budget}\n'
        '[clients.prometheus]\ntoken = "prometheus"\naccess = "metrics"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "cc_messages", "serve", "--port", "0", "--size", "4", "--clients", str(clients)]
    with subprocess.Popen(command, env={**os.environ, **api.env()}, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip().partition("=")[2], process.pid, folder / "clients.usage.sqlite"
        finally:
            process.terminate()
            process.wait(_START_SECONDS)


async def measure(seconds: float, at_once: int) -> tuple[list[str], list[str]]:
    """Run the load; return the figures for people, and the problems."""
    budget = round(_SHARE_OF_BUDGET * _ANSWERS_PER_SECOND * _TOKENS_PER_ANSWER * seconds)
    served = Served()
    with tempfile.TemporaryDirectory() as folder, LoopbackServer(served.respond) as api:
        with serving(api, Path(folder), budget) as (url, pid, usage):
            load = Load(url, api, served, budget)
            began = time.monotonic()
            await load.run(seconds, at_once)
            took = time.monotonic() - began
            async with httpx2.AsyncClient(base_url=url, timeout=_REQUEST_SECONDS, trust_env=False) as http:
                found = await figures(http)
            memory = psutil.Process(pid).memory_info().rss / 1e6
            problems = [*load.problems, *differences(load, found, usage)]
    if not load.statuses["bob"][429]:
        problems.append("bob has not spent the budget: the run was too short")
    times = sorted(load.seconds)
    answered = sum(load.statuses[client][200] for client in CLIENTS)
    later = times[len(times) * 95 // 100]
    starts = found["cc_messages_process_starts_total",]
    processes = found["cc_messages_processes_memory_bytes",] / 1e6
    lines = [
        f"{took:.0f} s, {at_once} requests of each client at a time, 4 processes",
        *(f"{client}: {dict(sorted(load.statuses[client].items()))}" for client in CLIENTS),
        f"bob's budget {budget:,} tokens, spent {served.tokens('bob'):,}",
        f"{answered / took:.1f} answers a second; median {statistics.median(times):.2f} s, 95 % below {later:.2f} s",
        f"starts of processes {starts:g}; memory of the server {memory:.0f} MB, of the processes {processes:.0f} MB",
    ]
    return lines, problems


def main() -> int:
    """Run the command line, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="duration (300)")
    parser.add_argument("--at-once", type=int, default=8, metavar="N", help="requests in progress of each client (8)")
    options = parser.parse_args()
    lines, problems = asyncio.run(measure(options.seconds, options.at_once))
    print(*lines, sep="\n")
    print(*(f"PROBLEM: {problem}" for problem in problems[:20]), f"{len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
