"""Load on the server over HTTP with two clients, one of which spends its budget; its figures are those of the API.

The server runs as a command, over the loopback API and with the real CLI. Each request has a mark, which determines its
answer and its usage. `CC_SERVER_LOAD` is the number of seconds; `scripts/README.md` has a long run.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cc_loopback import LoopbackServer

SECONDS = float(os.environ.get("CC_SERVER_LOAD", "10"))
CLIENTS = ("alice", "bob")
AT_ONCE = 4
# Three of ten tokens that some ten answers a second have, so that bob's budget is spent also on a slow machine.
BUDGET = round(0.3 * 10 * 300 * SECONDS)
FAILURE_EVERY = 97
KINDS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def usage_of(mark: str) -> dict[str, int]:
    number = int(mark.rpartition("-")[2])
    return dict(zip(KINDS.values(), (50 + number % 7, 200 + number % 11, number % 101, number % 3), strict=True))


@dataclass
class Load:
    """The requests of a run: those that the API has answered, those that the clients saw, and the problems."""

    served: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Usage by client, as the API has answered."""
    answers: Counter[str] = field(default_factory=Counter[str])
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in CLIENTS})
    received: Counter[str] = field(default_factory=Counter[str])
    """Tokens of the answers that have arrived, by client."""
    problems: list[str] = field(default_factory=list[str])
    sent: int = 0

    def respond(self, body: dict[str, Any]) -> dict[str, Any]:
        mark = body["messages"][-1]["content"][0]["text"]
        client = mark.partition("-")[0]
        self.served[client].update(usage_of(mark))
        self.answers[client] += 1
        return {"content": f"The answer to {mark}.", "usage": usage_of(mark)}

    async def ask(self, api: LoopbackServer, http: httpx2.AsyncClient, client: str) -> None:
        self.sent += 1
        mark, stream = f"{client}-{self.sent}", self.sent % 2 == 0
        if self.sent % FAILURE_EVERY == 0:
            api.fail_next(529)
        messages = [{"role": "user", "content": mark}]
        body = {"model": "claude-sonnet-5", "max_tokens": 999, "stream": stream, "messages": messages}
        before = self.received[client]
        response = await http.post("/v1/messages", json=body, headers={"x-api-key": client})
        self.statuses[client][response.status_code] += 1
        match response.status_code:
            case 200:
                self.received[client] += sum(usage_of(mark).values())
                if (answer := answer_of(response, stream)) != (f"The answer to {mark}.", usage_of(mark)):
                    self.problems.append(f"{mark}: {answer}")
                if client == "bob" and before >= BUDGET:
                    self.problems.append(f"{mark} was answered, although {before} tokens were spent before it")
            case 429 if client == "bob":
                if "tokens of today's budget" not in response.text or response.headers["x-should-retry"] != "false":
                    self.problems.append(f"{mark}: {response.text}")
                if self.served[client].total() < BUDGET:
                    self.problems.append(f"{mark} was refused after {self.served[client].total()} tokens")
                await asyncio.sleep(0.05)  # refusals take a millisecond, and are not the load
            case 529:
                pass
            case _:
                self.problems.append(f"{mark}: {response.status_code} {response.text}")

    def expected(self) -> dict[tuple[str, ...], float]:
        """Return the figures that the server should have, by name and values of labels."""
        figures: dict[tuple[str, ...], float] = {}
        for client in CLIENTS:
            statuses = self.statuses[client]
            for kind, name in KINDS.items():
                figures["cc_messages_tokens_total", client, kind] = self.served[client][name]
            for status, count in statuses.items():
                figures["cc_messages_requests_total", client, "messages", str(status)] = count
            figures["cc_messages_budget_used", client, "tokens"] = self.served[client].total()
            figures["cc_messages_errors_total", client, "overloaded_error"] = statuses[529]
            figures["cc_messages_errors_total", client, "rate_limit_error"] = statuses[429]
        return figures


def answer_of(response: httpx2.Response, stream: bool) -> tuple[str, dict[str, int]]:
    if not stream:
        message = response.json()
        texts, usage = [block["text"] for block in message["content"]], message["usage"]
    else:
        events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
        texts = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
        usage = events[0]["message"]["usage"]
        for event in events:
            usage |= event.get("usage", {})
    return "".join(texts), {name: usage[name] for name in KINDS.values()}


async def figures_of(http: httpx2.AsyncClient) -> dict[tuple[str, ...], float]:
    response = await http.get("/metrics", headers={"x-api-key": "prometheus"})
    families = text_string_to_metric_families(response.raise_for_status().text)
    samples = (sample for family in families for sample in family.samples)
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


@contextmanager
def serving(api: LoopbackServer, folder: Path) -> Generator[str]:
    clients = folder / "clients.toml"
    clients.touch(0o600)
    clients.write_text(
        f'[clients.alice]\ntoken = "alice"\n[clients.bob]\ntoken = "bob"\ntokens_per_day = {BUDGET}\n'
        '[clients.prometheus]\ntoken = "prometheus"\naccess = "metrics"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "cc_messages", "serve", "--port", "0", "--size", "4", "--clients", str(clients)]
    with subprocess.Popen(command, env={**os.environ, **api.env()}, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().partition("=")[2]
        finally:
            process.terminate()
            process.wait(60)


@pytest.mark.slow
@pytest.mark.timeout(120 + 2 * SECONDS)
async def test_budgets_and_figures_hold_under_load(tmp_path: Path) -> None:
    """MSG-103, MSG-104, MSG-106."""
    load, end = Load(), time.monotonic() + SECONDS
    with LoopbackServer(load.respond) as api, serving(api, tmp_path) as url:
        async with httpx2.AsyncClient(base_url=url, timeout=120, trust_env=False) as http:

            async def work(client: str) -> None:
                while time.monotonic() < end:
                    await load.ask(api, http, client)

            async def scrape() -> None:
                while (seconds := end - time.monotonic()) > 0:
                    await figures_of(http)
                    await asyncio.sleep(min(2.0, seconds))

            await asyncio.gather(scrape(), *(work(client) for client in CLIENTS for _ in range(AT_ONCE)))
            figures = await figures_of(http)
    expected = load.expected()
    assert load.problems == []
    assert {key: figures.get(key, 0) for key in expected} == expected
    assert {client: load.statuses[client][200] for client in CLIENTS} == load.answers
    assert load.statuses["bob"][429], "bob has not spent the budget: the run was too short"
    with closing(sqlite3.connect(tmp_path / "clients.usage.sqlite")) as database:
        rows = database.execute("SELECT client, sum(requests), sum(tokens) FROM usage GROUP BY client").fetchall()
    assert sorted(rows) == [(client, load.answers[client], load.served[client].total()) for client in CLIENTS]
