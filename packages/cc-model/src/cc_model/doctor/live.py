"""The live check: scenarios against the real API, within a maximum price, with a report that has no secrets.

`cc-model doctor --live` runs it. The report is written after each scenario, so that Ctrl-C leaves the results so far.
"""

import asyncio
import os
import platform
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from anthropic import AsyncAnthropic
from genai_prices import Usage, calc_price
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import RunUsage

from cc_session.internals import find_cli, login_advice
from cc_types import CLIConnectionError

from ..model import ClaudeCodeModel
from ..profile import resolve_alias
from ..provider import ClaudeCodeProvider
from .cli import login_of, version_of
from .scenarios import SCENARIOS, Scenario, ScenarioError

_KEY = "ANTHROPIC_API_KEY"
# For a scenario with all requests: more means a hang.
_SECONDS = 240.0
_LONGEST = 200
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|HEADERS", re.IGNORECASE)
_LEAST_SECRET = 6
_PATTERNS = (
    (re.compile(r"sk-[\w-]{4,}"), "<key>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<email>"),
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?:msg|org|req|srvtoolu|toolu)[_-]\w{4,}"), "<id>"),
    (re.compile(r"https?://(?!api\.anthropic\.com)[^\s'\"]+"), "<address>"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """Options for the live check."""

    report: Path
    max_usd: Decimal
    """Maximum price in US dollars. A scenario that could pass it is skipped."""
    model: str = "sonnet"
    cli_path: str | None = None

    @property
    def compares(self) -> bool:
        """True if there is a key, so that `AnthropicModel` can run the same scenarios."""
        return bool(os.environ.get(_KEY))

    @property
    def most(self) -> Decimal:
        """Maximum price of all scenarios, without `max_usd`.

        Raises:
            LookupError: The model price is unknown.
        """
        return sum((price_of(scenario, self.model) for scenario in SCENARIOS), Decimal(0)) * (2 if self.compares else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveResult:
    """Result of a scenario."""

    name: str
    outcome: Literal["ok", "failed", "skipped"]
    finding: str
    direct: str = ""
    """Result with `AnthropicModel`; empty if there is no key."""
    seconds: float = 0.0
    tokens: str = ""
    usd: Decimal = Decimal(0)


def price_of(scenario: Scenario, model: str) -> Decimal:
    """Return a scenario's maximum price in US dollars, by the list prices; cache writes count twice."""
    usage = Usage(input_tokens=2 * scenario.input_tokens, output_tokens=scenario.output_tokens)
    return calc_price(usage, resolve_alias(model), provider_id="anthropic").total_price


def scrub(text: str) -> str:
    """Return a text in a single line without secrets, addresses, ids, and the home folder path."""
    secrets = [value for name, value in os.environ.items() if _SECRET_NAME.search(name) and len(value) >= _LEAST_SECRET]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "<secret>")
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    home = str(Path.home())
    if home != Path(home).anchor:
        text = text.replace(home, "~")
    text = " ".join(text.replace("|", "/").split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class LiveCheck:
    """Runs the scenarios, and writes the report."""

    def __init__(self, plan: LivePlan) -> None:
        self._plan = plan
        self._head: list[str] = []
        self.results: list[LiveResult] = []
        self.cost: Decimal = Decimal(0)
        """US dollars so far: a scenario's tokens by the list prices, or the maximum if the tokens are unknown."""

    async def run(self) -> AsyncIterator[LiveResult]:
        """Yield each scenario result when it is in the report.

        Raises:
            cc_types.CLIConnectionError: There is no CLI or no login.
            OSError: The CLI cannot be run, or the report cannot be written.
        """
        plan = self._plan
        self._head = await _head(plan)
        self._write()
        async with AsyncExitStack() as stack:
            provider = ClaudeCodeProvider(pool=1, cli_path=plan.cli_path, max_retries=1)
            await stack.enter_async_context(provider)
            model = ClaudeCodeModel(plan.model, provider=provider)
            direct: Model | None = None
            if plan.compares:
                client = await stack.enter_async_context(AsyncAnthropic())
                direct = AnthropicModel(resolve_alias(plan.model), provider=AnthropicProvider(anthropic_client=client))
            for scenario in SCENARIOS:
                yield self._add(await self._result(scenario, model, direct))
            yield self._add(_limits_result(provider))

    def _add(self, result: LiveResult) -> LiveResult:
        self.results.append(result)
        self._write()
        return result

    async def _result(self, scenario: Scenario, model: Model, direct: Model | None) -> LiveResult:
        price = price_of(scenario, self._plan.model) * (1 if direct is None else 2)
        if self.cost + price > self._plan.max_usd:
            return LiveResult(
                name=scenario.name, outcome="skipped", finding=f"could pass the maximum of ${self._plan.max_usd}"
            )
        cost_before, start = self.cost, time.monotonic()
        is_ok, finding, usage = await self._run(scenario, model)
        seconds = time.monotonic() - start
        other_figures = ""
        if direct is not None:
            other_is_ok, text, other_usage = await self._run(scenario, direct)
            direct_tokens = other_usage.input_tokens
            tokens = "the same tokens" if direct_tokens == usage.input_tokens else f"{direct_tokens} tokens sent"
            other_figures = f"ok, {tokens}" if other_is_ok else f"failed: {text}"
        return LiveResult(
            name=scenario.name,
            outcome="ok" if is_ok else "failed",
            finding=finding,
            direct=other_figures,
            seconds=seconds,
            tokens=f"{usage.input_tokens}, {usage.cache_read_tokens}, {usage.output_tokens}",
            usd=self.cost - cost_before,
        )

    async def _run(self, scenario: Scenario, model: Model) -> tuple[bool, str, RunUsage]:
        usage = RunUsage()
        # Until the tokens are known, and if Ctrl-C comes before that.
        most = price_of(scenario, self._plan.model)
        self.cost += most
        try:
            async with asyncio.timeout(_SECONDS):
                finding, is_ok = await scenario.run(model, usage), True
        except ScenarioError as error:
            finding, is_ok = str(error), False
        except Exception as error:  # a request failed, so its tokens are unknown
            return False, scrub(f"{type(error).__name__}: {error}"), usage
        if usage.cost is not None:
            self.cost += Decimal(usage.cost) - most
        return is_ok, scrub(finding), usage

    def _write(self) -> None:
        names = [*(scenario.name for scenario in SCENARIOS), "limits"]
        missing_names = names[len(self.results) :]
        lines = [
            *self._head,
            "",
            "| Scenario | Outcome | Found | AnthropicModel | Seconds | Tokens sent, cached, received | USD |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(
                f"| {row.name} | {row.outcome} | {row.finding} | {row.direct or '-'} | {row.seconds:.1f} | "
                f"{row.tokens or '-'} | {row.usd:.4f} |"
                for row in self.results
            ),
            *(f"| {name} | not run | | | | | |" for name in missing_names),
            "",
            f"About ${self.cost:.4f} by the list prices, of at most ${self._plan.max_usd}.",
        ]
        self._plan.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


async def _head(plan: LivePlan) -> list[str]:
    cli = find_cli(plan.cli_path)
    if cli is None:
        raise CLIConnectionError(reason="There is no Claude Code CLI", advice="Name one with --cli.")
    cli_version = await version_of(cli)
    try:
        login = await login_of(cli)
    except ValueError as error:
        login = f"login unknown: {error}"
    if login is None:
        raise CLIConnectionError(reason="There is no login", advice=login_advice())
    names = ("cc-model", "pydantic-ai-slim", "anthropic", "claude-agent-sdk")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    address = "another address" if os.environ.get("ANTHROPIC_BASE_URL") else "the default address"
    return [
        "# cc-model doctor --live",
        "",
        f"- {time.strftime('%Y-%m-%d', time.gmtime())}, Python {platform.python_version()}, {sys.platform}",
        f"- {versions}",
        f"- CLI and login: {scrub(f'{cli_version}; {login}')}; {address}",
        f"- Model: {scrub(plan.model)}",
    ]


def _limits_result(provider: ClaudeCodeProvider) -> LiveResult:
    limits = provider.limits
    if limits is None:
        return LiveResult(name="limits", outcome="skipped", finding="no response had limits")
    windows = [f"{window.kind} {window.utilization:.0%}" for window in limits.windows if window.utilization is not None]
    rates = [f"{rate.kind} {rate.remaining} of {rate.limit}" for rate in limits.rates]
    return LiveResult(name="limits", outcome="ok", finding=scrub(", ".join([*windows, *rates])))
