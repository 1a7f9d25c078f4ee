"""Compare the server's protocols: 30 requests at once by each, half of them streams, and a third with a tool call.

The API is a separate process and answers at once, so that the work for a protocol shows.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx2

from .arena import scripted_api
from .harness import Bound, Effort, Figure, Group, Suite, alternated
from .server_sizes import serving

AT_ONCE = 30
SIZE = 8
ROUNDS = 30
TEXT = "Count to 40."
PROMPT = {"messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}]}], "max_tokens": 500}
TOOL = {"name": "look_up", "description": "Look up a word."}
PARAMETERS = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
FLOOR = "/v1/messages"
BODIES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    FLOOR: (PROMPT, {**TOOL, "input_schema": PARAMETERS}),
    "/v1/chat/completions": (PROMPT, {"type": "function", "function": {**TOOL, "parameters": PARAMETERS}}),
    "/v1/responses": (
        {"input": TEXT, "max_output_tokens": 500}, {"type": "function", **TOOL, "parameters": PARAMETERS}
    ),
}  # fmt: skip
"""For each path a body, and a tool in its form."""


async def measure(effort: Effort) -> list[Figure]:
    async with scripted_api() as environment, serving(SIZE, environment) as (_, http):
        actions = {path: partial(send_all, http, path) for path in BODIES}
        times = await alternated(actions, effort.times(ROUNDS), warm_up=2)
    bounds = dict.fromkeys(BODIES.keys() - {FLOOR}, Bound(1.1, "ratio"))
    return Group(f"{AT_ONCE} requests at once").figures(times, FLOOR, bounds)


async def send_all(http: httpx2.AsyncClient, path: str) -> None:
    await asyncio.gather(*(send(http, path, number) for number in range(AT_ONCE)))


async def send(http: httpx2.AsyncClient, path: str, number: int) -> None:
    fields, tool = BODIES[path]
    calls = number % 3 == 0
    body = {"model": "claude-sonnet-5", **fields, "stream": number % 2 == 0, "tools": [tool] if calls else []}
    answer = (await http.post(path, json=body)).raise_for_status().text
    if ("hello" if calls else "word39") not in answer:
        raise ValueError(f"a wrong answer by {path}: {answer[:500]}")


SUITE = Suite("server_protocols", "The server by its protocols", measure)
