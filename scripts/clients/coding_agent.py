"""Runs a coding agent's command line with a private home folder, for the programs of coding agents in this folder."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import abilities

SECONDS = 120

# In the working folder, which is removed with all that a coding agent leaves there.
new_folder = partial(tempfile.mkdtemp, dir=Path.cwd())
HOME = new_folder()


def npm_command(name: str) -> str:
    """Return the path of a command that npm installed in the working folder."""
    return str(Path.cwd() / "node_modules" / ".bin" / name)


def run(command: Sequence[str], **env: str) -> str:
    """Return the output of a command, which runs in an empty folder.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(
        command,
        env={**os.environ, "HOME": HOME, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=new_folder(),
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout


def report_opencode(provider: str, settings: dict[str, object]) -> None:
    """Report the abilities of OpenCode with a provider and its own tools."""
    names = dict.fromkeys(("model", "small_model"), f"{provider}/{abilities.MODEL}")
    config = json.dumps({"autoupdate": False, **names, "provider": {provider: settings}})
    env = {"OPENCODE_CONFIG_CONTENT": config, "OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def ask(prompt: str) -> str:
        lines = run([npm_command("opencode"), "run", "--format", "json", prompt], **env).splitlines()
        return [event["part"]["text"] for event in map(json.loads, lines) if event["type"] == "text"][-1]

    abilities.report(
        ask,
        versions={"opencode-ai": run([npm_command("opencode"), "--version"]).strip()},
        tools=lambda: ask(abilities.WEATHER),
        errors=None,
    )
