"""The server's HTTP manners: headers, methods, pages, and a log line for each request."""

import logging
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic

from warm_clients.api_data import BODY, MESSAGES, MODEL
from warm_clients.client import Client
from warm_clients.waiting import eventually

from .conftest import Serve
from .served import Served

USAGE = {"input_tokens": 60, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
ACCESS = "cc_server.access"


def priced(_: dict[str, Any]) -> dict[str, Any]:
    return {"content": "Fine.", "usage": USAGE}


async def test_proxies_do_not_keep_streams(served: Served) -> None:
    """MSG-119"""
    streamed, whole = await served.post(stream=True), await served.post()
    assert streamed.headers["cache-control"] == "no-cache"
    assert "cache-control" not in whole.headers


async def test_a_wrong_method_is_told_the_right_one(served: Served, client: Client) -> None:
    """MSG-120"""
    get, post = ("/v1/models", "/v1/models/sonnet", "/v1/limits", "/v1/usage", "/metrics"), (MESSAGES,)
    wrong = [*product(get, ("POST", "DELETE"), ("GET",)), *product(post, ("GET", "PUT"), ("POST",))]
    wrong += [(f"{MESSAGES}/count_tokens", "GET", "POST"), ("/healthz", "POST", "GET, HEAD")]
    async with served.http() as http:
        for path, method, allowed in wrong:
            response = await http.request(method, path)
            assert (response.status_code, response.headers["allow"]) == (405, allowed), path
            assert response.json()["error"]["type"] == "invalid_request_error"
            assert response.json()["error"]["message"] == f"{path} does not allow {method}: use {allowed}"
        assert (await http.delete("/v1/else")).status_code == 404
    assert not client.starts


async def test_models_have_no_made_up_values(served: Served) -> None:
    """MSG-28, MSG-121: the official client reads them, page by page."""
    async with served.http() as http:
        page = (await http.get("/v1/models", params={"limit": 2})).json()
        after = (await http.get("/v1/models", params={"limit": 1, "after_id": page["last_id"]})).json()
    assert [len(page["data"]), page["has_more"], len(after["data"])] == [2, True, 1]
    assert after["first_id"] not in [model["id"] for model in page["data"]]
    for model in page["data"]:
        assert model.keys() == {"type", "id", "display_name", "lifecycle"}
    async with AsyncAnthropic(base_url=served.url, api_key=served.token) as claude:
        first = await claude.models.list(limit=1)
        everything = [model async for model in claude.models.list(limit=3)]
        one = await claude.models.retrieve("sonnet")
    assert (len(first.data), first.has_next_page()) == (1, True)
    assert len({model.id for model in everything}) == len(everything) > 3
    for model in (one, *everything):
        assert (model.created_at, model.max_tokens, model.max_input_tokens, model.capabilities) == (None,) * 4
        assert model.lifecycle == "active"
        assert str(model) and model.to_json()


async def test_each_request_is_a_log_line(served: Served, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """MSG-122: without prompt, query and token; a health check is none."""
    caplog.set_level(logging.INFO, ACCESS)
    client.answers(priced)
    await served.post(system="A secret.", path=f"{MESSAGES}?beta=secret")
    await served.post(stream=True)
    served.api.fail_next(529)
    await served.post(model="sonnet")
    await served.post(token="a-secret")
    async with served.http() as http:
        await http.get("/healthz")
        await http.get("/v1/a%0Db c")

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == ACCESS]

    await eventually(lambda: len(logged()) == 5)
    lines = logged()
    assert [line.rpartition(" ")[0] for line in lines] == [
        f"default POST /v1/messages {MODEL} 200 input=70 output=40",
        f"default POST /v1/messages {MODEL} 200 input=70 output=40",
        "default POST /v1/messages sonnet 529 input=0 output=0",
        "- POST /v1/messages - 401 input=0 output=0",
        "default GET /v1/a%0Db%20c - 404 input=0 output=0",
    ]
    for line in lines:
        milliseconds = line.rpartition(" ")[2]
        assert milliseconds.endswith("ms") and 0 <= int(milliseconds[:-2]) < 20_000
    assert "secret" not in caplog.text


async def test_a_client_without_dollars_left_sees_that(
    serve: Serve, client: Client, clients_file: Callable[[str], Path]
) -> None:
    """MSG-123: JSON has no infinite number."""
    client.answers(priced)
    served = serve(client, clients=clients_file('[clients.alice]\ntoken = "alice"\ndollars_per_day = 3\n'))
    await served.post({**BODY, "model": "alias-of-a-gateway"}, token="alice")
    async with served.http(token="alice") as http:
        usage = (await http.get("/v1/usage")).json()
    assert usage["dollars"] == {"used": None, "limit": 3.0, "remaining": 0.0}
