"""`/metrics` has figures that agree with the API's, and needs a token."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_server import create_app
from login_file import login_env, write_login
from warm_clients.api_data import MESSAGES
from warm_clients.client import Client
from warm_clients.fixtures import Connect

from .conftest import Serve
from .served import Served

USAGE = {"input_tokens": 60, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}


async def figures(served: Served, token: str | None = None) -> dict[str, float]:
    """Return the samples, as `name` or `name{label=value,…}`."""
    async with served.http(token=token) as http:
        response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    values: dict[str, float] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            values[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return values


async def test_figures_agree_with_the_api(serve: Serve, client: Client) -> None:
    """MSG-105, MSG-106: requests, errors, tokens, cost, times, processes and limits."""
    client.answers(lambda _: {"content": "Fine.", "usage": USAGE})
    served = serve(client)
    starts = client.transport.stats().starts
    await served.post()
    served.api.fail_next(headers={"anthropic-ratelimit-requests-limit": "50"}, delay=0.01)
    await served.post(stream=True)
    served.api.fail_next(529)
    await served.post()
    served.api.fail_next(429)
    await served.post(stream=True)
    async with served.http() as http:
        await http.post(MESSAGES, content=b"{")
        await http.get("/v1/unheard-of")
    await served.post(token="wrong")
    await client.settled()
    values = await figures(served)
    refused = {
        (529, "overloaded_error"): "client=default,path=messages",
        (429, "rate_limit_error"): "client=default,path=messages",
        (400, "invalid_request_error"): "client=default,path=messages",
        (404, "not_found_error"): "client=default,path=other",
        (401, "authentication_error"): "client=,path=messages",
    }
    for (status, kind), place in refused.items():
        assert values[f"cc_server_requests_total{{{place},status={status}}}"] == 1
        assert values[f"cc_server_errors_total{{{place.partition(',')[0]},kind={kind}}}"] == 1
    expected = {
        "cc_server_requests_total{client=default,path=messages,status=200}": 2,
        "cc_server_tokens_total{client=default,kind=input}": 120,
        "cc_server_tokens_total{client=default,kind=output}": 80,
        "cc_server_tokens_total{client=default,kind=cache_read}": 14,
        "cc_server_tokens_total{client=default,kind=cache_write}": 6,
        "cc_server_budget_used{client=default,unit=tokens}": 220,
        "cc_server_first_event_seconds_count": 1,
        "cc_server_request_seconds_count": 2,
        "cc_server_process_wait_seconds_count": 4,
        "cc_server_process_starts_total": starts,
        "cc_server_processes{state=idle}": 1,
        "cc_server_processes{state=busy}": 0,
        "cc_server_processes_max": 1,
        "cc_server_waiting": 0,
        "cc_server_in_progress{client=default}": 0,
        "cc_server_rate_limit{limit=requests}": 50,
    }
    assert {name: values.get(name) for name in expected} == expected
    assert "cc_server_login_expires_timestamp_seconds" not in values  # MSG-170: with an API key
    for name in ("cc_server_processes_memory_bytes", "process_resident_memory_bytes"):
        assert 10e6 < values[name] < 5e9
    dollars = values["cc_server_cost_dollars_total{client=default}"]
    assert 0 < dollars == pytest.approx(values["cc_server_budget_used{client=default,unit=dollars}"])


@pytest.mark.worlds
@pytest.mark.skipif(sys.platform != "linux", reason="the login is a file on Linux")
async def test_the_end_of_a_login_is_a_figure(
    serve: Serve, connect: Connect, shared_api: LoopbackServer, tmp_path: Path
) -> None:
    """MSG-170: after the first answer, without a label."""
    ends_at = write_login(tmp_path)
    client = connect(env=login_env(shared_api, tmp_path), size=1)
    served = serve(client)
    name = "cc_server_login_expires_timestamp_seconds"
    assert name not in await figures(served)
    client.answers("Fine.")
    await served.post()
    await client.settled()
    assert (await figures(served))[name] == ends_at.timestamp()


async def test_only_a_token_for_them_opens_the_figures(
    serve: Serve, client: Client, clients_file: Callable[[str], Path]
) -> None:
    """MSG-105: a token for the figures opens nothing else."""
    path = clients_file(
        '[clients.alice]\ntoken = "alice"\ntokens_per_day = 500\n'
        '[clients.prometheus]\ntoken = "prometheus"\naccess = "metrics"\n'
        '[clients.root]\ntoken = "root"\naccess = "all"\n'
    )
    served = serve(client, clients=path)
    expected = {("alice", 403, 200), ("prometheus", 200, 403), ("root", 200, 200), ("else", 401, 401)}
    answered: set[tuple[str, int, int]] = set()
    for token in ("alice", "prometheus", "root", "else"):
        async with served.http(token=token) as http:
            answered.add((token, (await http.get("/metrics")).status_code, (await http.get("/v1/limits")).status_code))
    assert answered == expected
    values = await figures(served, "prometheus")
    assert values["cc_server_budget{client=alice,unit=tokens}"] == 500
    assert "cc_server_budget{client=root,unit=tokens}" not in values


async def test_each_application_has_figures_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-105: nothing is registered for the whole interpreter; without the extra the answer names it."""
    transport = ClaudeCodeTransport()
    before = {*REGISTRY._names_to_collectors}  # pyright: ignore[reportPrivateUsage]

    async def get(app: Any) -> httpx2.Response:
        asgi = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=asgi, base_url="http://x", headers={"x-api-key": "t"}) as http:
            await http.get("/v1/limits")
            return await http.get("/metrics", headers={"accept": "application/openmetrics-text"})

    for app in (create_app(transport, token="t"), create_app(transport, token="t")):
        response = await get(app)
        assert response.headers["content-type"].startswith("application/openmetrics-text")
        assert 'cc_server_requests_total{client="default",path="limits",status="200"} 1.0' in response.text
    assert {*REGISTRY._names_to_collectors} == before  # pyright: ignore[reportPrivateUsage]
    monkeypatch.delitem(sys.modules, "cc_server.metrics", raising=False)
    for module in ("prometheus_client", "prometheus_client.exposition", "prometheus_client.core"):
        monkeypatch.setitem(sys.modules, module, None)
    missing = await get(create_app(transport, token="t"))
    assert missing.status_code == 404
    assert "pip install 'cc-server[metrics]'" in missing.json()["error"]["message"]
