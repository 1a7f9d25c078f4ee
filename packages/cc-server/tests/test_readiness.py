"""`/readyz` says whether a new request would soon have a process; `/healthz` only that the server is up."""

import asyncio
from typing import Any

import httpx2
import psutil
import pytest

from warm_clients.fixtures import Connect
from warm_clients.waiting import eventually

from .conftest import Serve
from .served import Served

pytestmark = pytest.mark.worlds


async def probe(served: Served, path: str = "/readyz", method: str = "GET") -> httpx2.Response:
    async with served.http(token="") as http:
        return await http.request(method, path)


async def test_a_server_that_keeps_a_process_ready_is_ready_with_it(connect: Connect, serve: Serve) -> None:
    """MSG-163: no token is needed; a probe starts the first process, and another for one that died."""
    client = connect(size=2, prewarm=1)
    served = serve(client)

    refused = await probe(served)
    assert (refused.status_code, refused.json()) == (503, {"status": "no process is ready"})
    assert (await probe(served, "/healthz")).status_code == 200
    await eventually(lambda: client.transport.stats().idle)
    assert (await probe(served)).status_code == 200
    [pid] = client.transport.pids
    psutil.Process(pid).kill()
    await eventually(lambda: client.transport.pids not in ([pid], []))
    await eventually(lambda: client.transport.stats().idle)
    assert (await probe(served)).status_code == 200
    assert (await probe(served)).json() == {"status": "ok"}
    assert (await probe(served, method="HEAD")).status_code == 200
    refused = await probe(served, method="POST")
    assert (refused.status_code, len(client.transport.pids)) == (401, 1)


async def test_a_server_with_a_long_queue_is_healthy_but_not_ready(connect: Connect, serve: Serve) -> None:
    """MSG-163"""
    client = connect(size=2)
    served = serve(client)
    assert (await probe(served)).status_code == 200  # none is kept ready
    assert not client.transport.pids
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def respond(body: dict[str, Any]) -> str:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(gate.wait(), loop))
        return "Fine."

    client.answers(respond)
    tasks = [asyncio.create_task(served.post()) for _ in range(4)]
    await eventually(lambda: client.transport.stats().waiting == 2 and client.transport.stats().busy == 2)
    refused = await probe(served)
    assert (refused.status_code, "wait" in refused.json()["status"]) == (503, True)
    assert (await probe(served, "/healthz")).status_code == 200
    gate.set()
    assert {answer.status_code for answer in await asyncio.gather(*tasks)} == {200}
    assert (await probe(served)).status_code == 200
