"""Exactness: Claude Code in between makes no difference to an agent.

Each scenario runs twice, with `AnthropicModel` on the loopback API and with `ClaudeCodeModel` through the real CLI to
the same API. Outputs, messages, events, usage, errors and warnings must agree, and so must all request bodies except
for the differences that the design allows (`both_ways.comparable`). A scenario declares further differences itself.

All scenarios share the processes, so that each meets the state after all earlier scenarios.
"""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import pytest
from anthropic import AsyncAnthropic

from both_ways import BothWays
from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeProvider
from differences import Differences, differences_between
from played_host import played_host
from scenarios import SCENARIOS, Scenario


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left() -> Iterator[None]:
    """Check after the last scenario that no process remains."""
    others = {*psutil.Process().children(recursive=True)}
    yield
    _, alive = psutil.wait_procs({*psutil.Process().children(recursive=True)} - others, timeout=5)
    assert not alive, f"processes left: {alive}"


OTHER_LOGINS: tuple[Login, ...] = ("oauth", "vertex", "bedrock", "foundry")
AT_ITS_HOST: tuple[Login, ...] = ("api-key", "oauth")


@asynccontextmanager
async def ready(login: Login, folder: Path | None = None) -> AsyncGenerator[BothWays]:
    """Yield both ways to the loopback API; with a folder for its certificate, it plays the API's own host."""
    # A request whose history was rewritten anywhere before a thinking block would be refused.
    with LoopbackServer(signs_thinking=True) as api:
        async with (
            AsyncAnthropic(api_key="key", base_url=api.url, max_retries=0) as client,
            nullcontext(dict[str, str]()) if folder is None else played_host(api, folder) as host,
            ClaudeCodeProvider(env={**api.env(login), **host}, pool=6, max_retries=0) as provider,
        ):
            yield BothWays(api, client, provider, login)


@pytest.fixture(scope="module")
async def both_ways(nothing_is_left: None) -> AsyncIterator[BothWays]:
    async with ready("api-key") as both:
        yield both


@pytest.fixture(scope="module")
async def other_logins(nothing_is_left: None) -> AsyncIterator[Mapping[str, BothWays]]:
    async with AsyncExitStack() as stack:
        yield {login: await stack.enter_async_context(ready(login)) for login in OTHER_LOGINS}


@pytest.fixture(scope="module")
async def at_its_host(
    nothing_is_left: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[str, BothWays]]:
    async with AsyncExitStack() as stack:
        yield {
            login: await stack.enter_async_context(ready(login, tmp_path_factory.mktemp(login)))
            for login in AT_ITS_HOST
        }


# With this variable and `-n 0 -m "slow or not slow"`, a run writes the page with the table of differences.
WRITES_TABLE = bool(os.environ.get("WRITE_REQUEST_DIFFERENCES"))
OBSERVED: dict[Login, set[str]] = {}


@pytest.fixture(autouse=True, scope="module")
def written_table() -> Iterator[None]:
    """Write the table of all observed differences, if asked to."""
    yield
    if WRITES_TABLE:
        Differences().write(OBSERVED)


def test_each_difference_of_a_request_has_a_reason() -> None:
    """MSG-118"""
    reasons = Differences().reasons
    assert reasons
    assert all(reason not in ("", "?") for reason in reasons.values())


HEADERS_AT_ITS_HOST = frozenset({
    "`x-claude-1p-request-class`", "`x-claude-code-prompt-id`", "`x-claude-code-request-class`",
    "`x-claude-code-sandy-plover`", "`x-client-request-id`",
})  # fmt: skip

# The CLI removes the effort from a request to a Bedrock model released without effort.
BEYOND_THE_CLI = frozenset({("settings.every_level_of_thinking-claude-opus-4-5", "bedrock")})


def parameters() -> list[Any]:
    """Return the scenarios; those with a defect must fail, so that a fixed defect is noticed.

    What was tried with a model is tried with others in the ring of worlds.
    """
    models: dict[object, str] = {}
    marks: list[list[pytest.MarkDecorator]] = []
    for scenario in SCENARIOS:
        is_tried = models.setdefault(scenario.run, scenario.model_name) != scenario.model_name
        defect = [pytest.mark.xfail(reason=scenario.defect, strict=True)] if scenario.defect else []
        marks.append([*defect, *([pytest.mark.worlds] if is_tried else [])])
    return [
        pytest.param(scenario, id=scenario.name, marks=mark) for scenario, mark in zip(SCENARIOS, marks, strict=True)
    ]


@pytest.mark.parametrize("scenario", parameters())
async def test_both_ways_agree(scenario: Scenario, both_ways: BothWays) -> None:
    """MODEL-80, ARCH-21"""
    await compare(scenario, both_ways)


@pytest.mark.slow
@pytest.mark.parametrize("login", OTHER_LOGINS)
@pytest.mark.parametrize("scenario", parameters())
async def test_both_ways_agree_with_other_logins(
    scenario: Scenario, login: str, other_logins: Mapping[str, BothWays]
) -> None:
    """MODEL-80, ARCH-21"""
    if (scenario.name, login) in BEYOND_THE_CLI:
        pytest.xfail("the CLI leaves the effort out there")
    await compare(scenario, other_logins[login])


def mostly_slow() -> list[Any]:
    """Return the scenarios, some of them in the ring of worlds."""
    rings = [pytest.mark.worlds, *[pytest.mark.slow] * 24]
    return [
        pytest.param(*scenario.values, id=scenario.id, marks=(*scenario.marks, ring))
        for scenario, ring in zip(parameters(), cycle(rings), strict=False)
    ]


@pytest.mark.parametrize("login", AT_ITS_HOST)
@pytest.mark.parametrize("scenario", mostly_slow())
async def test_both_ways_agree_at_the_api_s_own_host(
    scenario: Scenario, login: str, at_its_host: Mapping[str, BothWays]
) -> None:
    """MODEL-80: but for headers."""
    await compare(scenario, at_its_host[login], HEADERS_AT_ITS_HOST)


async def compare(scenario: Scenario, both_ways: BothWays, more: frozenset[str] = frozenset()) -> None:
    direct = both_ways.direct(scenario.model_name, scenario.settings)
    through = both_ways.through(scenario.model_name, scenario.settings)

    expected = await both_ways.watch(scenario.run, direct, scenario.respond)
    observed = await both_ways.watch(scenario.run, through, scenario.respond)

    assert not both_ways.api.errors
    assert expected.bodies
    assert expected.error == (scenario.raises.__name__ if scenario.raises else None)
    if scenario.differ is not None:
        plain, expected = expected, scenario.differ(expected)
        assert expected != plain, "the difference that the scenario expects is none"
    assert observed.outcome == expected.outcome
    assert observed.bodies == expected.bodies
    assert observed.warnings == expected.warnings
    if scenario.differ is None:
        names = {
            name
            for directly, through_cli in zip(expected.calls, observed.calls, strict=True)
            for name in differences_between(directly, through_cli)
        }
        names -= more
        OBSERVED.setdefault(both_ways.login, set()).update(names)
        assert WRITES_TABLE or not Differences().unnamed(both_ways.login, names)


def test_there_are_enough_scenarios() -> None:
    """MODEL-80"""
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS) >= 60
