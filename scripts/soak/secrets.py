"""Requests with planted secrets, under faults and with umask 000: where may one be read?

Each secret is unique and names its kind: the login's key, the server's token, prompt, header, tool argument, file name,
metadata. None may appear in an error, a log line, a span, the server's metrics, a process title, the name of a file or
folder, or a file that others can read. Requests go through the transport, the server, and agents in either loop.
"""

import asyncio
import logging
import os
import random
import re
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import httpx2
import psutil
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, BinaryContent

from cc_loopback import Login, LoopbackServer, call
from cc_model import ClaudeCodeModel, ClaudeCodeModelSettings, ClaudeCodeProvider, RequestLog, claude_code
from cc_server import create_app

_PLANTED = re.compile(rb"planted-[a-z]+-\d+")
_STATUSES = (400, 401, 403, 404, 413, 429, 500, 529)
_MODEL = "claude-sonnet-5"
_TOKEN = "planted-token-0"  # noqa: S105 - no token
_LOGINS: dict[Login, str] = {"api-key": "ANTHROPIC_API_KEY", "oauth": "CLAUDE_CODE_OAUTH_TOKEN"}


class Watch:
    """Looks for secrets, all the time in files and titles; `found` counts each place and kind."""

    def __init__(self, folder: Path) -> None:
        self.found: Counter[str] = Counter()
        self._folder, self._stop = folder, threading.Event()

    def look(self, place: str, value: object) -> None:
        content = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        for secret in {*_PLANTED.findall(content)}:
            self.found[f"{secret.decode().rpartition('-')[0]} in {place}"] += 1

    @contextmanager
    def looking(self) -> Generator[None]:
        thread = threading.Thread(target=self._look_always, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _look_always(self) -> None:
        while not self._stop.wait(0.01):
            self.look_once()

    def look_once(self) -> None:
        """Look at all files in the folder, and at the titles of all child processes."""
        for folder, folders, files in os.walk(self._folder):
            for name in (*folders, *files):
                self.look("the name of a file", name)
            for name in files:
                path = Path(folder, name)
                with suppress(OSError):
                    if path.lstat().st_mode & 0o077 and path.is_file():
                        self.look(f"a file that others can read, {name}", path.read_bytes())
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                self.look("a process title", " ".join(process.cmdline()))


class _Lines(logging.Handler):
    """Looks at all that this project's loggers say, and at the warnings of others."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("cc_") or record.levelno >= logging.WARNING:
            self._watch.look(f"the log {record.name}", self.format(record))


class _Requests:
    """Makes requests in random ways, with random faults."""

    def __init__(self, api: LoopbackServer, provider: ClaudeCodeProvider, server: httpx2.AsyncClient, folder: Path):
        self._api, self._provider, self._server, self._folder = api, provider, server, folder
        self.outcomes: Counter[str] = Counter()

    async def make_all(self, numbers: Iterator[int], watch: Watch, chance: random.Random) -> None:
        for number in numbers:
            await self.make(number, watch, chance)

    async def make(self, number: int, watch: Watch, chance: random.Random) -> None:
        """Make a request; an error is looked at as a program would print it."""
        if chance.random() < 0.4:
            events = chance.choice((None, None, 1, 4))
            self._api.fail_next(chance.choice(_STATUSES), after_events=events)
        way = chance.choice(
            (self._whole, self._through_the_server, self._tools, self._tools_over_stdio, self._own_tools)
        )
        running = asyncio.create_task(way(number))
        if chance.random() < 0.1:
            await asyncio.wait({running}, timeout=chance.uniform(0, 0.4))
            running.cancel()
        elif chance.random() < 0.1:
            await asyncio.wait({running}, timeout=chance.uniform(0, 0.3))
            for pid in self._provider.transport.pids:
                with suppress(psutil.Error):
                    psutil.Process(pid).kill()
        [outcome] = await asyncio.gather(running, return_exceptions=True)
        if isinstance(outcome, BaseException):
            watch.look("an error", "".join(traceback.format_exception(outcome)) + repr(outcome))
        self.outcomes[type(outcome).__name__ if isinstance(outcome, BaseException) else "right"] += 1

    async def _whole(self, number: int) -> None:
        await self._provider.client.messages.create(
            model=_MODEL, max_tokens=100, messages=[{"role": "user", "content": f"planted-prompt-{number}"}],
            metadata={"user_id": f"planted-metadata-{number}"}, extra_headers={"x-own": f"planted-header-{number}"},
        )  # fmt: skip

    async def _through_the_server(self, number: int) -> None:
        body = {
            "model": _MODEL,
            "max_tokens": 100,
            "messages": [{"role": "user", "content": f"planted-prompt-{number}"}],
        }
        headers = {"x-api-key": _TOKEN, "x-own": f"planted-header-{number}"}
        answer = await self._server.post("/v1/messages", json=body, headers=headers)
        if answer.is_error:
            raise RuntimeError(f"{answer.status_code} {answer.text} {answer.headers}")

    async def _tools(self, number: int, transport: Literal["stdio"] | None = None) -> None:
        async def look(argument: str) -> str:
            """Look."""
            if argument.endswith("7"):
                raise ValueError("it fails")
            return f"planted-result-{number}"

        model = ClaudeCodeModel(_MODEL, provider=self._provider)
        settings = ClaudeCodeModelSettings(extra_headers={"x-own": f"planted-header-{number}"})
        agent = Agent(model, tools=[look], model_settings=settings, retries=2)
        if transport is not None:
            model.set_agent_toolsets(agent.toolsets, transport=transport)
        await agent.run([f"planted-prompt-{number}", BinaryContent(b"%PDF-1.4", media_type="application/pdf")])

    async def _tools_over_stdio(self, number: int) -> None:
        await self._tools(number, "stdio")

    async def _own_tools(self, number: int) -> None:
        tools = claude_code(tools=["Read", "Bash"], cwd=self._folder / "work")
        await Agent(ClaudeCodeModel(_MODEL, provider=self._provider), capabilities=[tools]).run(
            f"planted-prompt-{number}"
        )


def _respond(body: dict[str, Any]) -> Any:
    """Let a tool be called with secrets, and answer after its result."""
    [number] = {*re.findall(r"planted-prompt-(\d+)", str(body["messages"]))} or {"0"}
    tools = [tool["name"] for tool in body.get("tools") or ()]
    if not tools or "tool_result" in str(body["messages"]):
        return f"planted-answer-{number}"
    arguments = {
        "look": {"argument": f"planted-argument-{number}"},
        "mcp__pydantic_tools__look": {"argument": f"planted-argument-{number}"},
        "Read": {"file_path": f"/nowhere/planted-file-{number}"},
        "Bash": {"command": f"false planted-argument-{number}", "description": "Say"},
    }
    name = next(name for name in arguments if name in tools)
    return [call(name, **arguments[name])]


@contextmanager
def _temporary_folder() -> Generator[Path]:
    """Make a folder for all temporary files, where new files are for everybody unless their mode says otherwise."""
    with tempfile.TemporaryDirectory(prefix="soak-secrets-") as name:
        tempfile.tempdir, mask = name, os.umask(0)
        try:
            yield Path(name)
        finally:
            tempfile.tempdir = None
            os.umask(mask)


async def planted(count: int, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Make requests with each kind of login, `count` in all; return where secrets were found, and the outcomes."""
    chance, outcomes = random.Random(seed), Counter[str]()
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(tracing)
    numbers = iter(range(1, count + 1))
    with _temporary_folder() as folder, LoopbackServer(_respond) as api:
        (folder / "work").mkdir(mode=0o700)
        watch = Watch(folder)
        logging.getLogger().addHandler(handler := _Lines(watch))
        logging.getLogger().setLevel(logging.DEBUG)
        with watch.looking():
            for login, variable in _LOGINS.items():
                env, share = {**api.env(login), variable: "planted-key-0"}, islice(numbers, count // len(_LOGINS))
                log = RequestLog(folder / f"{login}.jsonl", prompts=True)
                async with ClaudeCodeProvider(env=env, pool=4, max_retries=0, log=log) as provider:
                    transport = httpx2.ASGITransport(create_app(provider.transport, token=_TOKEN))
                    async with httpx2.AsyncClient(transport=transport, base_url="http://server", timeout=60) as server:
                        requests = _Requests(api, provider, server, folder)
                        await asyncio.gather(*(requests.make_all(share, watch, chance) for _ in range(4)))
                        metrics = await server.get("/metrics", headers={"x-api-key": _TOKEN})
                        watch.look("the metrics", metrics.text)
                outcomes += requests.outcomes
        logging.getLogger().removeHandler(handler)
        watch.look("the spans", "".join(span.to_json() for span in exporter.get_finished_spans()))
    return watch.found, outcomes
