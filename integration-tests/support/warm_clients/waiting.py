"""Waiting: for a condition, or without an end."""

from collections.abc import Callable
from typing import Any

import anyio


async def eventually(condition: Callable[[], object]) -> None:
    """Wait for a condition without an event: the state of another thread or process."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(0.005)


async def wait_for_ever(_body: dict[str, Any]) -> str:
    """Never answer, as a responder of the API."""
    await anyio.sleep_forever()
    return ""
