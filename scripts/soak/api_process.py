"""The scripted API in a process of its own, so that its memory and its descriptors are not counted.

    python -m soak.api_process

Prints its environment as a line of JSON. Then it answers each line on standard input, a command as JSON, with a line.
Ends at the end of the input.
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
from .answers import MARK_HEADER, MixedUpError, marks_of, respond

_MESSAGES = "/v1/messages"
# Seconds between chunks: long enough that a stream can be left, or cut, in the middle.
_EVENT_DELAY = 0.002
# Seconds to use up the waiting faults; no other requests are made at that time, and no answer is slow.
_DRAIN_SECONDS = 5.0
_DRAIN_BODY = json.dumps({"model": "drain", "max_tokens": 1, "messages": [{"role": "user", "content": "Drain."}]})


class Served:
    """The API, which can be stopped and started again on its port, and which records the request of each fault."""

    def __init__(self) -> None:
        # Gets no requests; it keeps the private home while the other server stops and starts.
        self._keeper = LoopbackServer().start()
        self._lock = threading.Lock()
        self._wishes: list[tuple[int, dict[str, Any]]] = []
        self._hits: dict[int, str | None] = {}
        self._mixed: list[str] = []
        self._requests = 0
        self._port = 0
        self._begin()

    def env(self) -> dict[str, str]:
        """Return the environment for a CLI."""
        return {**self._keeper.env(), "ANTHROPIC_BASE_URL": self._api.url}

    def fail(self, fault: int, how: dict[str, Any]) -> None:
        """Let one of the next requests fail."""
        with self._lock:
            self._wishes.append((fault, how))

    def update(self) -> dict[str, Any]:
        """Return the news since the last call: the mark for each fault, the number of requests, the errors."""
        with self._lock:
            self._collect()
            hits, self._hits = self._hits, {}
            requests, self._requests = self._requests, 0
        errors = [*self._mixed, *(repr(error) for error in self._api.errors)]
        self._mixed.clear()
        self._api.errors.clear()
        return {"hits": list(hits.items()), "requests": requests, "errors": errors}

    def stop(self) -> None:
        """Close all connections, and accept no new ones."""
        with self._lock:
            self._collect()
        self._api.stop()

    def start(self) -> None:
        """Serve again, on the same port; faults that are not used yet are dropped."""
        self._begin()

    def drain(self) -> None:
        """Use up all waiting faults."""
        with self._lock:
            self._wishes.clear()
            waiting = self._aim.waiting(len(self._arrived()))
        for _ in range(waiting):
            self._ask()

    def close(self) -> None:
        """Close everything."""
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
        """Store the data for the next report, and delete the requests, which may be large."""
        count = len(self._api.calls)
        calls = [call for call in self._api.calls[:count] if (call.method, call.path) == ("POST", _MESSAGES)]
        marks = [marks_of(call.body or {}, call.headers.get(MARK_HEADER, "")) for call in calls]
        self._mixed += [repr(MixedUpError(f"a request has the marks {found}")) for found in marks if len(found) > 1]
        self._hits.update(self._aim.take([next(iter(found), None) for found in marks]))
        self._requests += len(calls)
        del self._api.calls[:count]
        self._api.requests.clear()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_DRAIN_SECONDS)
        try:
            connection.request("POST", _MESSAGES, _DRAIN_BODY, {"content-type": "application/json"})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # the fault's effect
        finally:
            connection.close()


def execute(served: Served, command: dict[str, Any]) -> dict[str, Any]:
    """Execute a command, and return the answer."""
    match command.pop("do"):
        case "fail":
            served.fail(command.pop("fault"), command)
        case "update":
            return served.update()
        case "stop":
            served.stop()
        case "start":
            served.start()
        case "drain":
            served.drain()
        case other:
            raise ValueError(f"unknown command: {other}")
    return {}


def main() -> None:
    """Serve until the end of the input."""
    served = Served()
    try:
        print(json.dumps(served.env()), flush=True)
        for line in sys.stdin:
            print(json.dumps(execute(served, json.loads(line))), flush=True)
    finally:
        served.close()


if __name__ == "__main__":
    main()
