"""Command `cc-model doctor`, against the real CLI."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer
from cc_model.command_line import main
from cc_model.doctor.tested import TESTED_CLIS
from cc_session.internals import bundled_cli
from login_file import SECRET, write_login

Run = Callable[..., tuple[int, dict[str, dict[str, str]]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run with `--json`; return the exit code, and the checks by name."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))

    def run(*options: str) -> tuple[int, dict[str, dict[str, str]]]:
        code = main(["doctor", "--json", *options])
        report: Any = json.loads(capsys.readouterr().out)
        assert report["ok"] is (code == 0)
        return code, {check["name"]: check for check in report["checks"]}

    return run


@pytest.mark.worlds
def test_every_check_is_ok_on_a_machine_without_problems(
    run: Run, monkeypatch: pytest.MonkeyPatch, loopback: LoopbackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-86, MODEL-102: the figures for memory are those in the documentation."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "deploy.md").read_text("utf-8")
    idle, own = map(int, re.findall(r"an idle process \| (\d+) MB resident, (\d+) MB of it", page)[0])
    planned = int(re.findall(r"plan for \| (\d+) MB each", page)[0])
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    code, checks = run("--pool", "3")
    assert code == 0
    assert {check["outcome"] for check in checks.values()} == {"ok"}
    assert list(checks) == [
        "Python",
        "packages",
        "tools in the CLI's loop",
        "temporary folder",
        "memory",
        "Claude Code CLI",
        "login",
        "address",
        "round trip",
    ]
    assert "ANTHROPIC_API_KEY" in checks["login"]["found"]
    assert "not tried, which takes --online" in checks["login"]["found"]
    assert checks["address"]["found"].endswith("takes connections; no request was sent")
    assert not loopback.requests
    assert main(["doctor"]) == 0
    assert "the login was not tried: --online asks it" in capsys.readouterr().out
    assert "sk-secret" not in str(checks)
    assert "scripted model" in checks["round trip"]["found"]
    assert f"tested; the newest tested version is {TESTED_CLIS[-1]}" in checks["Claude Code CLI"]["found"]
    expected = f"3 processes take {idle + 2 * own} MB when idle, and up to {3 * planned} MB with long conversations"
    assert checks["memory"]["found"].startswith(expected)


@pytest.mark.worlds
def test_a_missing_login_is_a_problem_with_advice(run: Run) -> None:
    code, checks = run()
    assert code == 1
    assert checks["login"]["outcome"] == "problem"
    assert "ANTHROPIC_API_KEY" in checks["login"]["advice"]
    assert checks["round trip"]["outcome"] == "ok"
    assert run("--online")[1]["round trip"]["outcome"] == "skipped"


@pytest.mark.worlds
def test_online_the_api_is_asked(
    run: Run, monkeypatch: pytest.MonkeyPatch, loopback: LoopbackServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-102"""
    for name, value in loopback.env().items():
        monkeypatch.setenv(name, value)
    code, checks = run("--online", "--model", "haiku")
    assert (code, checks["round trip"]["outcome"]) == (0, "ok")
    assert "claude-haiku" in checks["round trip"]["found"]
    assert len(loopback.requests) == 2
    assert "tried below" in checks["login"]["found"]
    assert main(["doctor", "--online"]) == 0
    assert capsys.readouterr().out.endswith("Claude Code can answer here.\n")
    loopback.fail_next(401, message="made-up refusal")
    code, checks = run("--online")
    assert (code, checks["round trip"]["outcome"]) == (1, "problem")
    assert "made-up refusal" in checks["round trip"]["found"]


@pytest.mark.worlds
def test_an_address_that_takes_no_connection_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """MODEL-102: with a made-up key, which no one has checked."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    code, checks = run()
    assert (code, checks["address"]["outcome"]) == (1, "problem")
    assert "http://127.0.0.1:9 (from ANTHROPIC_BASE_URL) cannot be reached" in checks["address"]["found"]
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    assert run()[1]["address"]["outcome"] == "skipped"


@pytest.mark.worlds
@pytest.mark.skipif(sys.platform != "linux", reason="on Linux the login is a file")
def test_the_end_of_a_login_is_shown_without_the_login(run: Run, tmp_path: Path) -> None:
    """MODEL-104."""
    ends_at = write_login(tmp_path / "config")
    found = run()[1]["login"]["found"]
    assert f"claude.ai, provider firstParty, ends {ends_at:%Y-%m-%dT%H:%M:%S}" in found
    assert SECRET not in found


def test_a_missing_cli_is_a_problem(run: Run, tmp_path: Path) -> None:
    code, checks = run("--cli", str(tmp_path / "none"))
    assert code == 1
    assert checks["Claude Code CLI"]["outcome"] == "problem"
    assert checks["login"]["outcome"] == checks["round trip"]["outcome"] == "skipped"


def test_another_version_of_the_cli_is_a_warning(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "claude"
    other.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "1.0.0 (Claude Code)"\n')
    other.chmod(0o700)
    _, checks = run("--cli", str(other))
    assert checks["Claude Code CLI"]["outcome"] == "warning"
    assert "1.0.0" in checks["Claude Code CLI"]["found"]
    assert checks["login"]["outcome"] == "warning"
    assert checks["round trip"]["outcome"] == "problem"


def test_a_cli_that_does_not_answer_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    silent = tmp_path / "claude"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o700)
    monkeypatch.setattr("cc_model.doctor.cli._ANSWER_SECONDS", 0.2)
    code, checks = run("--cli", str(silent))
    assert (code, checks["Claude Code CLI"]["outcome"]) == (1, "problem")
    assert checks["Claude Code CLI"]["found"] == f"{silent}: no answer within 0.2 s"


@pytest.mark.worlds
def test_problems_of_the_machine_say_what_to_do(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too many processes for the memory, a folder with a path too long for sockets, and no scripted model."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setitem(sys.modules, "cc_loopback", None)
    code, checks = run("--pool", "1000000")
    assert (code, checks["memory"]["outcome"]) == (1, "problem")
    assert "pool=" in checks["memory"]["advice"]
    assert checks["tools in the CLI's loop"]["outcome"] == "problem"
    assert "TMPDIR" in checks["tools in the CLI's loop"]["advice"]
    assert checks["round trip"]["outcome"] == "skipped"
    assert 'pip install "cc-model[doctor]"' in checks["round trip"]["advice"]
    # The output for people has a line for each check.
    assert main(["doctor"]) == 1
    output = capsys.readouterr().out
    assert f"PROBLEM  login: there is no login\n         Set ANTHROPIC_API_KEY, or run {bundled_cli()} in" in output
    assert output.endswith("Fix the problems above first.\n")
