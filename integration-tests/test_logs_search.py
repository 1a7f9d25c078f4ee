"""Real CLI sessions, found by a text and resumed."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from cc_convert.cli import main
from cc_loopback import LoopbackServer
from cli_logs import CLI, PATIENCE, CliRuns

pytestmark = pytest.mark.slow


def test_a_found_session_continues_with_the_printed_command(
    own_api: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LOG-81, LOG-70, LOG-73"""
    monkeypatch.setenv("CC_CONVERT_CACHE", str(tmp_path / "cache"))
    cli = CliRuns(own_api, tmp_path / "a folder")
    cli.run("READ the weather of the pelican coast")
    cli.run("Another matter")

    assert main(["search", "PELICAN coast", str(cli.transcripts), "--role", "prompt", "--format", "json"]) == 0
    [match] = json.loads(capsys.readouterr().out)
    env = {**os.environ, **own_api.env(), "PATH": f"{CLI.parent}{os.pathsep}{os.environ['PATH']}"}
    more = "-p 'And tomorrow?' --model claude-sonnet-5"
    subprocess.run(
        ["bash", "-c", f"{match['resume']} {more}"], env=env, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )

    request = json.dumps(own_api.requests[-1]["messages"])
    assert "pelican coast" in request and "And tomorrow?" in request
    assert match["title"] == "READ the weather of the pelican coast"
    assert match["version"] and match["entrypoint"]


def test_inputs_and_results_of_tools_are_found(
    own_api: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LOG-80: also in a sub-agent's transcript."""
    monkeypatch.setenv("CC_CONVERT_CACHE", str(tmp_path / "cache"))
    cli = CliRuns(own_api, tmp_path / "p")
    cli.run("AGENT: what is the weather?")

    def roles(text: str) -> set[tuple[str, bool]]:
        main(["search", text, str(cli.transcripts), "--format", "json"])
        return {(match["role"], bool(match["agent"])) for match in json.loads(capsys.readouterr().out)}

    assert ("result", True) in roles("sunny, 21 degrees")
    assert ("call", True) in roles("weather.txt")
