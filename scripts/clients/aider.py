"""Aider, which edits files by text and has no tools."""

import sys

import abilities
from coding_agent import run

OPTIONS = (
    "--model", f"anthropic/{abilities.MODEL}", "--no-git", "--yes-always", "--no-pretty", "--no-check-update",
    "--no-show-model-warnings", "--no-show-release-notes", "--analytics-disable",
)  # fmt: skip


def ask(prompt: str) -> str:
    lines = run([sys.executable, "-P", "-m", "aider.main", *OPTIONS, "--message", prompt]).splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("Tokens: "))
    return next(line for line in reversed(lines[:end]) if line)


abilities.report(ask, "aider-chat", errors=None)
