"""The scripted API in a separate process, whose memory and descriptors do not count, and a client for it.

    python -m soak.api

Prints the environments for clients, by login, as a JSON line. Then answers each JSON line on standard input, an order,
with a line. Exits at the end of the input. Each request takes the oldest waiting fault. So the number of requests when
a fault is added determines the affected request.

An answer has the last prompt's mark, with the format, delay and size that the prompt requests. A mark is unique to a
run, so that an answer for another run is detected.
"""

import asyncio
import json
import os
import re
import sys
import threading
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from cc_loopback import LoopbackServer
from line_process import LineProcess, line_process

MARK = re.compile(r"<\d+>")
MARK_HEADER = "x-mark"
"""Header for the run's mark, which not all requests have."""
SLOWLY = "slowly"
"""In a prompt: the answer starts after two seconds."""
HUGELY = "hugely"
"""In a prompt: the answer has `HUGE_CHARACTERS`."""
HUGE_CHARACTERS = 10_000_000
LOOK = "look"
"""Tool name; the tool is called if it is available."""
ASK = "AskUserQuestion"
"""Tool name; Claude asks the user if it can."""
FAILED = "look failed"
"""In an answer: the tool's result was an error."""

_QUESTION = {
    "header": "Mark",
    "options": [{"label": "Yes", "description": "yes"}, {"label": "No", "description": "no"}],
    "multiSelect": False,
}
_SLOW_SECONDS = 2.0
_SCRIPTS = Path(__file__).parents[1]
_MESSAGES = ("POST", "/v1/messages")
# Seconds between chunks: long enough that a stream can be left, or cut, in the middle.
_EVENT_DELAY = 0.002


class Api:
    """A client for the process: makes requests fail, stops the API and starts it again."""

    def __init__(self, process: LineProcess, env: dict[str, str], token_env: dict[str, str]) -> None:
        self._process = process
        self.env, self.token_env = env, token_env
        """Environment for a CLI with an API key, and with an OAuth token."""
        self.requests = 0
        """Count up to now."""
        self.hits: defaultdict[str, set[int]] = defaultdict(set)
        """Numbers of the faults that affected a run's requests, by the run's mark."""
        self.errors: list[str] = []
        """Errors in the API's script."""

    async def order(self, do: Literal["stop", "start", "drop_faults"]) -> None:
        """Call the method of `Served` with this name."""
        await self._process.order(do)

    async def fail(self, fault: int, **how: Any) -> None:
        """Let a request fail; see `LoopbackServer.fail_next()`."""
        await self._process.order("fail", fault=fault, how=how)

    async def update(self) -> None:
        """Update `requests`, `hits` and `errors`."""
        news = await self._process.order("update")
        self.requests = news["requests"]
        self.errors += news["errors"]
        for fault, mark in news["hits"]:
            self.hits[mark].add(fault)


@asynccontextmanager
async def scripted_api(temporary: str) -> AsyncGenerator[Api]:
    """Run the process, with temporary files in `temporary` and not in the folder that is filled."""
    paths = os.pathsep.join(filter(None, [str(_SCRIPTS), os.environ.get("PYTHONPATH")]))
    env = {"TMPDIR": temporary, "PYTHONPATH": paths}
    async with line_process("the API", (sys.executable, "-m", "soak.api"), env) as process:
        yield Api(process, *await process.read())


class Served:
    """The API: can be stopped and started again on the same port, and records the request for each fault."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: list[tuple[int, dict[str, Any]]] = []
        self._faults: dict[int, int] = {}
        """Fault numbers by request number."""
        self._marks: list[str | None] = []
        self._hits: list[tuple[int, str]] = []
        self._errors: list[str] = []
        self._port = 0
        self.start()

    def envs(self) -> list[dict[str, str]]:
        return [self._api.env("api-key"), self._api.env("oauth")]

    def fail(self, fault: int, how: dict[str, Any]) -> None:
        with self._lock:
            self._wishes.append((fault, how))

    def update(self) -> dict[str, Any]:
        """Return the number of requests, and the faults with marks and the errors since the last call."""
        with self._lock:
            self._collect()
            news = {"requests": len(self._marks), "hits": self._hits, "errors": self._errors}
            self._hits, self._errors = [], []
        return news

    def stop(self) -> None:
        self._api.stop()
        self.drop_faults()

    def start(self) -> None:
        """Serve on the same port."""
        self._api = LoopbackServer(self._respond, event_delay=_EVENT_DELAY, port=self._port).start()
        self._port = urlsplit(self._api.url).port or 0

    def drop_faults(self) -> None:
        """Drop the faults that have not affected a request yet; no requests are made at that time."""
        with self._lock:
            self._collect()
            self._wishes.clear()
            self._faults.clear()
            self._api.reset()

    async def _respond(self, body: dict[str, Any]) -> Any:
        # In the API's own thread, where no request can arrive between the count and the fault.
        with self._lock:
            arrived = len(self._marks) + sum((call.method, call.path) == _MESSAGES for call in self._api.calls)
            for fault, how in self._wishes:
                self._faults[max([arrived - 1, *self._faults]) + 1] = fault
                self._api.fail_next(**how)
            self._wishes.clear()
        return await respond(body)

    def _collect(self) -> None:
        """Keep the marks from all requests, and delete the requests, which may be large."""
        count = len(self._api.calls)
        for call in self._api.calls[:count]:
            if (call.method, call.path) != _MESSAGES:
                continue
            marks = marks_of(call.body or {}, call.headers.get(MARK_HEADER, ""))
            if len(marks) > 1:
                self._errors.append(repr(MixedUpError(f"a request has the marks {marks}")))
            fault = self._faults.pop(len(self._marks), None)
            self._marks.append(next(iter(marks), None))
            if fault is not None and marks:
                self._hits.append((fault, marks[0]))
        self._errors += map(repr, self._api.errors)
        del self._api.calls[:count]
        self._api.requests.clear()
        self._api.errors.clear()


class MixedUpError(Exception):
    """A request with marks from several runs."""


def marks_of(body: Mapping[str, Any], header: str = "") -> list[str]:
    """Return the different marks in a request: from messages first, then from other fields and the header."""
    return [*dict.fromkeys(MARK.findall(f"{body.get('messages')} {body} {header}"))]


async def respond(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    """Answer a request; raise `MixedUpError` if it has marks from several runs."""
    marks = {*marks_of(body)}
    if len(marks) > 1:
        raise MixedUpError(f"a request has the marks {sorted(marks)}")
    mark = next(iter(marks), "nothing")
    content = body["messages"][-1]["content"]
    last: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    result = next((block for block in last if block["type"] == "tool_result"), None)
    prompt = " ".join(str(block.get("text", "")) for block in last)
    if SLOWLY in prompt:
        await asyncio.sleep(_SLOW_SECONDS)
    if call := _call(body, is_answered=result is not None):
        arguments = {"questions": [{**_QUESTION, "question": f"Which {mark}?"}]} if call == ASK else {"mark": mark}
        return [{"type": "tool_use", "name": call, "input": arguments}]
    if "format" in (body.get("output_config") or {}):
        return f'{{"mark": "{mark}"}}'
    answer = f"Found {mark}. {_result_text(result)} " + "And so on. " * 10
    return answer + "word " * (HUGE_CHARACTERS // 5) if HUGELY in prompt else answer


def _call(body: Mapping[str, Any], *, is_answered: bool) -> str | None:
    """Return the name of the tool to call, as in the request: with a prefix if the CLI runs the loop."""
    names = [str(tool.get("name")) for tool in cast("list[dict[str, Any]]", body.get("tools") or [])]
    if not is_answered and ASK in names:
        return ASK
    if not is_answered and (look := next((name for name in names if name.split("__")[-1] == LOOK), None)):
        return look
    return "final_result" if "final_result" in names else None


def _result_text(result: Mapping[str, Any] | None) -> str:
    if result is None:
        return ""
    if result.get("is_error"):
        return f"{FAILED}: {str(result.get('content'))[:200]}."
    content = result.get("content") or ""
    return content if isinstance(content, str) else " ".join(str(block.get("text")) for block in content)


def main() -> None:
    served = Served()
    try:
        print(json.dumps(served.envs()), flush=True)
        for line in sys.stdin:
            order = json.loads(line)
            print(json.dumps(getattr(served, order.pop("do"))(**order)), flush=True)
    finally:
        served.stop()


if __name__ == "__main__":
    main()
