"""The choice of a process for a request whose tools the CLI calls."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from cc_messages import CLICall, CLITools, request_context
from warm_clients.client import Client

pytestmark = pytest.mark.worlds

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
OK: dict[str, object] = {"content": [{"type": "text", "text": "ok"}], "isError": False}


@pytest.mark.parametrize("transport", ["sdk", pytest.param("stdio", marks=pytest.mark.slow)])
async def test_a_process_that_has_the_tools_answers_the_next_request_with_them(
    several: Client, transport: Literal["sdk", "stdio"]
) -> None:
    """SES-61: the process used last has other tools, and would have to exchange them."""
    both = asyncio.Barrier(2)

    async def wait(_call: CLICall) -> dict[str, object]:
        await both.wait()
        return OK

    async def answer(_call: CLICall) -> dict[str, object]:
        return OK

    def respond(body: dict[str, Any]) -> Any:
        name = body["tools"][0]["name"]
        return "Done." if len(body["messages"]) > 1 else [{"type": "tool_use", "name": name, "input": {}}]

    async def process_of(name: str, call: Callable[[CLICall], Awaitable[dict[str, object]]]) -> str:
        """Return the answering process's session, which the CLI names in each request to the API."""
        with request_context(tools=CLITools(names=frozenset({name}), call=call, transport=transport)):
            await several.ask("Go.", tools=[{"name": name, "description": name, "input_schema": NOTHING}])
        bodies = [body for body in several.api.requests if name in body["tools"][0]["name"]]
        [session] = {body["metadata"]["user_id"] for body in bodies}
        return session

    several.answers(respond)
    left, right = await asyncio.gather(process_of("left", wait), process_of("right", wait))
    assert left != right
    await several.settled()
    for name, session in (("left", left), ("right", right), ("left", left)):
        several.api.requests.clear()
        assert await process_of(name, answer) == session
        await several.settled()
