"""Bodies with very many values are refused before they are parsed; long texts are not."""

import asyncio
import json
import threading
from typing import Any

import pytest

from cc_messages.loop.request import parse_request
from cc_server.http_server import MAX_VALUES
from warm_clients.api_data import BODY, MESSAGES
from warm_clients.client import Client

from .served import Served


@pytest.mark.worlds
async def test_too_many_values_are_refused_and_long_texts_are_not(served: Served, client: Client) -> None:
    """MSG-43: bodies of any kind, with any token, for each path with a body."""
    start = json.dumps(BODY)[:-1].encode() + b', "x": '
    kinds = (b"[],", b"{},", b'"",', b"1,", b'{"a":1},', b"[")
    async with served.http() as http:
        for kind in kinds:
            content = start + b"[" + kind * MAX_VALUES + b"1]}"
            for path in (MESSAGES, f"{MESSAGES}/count_tokens"):
                response = await http.post(path, content=content)
                error = response.json()["error"]
                assert (response.status_code, error["type"]) == (413, "request_too_large"), (kind, path)
                assert error["message"].endswith(f"JSON values, which is {MAX_VALUES}")
        assert not served.api.requests
        for character in ",", "[", '"', "\\", '\\"[{,':
            text = character * MAX_VALUES
            response = await served.post(messages=[{"role": "user", "content": text}])
            assert response.status_code == 200
            assert served.api.requests[-1]["messages"][0]["content"] == text


async def test_a_long_body_is_parsed_beside_the_event_loop(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def parse(*arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return parse_request(*arguments, **options)

    monkeypatch.setattr("cc_messages.transport.parse_request", parse)
    for text in ("short", "long" * 100_000):
        assert (await client.ask(text)).status == 200
    assert [thread is threading.current_thread() for thread in threads] == [True, False]
    await asyncio.get_running_loop().shutdown_default_executor()
