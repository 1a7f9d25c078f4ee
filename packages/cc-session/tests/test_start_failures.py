"""Starts that the CLI refuses, starts of another program, and starts without a network."""

import re
import socket
import sys
import time
from pathlib import Path

import anyio
import pytest

from cc_session import Session, StartFailedError, sealed_options
from cc_session.internals import bundled_cli, login_advice, unreachable
from cc_types import CLIConnectionError, ProcessExitedError


def program_in(folder: Path, script: str) -> Path:
    """Write a shell script that can be executed."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return program


@pytest.mark.parametrize(
    ("variable", "value", "cause", "advice"),
    [
        ("HTTPS_PROXY", "::nonsense", "proxy_invalid", "Correct the variable"),
        ("CLAUDE_CODE_TMPDIR", "/proc/none", "temp_dir_unusable", "Set CLAUDE_CODE_TMPDIR to a folder"),
    ],
)
async def test_a_refused_start_has_the_cause_and_advice(variable: str, value: str, cause: str, advice: str) -> None:
    """SES-97: as Claude Code itself reports it."""
    env = {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9", variable: value}
    with anyio.fail_after(20), pytest.raises(StartFailedError, match=advice) as raised:
        await Session.open(sealed_options(env=env))
    error = raised.value
    assert (error.cause, error.exit_code, error.phase, error.retryable) == (cause, 1, "connect", False)
    assert value in str(error)


def test_a_refusal_by_an_organization_names_the_administrator() -> None:
    """SES-97"""
    error = StartFailedError(cause="org_pin_mismatch", message="Another organization.", exit_code=1)
    assert isinstance(error, ProcessExitedError)
    assert str(error) == (
        "Claude Code did not start (org_pin_mismatch): Another organization. "
        "Ask the administrator of this organization or machine, whose settings for Claude Code prevent it."
    )


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        ("", "exited with code 0 and wrote: nothing"),
        ("exit 1", "exited with code 1 and wrote: nothing"),
        ("echo Log in first; echo Bye", "exited with code 0 and wrote: Log in first Bye"),
        ("echo Unknown option >&2; exit 2", "exited with code 2 and wrote: Unknown option"),
        ('echo \'{"type": "odd"}\'', "exited with code 0 and wrote: nothing"),
    ],
)
async def test_another_program_is_named_with_the_option(tmp_path: Path, script: str, ending: str) -> None:
    """SES-97, SES-132"""
    program = program_in(tmp_path, script)
    words = f"cli_path='{program}' is not Claude Code's CLI: it {ending}. Leave cli_path out to run {bundled_cli()}"
    with anyio.fail_after(20), pytest.raises(StartFailedError, match=re.escape(words)) as raised:
        await Session.open(sealed_options(cli_path=program))
    assert (raised.value.cause, raised.value.retryable) == ("not_claude_code", False)


@pytest.mark.parametrize("program", ["/bin/ls", "/bin/sh", sys.executable])
async def test_a_program_of_the_system_fails_at_once(program: str) -> None:
    """SES-132"""
    with anyio.fail_after(10), pytest.raises(StartFailedError, match="is not Claude Code's CLI"):
        await Session.open(sealed_options(cli_path=program))


@pytest.mark.worlds
async def test_without_a_network_a_start_fails_soon_a_repetition_at_once() -> None:
    """SES-98: the CLI itself tries for 18 seconds."""
    env = {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "", "HTTPS_PROXY": "http://user:secret@127.0.0.1:9"}
    begun = time.monotonic()
    for limit in (6, 3):
        with anyio.fail_after(limit), pytest.raises(CLIConnectionError, match="Check the network") as raised:
            await Session.open(sealed_options(env=env))
        assert "through the proxy http://127.0.0.1:9 (from HTTPS_PROXY) cannot be reached" in str(raised.value)
        assert "secret" not in str(raised.value)
    assert time.monotonic() - begun > 3


async def test_the_host_of_the_api_is_tried_without_a_request() -> None:
    """SES-98"""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert await unreachable({"ANTHROPIC_BASE_URL": url}) is None
        assert await unreachable({"ANTHROPIC_BASE_URL": "http://made-up.invalid", "HTTPS_PROXY": url}) is None
    reason = await unreachable({"ANTHROPIC_BASE_URL": url})
    assert reason is not None
    assert reason.startswith(f"{url} (from ANTHROPIC_BASE_URL) cannot be reached: ")
    for nonsense in ("localhost:80", "http://host:port"):
        assert "is not a URL" in str(await unreachable({"ANTHROPIC_BASE_URL": nonsense}))
    # Not known here: a provider's own address, and a host that may be excepted from the proxy.
    assert await unreachable({"CLAUDE_CODE_USE_BEDROCK": "1"}) is None
    assert await unreachable({"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}) is None


@pytest.mark.parametrize(
    ("env", "advice"),
    [
        ({"ANTHROPIC_API_KEY": "x"}, "The key in ANTHROPIC_API_KEY was refused"),
        ({"ANTHROPIC_AUTH_TOKEN": "x"}, "The token in ANTHROPIC_AUTH_TOKEN was refused: replace it"),
        ({"ANTHROPIC_AUTH_TOKEN": "sk-ant-oat-x"}, "ANTHROPIC_AUTH_TOKEN was refused: run .*setup-token"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "x"}, "CLAUDE_CODE_OAUTH_TOKEN was refused: run .*setup-token"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "The cloud provider refused"),
        ({}, "Set ANTHROPIC_API_KEY, or run .* and type /login"),
        (None, "Set ANTHROPIC_API_KEY, or run .* and type /login"),
    ],
)
def test_the_advice_is_about_the_login_in_use(env: dict[str, str] | None, advice: str) -> None:
    """SES-99"""
    with pytest.raises(ValueError, match=advice):
        raise ValueError(login_advice(env))
