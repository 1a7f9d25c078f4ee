"""The page at `/`, and the figures that it shows; also in a real browser where there is one."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warm_clients.api_data import BODY
from warm_clients.client import Client

from .conftest import Serve
from .served import Served

USAGE = {"input_tokens": 60, "output_tokens": 40}
LIMITS = {
    "anthropic-ratelimit-unified-status": "allowed",
    "anthropic-ratelimit-unified-5h-status": "allowed",
    "anthropic-ratelimit-unified-5h-utilization": "0.42",
    "anthropic-ratelimit-unified-5h-reset": "1795850000",
}
CLIENTS = '[clients.ann]\ntoken = "ann"\naccess = "all"\n[clients.bob]\ntoken = "bob"\n'
# Without the other options, the browser looks for addresses of its maker.
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
    "--virtual-time-budget=3000", "--dump-dom",
)  # fmt: skip


@pytest.fixture
def watched(serve: Serve, client: Client, clients_file: Callable[[str], Path]) -> Served:
    """A server with two clients, of whom one may read figures."""
    client.answers(lambda _: {"content": "The answer.", "usage": USAGE})
    return serve(client, clients=clients_file(CLIENTS))


async def figures(server: Served, token: str = "ann") -> dict[str, Any]:
    async with server.http(token=token) as http:
        return (await http.get("/v1/status")).raise_for_status().json()


async def use(server: Served) -> None:
    server.api.fail_next(headers=LIMITS, delay=0.001)
    await server.post(token="bob")
    server.api.fail_next(status=429)
    await server.post(token="bob")


async def test_the_figures_have_processes_usage_windows_and_failures_and_no_prompt(watched: Served) -> None:
    """MSG-175."""
    await use(watched)
    shown = await figures(watched)
    assert sum(shown["processes"][name] for name in ("idle", "busy", "resetting")) == 1
    [window] = shown["windows"]
    assert (window["kind"], window["utilization"]) == ("five_hour", 0.42)
    [line] = shown["usage"]
    assert (line["client"], line["model"], line["today"]["tokens"]) == ("bob", BODY["model"], 100)
    assert line["today"] == line["week"]
    [failure] = shown["failures"]
    assert (failure["client"], failure["status"], failure["reason"]) == ("bob", 429, "rate_limit_error")
    assert "Hello." not in json.dumps(shown)
    assert "The answer." not in json.dumps(shown)


async def test_a_request_in_progress_is_shown_until_it_ends(watched: Served, client: Client) -> None:
    """MSG-175."""
    seen: list[dict[str, Any]] = []

    async def respond(_body: dict[str, Any]) -> str:
        seen.extend((await figures(watched))["requests"])
        return "Fine."

    client.answers(respond)
    await watched.post(token="bob")
    [request] = seen
    assert (request["client"], request["path"], request["model"]) == ("bob", "/v1/messages", BODY["model"])
    assert (await figures(watched))["requests"] == []


async def test_the_figures_come_as_a_stream_that_ends(watched: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-175."""
    monkeypatch.setattr("cc_server.status._SECONDS", 0.001)
    async with watched.http(token="ann") as http:
        response = await http.get("/v1/status", headers={"accept": "text/event-stream"})
    events = [json.loads(event.removeprefix("data: ")) for event in response.text.split("\n\n")[:-1]]
    assert len(events) == 5
    assert all("processes" in event for event in events)


@pytest.mark.parametrize(("token", "status"), [("bob", 403), ("nobody", 401)])
async def test_figures_need_a_token_that_may_read_them(watched: Served, token: str, status: int) -> None:
    """MSG-175."""
    async with watched.http(token=token) as http:
        assert (await http.get("/v1/status")).status_code == status


async def test_the_page_needs_no_token_and_can_ask_this_server_alone(watched: Served) -> None:
    """MSG-175."""
    async with watched.http(token="") as http:
        page = await http.get("/")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"(?:src|href)=\"(?!data:,)", page.text)
