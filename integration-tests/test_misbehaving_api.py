"""A misbehaving API causes a bounded error, as the documentation's page says.

With `CC_WRITE_DOCS=1` the page is written again.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from cc_server import create_app
from cc_session import Timeouts
from misbehaving_api import BEHAVIORS, STATUSES, MisbehavingAPI, misbehaving, status

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "api-failures.md"
BEGIN, END = "<!-- begin: made by integration-tests/test_misbehaving_api.py -->", "<!-- end -->"
LIMITS = Timeouts(turn=4.0, silence=2.0)
MODEL = "claude-sonnet-5"
BODY = {"model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": "Hello."}]}
# Seconds. Beyond the limits: ends a process, and allows for a busy machine.
MOST_SECONDS = 10.0
AT_ONCE = "at once"


@dataclass(frozen=True)
class Outcome:
    """An outcome in one layer."""

    outcome: str
    message: str = ""
    repeats: bool | None = None
    retry_after: float | None = None


class Ways:
    """A model, its transport, and the server over that transport, with a single process."""

    def __init__(self, transport: ClaudeCodeTransport, http: httpx2.AsyncClient) -> None:
        self._transport, self._http = transport, http
        self._agent = Agent(ClaudeCodeModel(MODEL, provider=ClaudeCodeProvider.over(transport, max_retries=0)))

    async def model(self) -> Outcome:
        """Run an agent."""
        try:
            result = await self._agent.run("Hello.")
        except ModelHTTPError as error:
            message = re.search(r"'message': (['\"])(.*?)\1[,}]", str(error.body))
            return Outcome(
                f"`{type(error).__name__}` {error.status_code}",
                message[2] if message else str(error.body),
                retry_after=error.retry_after,
            )
        except Exception as error:
            return Outcome(f"`{type(error).__name__}`", str(error))
        return Outcome("an answer", result.output)

    async def transport(self) -> Outcome:
        """Send a streamed request."""
        request = httpx2.Request("POST", "http://claude/v1/messages", json={**BODY, "stream": True})
        try:
            response = await self._transport.handle_async_request(request)
            return _outcome(response, (await response.aread()).decode())
        except httpx2.TransportError as error:
            return Outcome(f"`{type(error).__name__}`", str(error), repeats=True)

    async def server(self) -> Outcome:
        """Send a request that is not streamed."""
        response = await self._http.post("/v1/messages", json=BODY)
        return _outcome(response, response.text)


def _outcome(response: httpx2.Response, text: str) -> Outcome:
    kind = re.search(r'"type": ?"error", ?"error": ?\{"type": ?"(\w+)", ?"message": ?"(.*?)(?<!\\)"', text)
    if kind is None:
        return Outcome("an answer")
    where = str(response.status_code) if response.status_code != 200 else "an event in the stream:"
    says = response.headers.get("x-should-retry")
    repeats = response.status_code in (408, 409, 429) or response.status_code >= 500 if says is None else says == "true"
    return Outcome(
        f"{where} `{kind[1]}`",
        kind[2].replace('\\"', '"'),
        repeats and response.status_code != 200,
        float(response.headers["retry-after"]) if "retry-after" in response.headers else None,
    )


@asynccontextmanager
async def ways(url: str) -> AsyncGenerator[Ways]:
    env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-made-up", "NO_PROXY": "*"}
    async with ClaudeCodeTransport(pool=1, env=env, timeouts=LIMITS) as transport:
        await transport.warm()  # since starting it is not the API's time
        app = create_app(transport, token="t")
        http = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://server", headers={"x-api-key": "t"}, timeout=40
        )
        async with http:
            yield Ways(transport, http)


async def row(name: str, way: Ways, retry_after: int | None = None) -> list[str]:
    """Send the request in all ways, and return name, outcomes, repeats, time and message."""
    outcomes: list[Outcome] = []
    durations: list[float] = []
    for ask in (way.model, way.transport, way.server):
        begun = time.monotonic()
        async with asyncio.timeout(LIMITS.turn + MOST_SECONDS if LIMITS.turn else None):
            outcomes.append(await ask())
        durations.append(time.monotonic() - begun)
    model, transport, server = outcomes
    assert {each.retry_after for each in outcomes} == {retry_after}
    repeats = "yes" if server.repeats else "no"
    message = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:…", model.message).replace("|", "\\|").replace("\n", " ")
    message = re.split(r"(?<=\.) |: \{| \(|: The ", message)[0]  # the advice and details stand in the error
    # The fastest attempt waited least for a busy machine.
    after = AT_ONCE if min(durations) < 1.5 else f"{round(min(durations))} s"
    return [name, model.outcome, transport.outcome, server.outcome, repeats, after, message]


async def all_rows() -> list[list[str]]:
    rows: list[list[str]] = []
    async with misbehaving() as api, ways(api.url) as way:
        for behavior in BEHAVIORS:
            api.behave = behavior.behave
            rows.append(await row(behavior.name, way))
        rows += await rows_of_statuses(api, way)
    return [*rows, *await rows_without_http()]


async def rows_of_statuses(api: MisbehavingAPI, way: Ways) -> list[list[str]]:
    """Return each error status, with and without `retry-after`; statuses with the same outcome share a row."""
    codes: dict[tuple[str, ...], list[str]] = {}
    for code in STATUSES:
        both: list[tuple[str, ...]] = []
        for retry_after in (None, 7):
            behavior = status(code, retry_after)
            api.behave = behavior.behave
            cells = await row(behavior.name, way, retry_after)
            both.append(tuple(cell.replace(str(code), "…") for cell in cells))
        assert both[0] == both[1]
        codes.setdefault(both[0], []).append(str(code))
    return [[f"answers {', '.join(answers)}", *cells[1:]] for cells, answers in codes.items()]


async def rows_without_http() -> list[list[str]]:
    """Return addresses with which no HTTP request is made."""
    rows: list[list[str]] = []
    async with misbehaving(has_certificate=True) as tls, misbehaving() as plain:
        for name, url in (
            ("has a certificate that it has signed itself", tls.url),
            ("speaks no TLS where TLS is expected", plain.url.replace("http:", "https:")),
            ("has a name that DNS does not know", "http://made-up.invalid"),
            ("refuses the connection", "http://127.0.0.1:9"),
        ):
            async with ways(url) as way:
                rows.append(await row(name, way))
    return rows


def page_of(rows: list[list[str]]) -> str:
    """Return the rows as lists, one for each outcome."""
    groups: dict[str, list[str]] = {}
    for name, model, transport, server, repeats, after, message in rows:
        outcome = f"**model: {model} · transport: {transport} · server: {server} · repeated: {repeats}**"
        time_taken = "" if after == AT_ONCE else f" ({after})"
        groups.setdefault(outcome, []).append(f"- {name}{time_taken}: {message}")
    return "\n\n".join("\n".join([f"{outcome}\n", *lines]) for outcome, lines in groups.items())


def durations_in(page: str) -> tuple[str, list[int]]:
    """Return a page without times, and the least seconds of each line."""
    pattern = re.compile(r" \((\d+) s\)(?=: )")
    matches = (pattern.search(line) for line in page.splitlines())
    return pattern.sub("", page), [int(match[1]) if match else 0 for match in matches]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_each_misbehaviour_has_the_documented_outcome() -> None:
    """MSG-E11, MSG-35"""
    rows = await all_rows()
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    written, _, after = rest.partition(END)
    if os.environ.get("CC_WRITE_DOCS"):
        PAGE.write_text(f"{before}{BEGIN}\n{page_of(rows)}\n{END}{after}", "utf-8")
        return
    (measured, durations), (documented, promised) = durations_in(page_of(rows)), durations_in(written.strip())
    assert measured == documented
    # Slower machines take longer; none takes less.
    assert [*map(max, durations, promised)] == durations
