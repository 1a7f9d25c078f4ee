"""Checks of the installation; each depends on those before it, and reports a finding and advice.

The checks change nothing, and neither read nor show a secret. They call the API only on request: otherwise the round
trip uses a scripted model on this machine.
"""

import platform
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of_package
from pathlib import Path
from typing import Literal

import psutil
from pydantic_ai import Agent

import cc_compat
from cc_ipc import TransportUnavailableError, resolve_transport
from cc_session.internals import api_address, api_url, find_cli, login_advice, unreachable

from ..model import ClaudeCodeModel
from ..provider import ClaudeCodeProvider
from .cli import login_of, version_of
from .tested import TESTED_CLIS

Outcome = Literal["ok", "warning", "problem", "skipped"]

_PACKAGES = ("cc-types", "cc-convert", "cc-compat", "cc-ipc", "cc-session", "cc-messages", "cc-model")
_LIBRARIES = ("pydantic-ai-slim", "anthropic", "claude-agent-sdk", "mcp", "httpx2")

# Measured with CLI 2.1.329 on Linux, as in `docs/how-to/deploy.md`: an idle process, its memory that is not shared with
# others, and a process with long conversations and images.
_IDLE_MB = 160
_OWN_MB = 85
_PLANNED_MB = 300
_MB = 1024 * 1024
# The CLI and the bridges store little there, but a disk this full will soon have no space.
_LEAST_DISK_MB = 200
# Login renewal and a model that thinks take some seconds.
_ANSWER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check."""

    name: str
    outcome: Outcome
    found: str
    advice: str = ""
    """Advice, in plain words; empty if nothing needs a fix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Options for the checks."""

    cli_path: str | None = None
    """Path to the CLI; the SDK CLI if None."""
    pool: int = 8
    """Number of processes for which the memory must suffice."""
    online: bool = False
    """True to call the API, which may cost some tokens."""
    model: str = "sonnet"
    """Model for this API call."""


async def examine(plan: Plan) -> AsyncIterator[Check]:
    """Yield each check result when it is done."""
    for check in (_python, _packages, _sockets, _temporary_folder):
        yield check()
    yield _memory(plan.pool)
    cli = find_cli(plan.cli_path)
    yield (checked := await _cli(cli))
    if cli is None or checked.outcome == "problem":
        yield Check("login", "skipped", "there is no CLI to ask")
        yield Check("address", "skipped", "there is no CLI that would use it")
        yield Check("round trip", "skipped", "there is no CLI to ask")
        return
    yield (login := await _login(cli, plan))
    yield await _address()
    if plan.online and login.outcome == "problem":
        yield Check("round trip", "skipped", "there is no login")
    else:
        yield await _round_trip(plan, cli)


def _python() -> Check:
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    if sys.platform == "win32":
        advice = "Windows is untested, and tools cannot go over a bridge process there."
        return Check("Python", "warning", python, advice)
    return Check("Python", "ok", python)


def _packages() -> Check:
    versions: dict[str, str] = {}
    for name in (*_PACKAGES, *_LIBRARIES):
        try:
            versions[name] = version_of_package(name)
        except PackageNotFoundError:
            return Check("packages", "problem", f"{name} is missing", "Install again: pip install --upgrade cc-model")
    series = {name: versions[name].rsplit(".", 1)[0] for name in _PACKAGES}
    if names := [name for name in _PACKAGES if series[name] != series["cc-model"]]:
        advice = "The packages belong together: pip install --upgrade cc-model"
        return Check("packages", "warning", f"{', '.join(names)}: another release than cc-model", advice)
    patch = cc_compat.status()
    if not patch.applied and not patch.sdk_skips_unknown:
        advice = (
            "Messages of a newer CLI may end a session; install a version of claude-agent-sdk that cc-compat knows."
        )
        return Check("packages", "warning", patch.reason, advice)
    return Check("packages", "ok", ", ".join(f"{name} {version}" for name, version in versions.items()))


def _sockets() -> Check:
    try:
        choice = resolve_transport()
    except TransportUnavailableError as error:
        return Check("tools in the CLI's loop", "problem", str(error), "Upgrade claude-agent-sdk and mcp.")
    if sys.platform == "win32":
        return Check("tools in the CLI's loop", "ok", f"over {choice.transport!r}; there are no Unix sockets here")
    try:
        with tempfile.TemporaryDirectory(prefix="cc-doctor-") as folder, socket.socket(socket.AF_UNIX) as server:
            server.bind(str(Path(folder) / "s"))
    except OSError as error:
        advice = "Set TMPDIR to a folder with a short name, on a disk of this machine that allows sockets."
        return Check("tools in the CLI's loop", "problem", f"no socket can be made: {error}", advice)
    return Check("tools in the CLI's loop", "ok", f"over {choice.transport!r}: {choice.reason}")


def _temporary_folder() -> Check:
    folder = tempfile.gettempdir()
    free_mb = shutil.disk_usage(folder).free // _MB
    if free_mb < _LEAST_DISK_MB:
        advice = "Make room, or set TMPDIR to a folder with more."
        return Check("temporary folder", "problem", f"{folder} has {free_mb} MB left", advice)
    return Check("temporary folder", "ok", f"{folder}, {free_mb} MB free")


def _memory(pool: int) -> Check:
    idle_mb, planned = _IDLE_MB + (pool - 1) * _OWN_MB, pool * _PLANNED_MB
    free_mb = psutil.virtual_memory().available // _MB
    need = f"{pool} processes take {idle_mb} MB when idle, and up to {planned} MB with long conversations"
    outcome: Outcome = "problem" if free_mb < idle_mb else "warning" if free_mb < planned else "ok"
    advice = "" if outcome == "ok" else f"Use ClaudeCodeProvider(pool={max(1, free_mb // _PLANNED_MB)})."
    return Check("memory", outcome, f"{need}; {free_mb} MB are free", advice)


async def _cli(cli: str | None) -> Check:
    if cli is None:
        advice = "Install claude-agent-sdk from a wheel, which brings it, or name a CLI with --cli."
        return Check("Claude Code CLI", "problem", "there is none", advice)
    try:
        version = await version_of(cli)
    except OSError as error:
        return Check("Claude Code CLI", "problem", f"{cli}: {error}", "Name another CLI with --cli.")
    newest = f"the newest tested version is {TESTED_CLIS[-1]}"
    if version.split()[0] in TESTED_CLIS:
        return Check("Claude Code CLI", "ok", f"{version}, tested; {newest}; {cli}")
    return Check("Claude Code CLI", "warning", f"{version}, {cli}", f"This version was not tested; {newest}.")


async def _login(cli: str, plan: Plan) -> Check:
    try:
        login = await login_of(cli)
    except (OSError, ValueError) as error:
        return Check("login", "warning", f"the CLI does not say: {error}", "Try a round trip with --online.")
    if login is None:
        return Check("login", "problem", "there is no login", login_advice())
    return Check("login", "ok", f"{login}; {'tried below' if plan.online else 'not tried, which takes --online'}")


async def _address() -> Check:
    if not api_url({}):
        return Check("address", "skipped", f"{api_address({})}: not tried")
    if problem := await unreachable({}):
        advice = "Check the network, the proxy and ANTHROPIC_BASE_URL. Without a network the first request fails."
        return Check("address", "problem", problem, advice)
    return Check("address", "ok", f"{api_address({})} takes connections; no request was sent")


async def _round_trip(plan: Plan, cli: str) -> Check:
    try:
        if plan.online:
            first_answer, second, model = await _ask_twice(cli, {}, plan.model)
            seconds = f"{model}: {first_answer:.1f} s with the start of a process, then {second:.1f} s"
        else:
            from cc_loopback import LoopbackServer

            async with LoopbackServer() as api:
                first_answer, second, _ = await _ask_twice(cli, api.env(), "sonnet")
            seconds = f"{first_answer:.1f} s with the start of a process, then {second * 1_000:.0f} ms"
            seconds += "; scripted model, not Claude"
        return Check("round trip", "ok", seconds)
    except ModuleNotFoundError as error:
        if error.name != "cc_loopback":
            raise
        advice = 'For a try without the API: pip install "cc-model[doctor]". --online asks the API.'
        return Check("round trip", "skipped", "the scripted model is not installed", advice)
    except Exception as error:
        advice = "If the message does not help, run `claude --debug` in a terminal."
        return Check("round trip", "problem", str(error), advice)


async def _ask_twice(cli: str, env: Mapping[str, str], model: str) -> tuple[float, float, str]:
    """Ask through all layers between an agent and a model; return the seconds of both runs, and the model name."""
    async with ClaudeCodeProvider(pool=1, env=env, cli_path=cli, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(model, provider=provider), model_settings={"timeout": _ANSWER_SECONDS})
        started_at = time.monotonic()
        await agent.run("Say OK.")
        middle = time.monotonic()
        result = await agent.run("Say OK.")
        return middle - started_at, time.monotonic() - middle, result.response.model_name or model
