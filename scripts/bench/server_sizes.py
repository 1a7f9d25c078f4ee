"""Measure the server: requests per second, processor time and memory, by the number of Claude Code processes.

Twice as many clients as processes send short requests without a pause. The API is a separate process and answers at
once, so that only the processor limits the rates.
"""

import asyncio
import os
import secrets
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx2
import psutil

from .arena import scripted_api
from .harness import Effort, Figure, Group, Suite

SIZES = (1, 2, 4, 8)
# So few that no process is replaced in any repetition: the figures are for warm processes.
REQUESTS = 120
REPETITIONS = 3
PROMPT = {"role": "user", "content": [{"type": "text", "text": "Hello?"}]}
BODY = {"model": "claude-sonnet-5", "max_tokens": 100, "messages": [PROMPT]}


async def measure(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    async with scripted_api() as environment:
        for size in SIZES[: effort.times(len(SIZES))]:
            async with serving(size, environment) as (server, http):
                await load(http, size, 4 * size)  # starts the processes
                rates: list[float] = []
                costs: list[float] = []
                for _ in range(effort.times(REPETITIONS, 1)):
                    before, began = processor_seconds(server), time.perf_counter()
                    count = effort.times(REQUESTS, 8)
                    await load(http, size, count)
                    rates.append(count / (time.perf_counter() - began))
                    costs.append(1000 * (processor_seconds(server) - before) / count)
                own, others = memory(server)
            name = f"{size} processes"
            figures += [
                Group("Requests per second", "/s").figure(name, rates),
                Group("Processor time of a request").figure(name, costs),
                Group("Memory of the server", "MB").figure(name, [own]),
                Group("Memory of a Claude Code process, shared parts left out", "MB").figure(name, [others / size]),
            ]
    return sorted(figures, key=lambda figure: figure.group)


@asynccontextmanager
async def serving(size: int, env: Mapping[str, str]) -> AsyncGenerator[tuple[psutil.Process, httpx2.AsyncClient]]:
    token = secrets.token_urlsafe()
    command = [sys.executable, "-m", "cc_server", "--port", "0", "--size", str(size)]
    server = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **env, "CC_SERVER_TOKEN": token}, stdout=PIPE
    )
    try:
        assert server.stdout is not None  # noqa: S101 - for the type checker
        url = (await server.stdout.readline()).decode().strip().partition("=")[2]
        async with httpx2.AsyncClient(base_url=url, headers={"x-api-key": token}, timeout=60) as http:
            yield psutil.Process(server.pid), http
    finally:
        server.terminate()
        await server.wait()


async def load(http: httpx2.AsyncClient, size: int, count: int) -> None:
    """Send requests, twice as many at once as there are processes."""
    numbers = iter(range(count))

    async def send() -> None:
        for _ in numbers:
            (await http.post("/v1/messages", json=BODY)).raise_for_status()

    await asyncio.gather(*(send() for _ in range(2 * size)))


def processor_seconds(server: psutil.Process) -> float:
    times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
    return sum(used.user + used.system for used in times)


def memory(server: psutil.Process) -> tuple[float, float]:
    own, *others = (process.memory_full_info().uss / 1e6 for process in (server, *server.children(recursive=True)))
    return own, sum(others)


SUITE = Suite("server_sizes", "The server by the number of its processes", measure)
