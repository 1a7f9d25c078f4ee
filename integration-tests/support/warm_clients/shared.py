"""Transports that tests share."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport

from .client import Client


class Shared:
    """Transports by name. What is not the worker's is created at its first use, and closed with it.

    An event delay takes a separate API.
    """

    def __init__(self, api: LoopbackServer, transports: Mapping[str, ClaudeCodeTransport], stack: ExitStack) -> None:
        self._stack = stack
        self._apis: dict[float, LoopbackServer] = {0: api}
        self._transports = {**transports}

    def client(self, name: str, size: int, event_delay: float = 0) -> Client:
        if event_delay not in self._apis:
            self._apis[event_delay] = self._stack.enter_context(LoopbackServer(event_delay=event_delay))
        api = self._apis[event_delay]
        if name not in self._transports:
            self._transports[name] = transport = ClaudeCodeTransport(pool=size, env=api.env())
            self._stack.callback(lambda: asyncio.run(transport.aclose()))
        return Client(api, self._transports[name], 40)

    @property
    def pids(self) -> set[int]:
        """The processes that may outlive a test."""
        return {pid for transport in self._transports.values() for pid in transport.pids}
