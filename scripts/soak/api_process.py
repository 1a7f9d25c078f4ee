"""The scripted API in a process of its own, so that its memory and its descriptors are not counted.

    python -m soak.api_process

Prints its environment as a line of JSON, and then answers each line on standard input, a command as JSON, with a line.
Ends when the input does.
"""

import http.client
import json
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

from cc_loopback import LoopbackServer
from cc_loopback.types import Call

from .aim import Aim
from .answers import marks_of, respond

_MESSAGES = "/v1/messages"
# Long enough that a stream can be left, or cut, in the middle; seconds.
_EVENT_DELAY = 0.002
# Nothing else asks then, and nothing is slow.
_DRAIN_SECONDS = 5.0
_DRAIN_BODY = json.dumps({"model": "drain", "max_tokens": 1, "messages": [{"role": "user", "content": "Drain."}]})


class Served:
    """The API, which can be stopped and started again on its port, and whose faults are aimed."""

    def __init__(self) -> None:
        # This one is never asked; it keeps the private home while the other one comes and goes.
        self._keeper = LoopbackServer().start()
        self._lock = threading.Lock()
        self._wishes: list[tuple[int, dict[str, Any]]] = []
        self._hits: dict[int, str | None] = {}
        self._requests = 0
        self._port = 0
        self._begin()

    def env(self) -> dict[str, str]:
        """The environment for a CLI."""
        return {**self._keeper.env(), "ANTHROPIC_BASE_URL": self._api.url}

    def fail(self, fault: int, how: dict[str, Any]) -> None:
        """Let a request that comes soon fail."""
        with self._lock:
            self._wishes.append((fault, how))

    def told(self) -> dict[str, Any]:
        """What happened since the last time: which fault fell on whom, how many requests came, what went wrong."""
        with self._lock:
            self._collect()
            hits, self._hits = self._hits, {}
            requests, self._requests = self._requests, 0
        errors = [repr(error) for error in self._api.errors]
        self._api.errors.clear()
        return {"hits": list(hits.items()), "requests": requests, "errors": errors}

    def stop(self) -> None:
        """Break all connections off, and take no more."""
        with self._lock:
            self._collect()
        self._api.stop()

    def start(self) -> None:
        """Serve again, on the same port; what had not failed yet does not."""
        self._begin()

    def drain(self) -> None:
        """Have all faults that wait used up."""
        with self._lock:
            self._wishes.clear()
            waiting = self._aim.waiting(len(self._arrived()))
        for _ in range(waiting):
            self._ask()

    def close(self) -> None:
        """End all."""
        self._api.stop()
        self._keeper.stop()

    def _begin(self) -> None:
        self._aim = Aim()
        self._api = LoopbackServer(self._respond, event_delay=_EVENT_DELAY, port=self._port).start()
        self._port = urlsplit(self._api.url).port or 0

    async def _respond(self, body: dict[str, Any]) -> Any:
        # In the API's own thread, where no request can arrive between the count and the fault.
        with self._lock:
            arrived = len(self._arrived())
            for fault, how in self._wishes:
                self._aim.place(fault, arrived)
                self._api.fail_next(**how)
            self._wishes.clear()
        return await respond(body)

    def _arrived(self) -> list[Call]:
        return [call for call in self._api.calls if (call.method, call.path) == ("POST", _MESSAGES)]

    def _collect(self) -> None:
        """Keep what is to be told, and forget the requests, which may be large."""
        count = len(self._api.calls)
        calls = [call for call in self._api.calls[:count] if (call.method, call.path) == ("POST", _MESSAGES)]
        self._hits.update(self._aim.take([next(iter(marks_of(call.body or {})), None) for call in calls]))
        self._requests += len(calls)
        del self._api.calls[:count]
        self._api.requests.clear()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_DRAIN_SECONDS)
        try:
            connection.request("POST", _MESSAGES, _DRAIN_BODY, {"content-type": "application/json"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # as the fault wants it
        finally:
            connection.close()


def obey(served: Served, command: dict[str, Any]) -> dict[str, Any]:
    """Do what a command says, and return the answer."""
    match command.pop("do"):
        case "fail":
            served.fail(command.pop("fault"), command)
        case "tell":
            return served.told()
        case "stop":
            served.stop()
        case "start":
            served.start()
        case "drain":
            served.drain()
        case other:
            raise ValueError(f"no such command: {other}")
    return {}


def main() -> None:
    """Serve until the input ends."""
    served = Served()
    try:
        print(json.dumps(served.env()), flush=True)
        for line in sys.stdin:
            print(json.dumps(obey(served, json.loads(line))), flush=True)
    finally:
        served.close()


if __name__ == "__main__":
    main()
