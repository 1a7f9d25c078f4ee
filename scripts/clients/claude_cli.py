"""The `claude` CLI, with built-in tools."""

import json
import os
import subprocess
from typing import Any

import abilities
from abilities import HELLO, TOKEN, URL

ENV = {**os.environ, **json.loads(os.environ["CLAUDE_ENV"]), "ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": TOKEN}


def claude(prompt: str, *options: str, form: str = "json", **env: str) -> str:
    command = [os.environ["CLAUDE_CLI"], "-p", "--model", abilities.MODEL, "--output-format", form, *options]
    return subprocess.run(
        command, input=prompt, env={**ENV, **env}, capture_output=True, text=True, timeout=60, check=False
    ).stdout


def result(prompt: str, *options: str, **env: str) -> dict[str, Any]:
    message = json.loads(claude(prompt, *options, **env))
    if message["is_error"]:
        raise RuntimeError(message["result"])
    return message


def ask(prompt: str, token: str = TOKEN) -> str:
    return result(prompt, ANTHROPIC_API_KEY=token, CLAUDE_CODE_MAX_RETRIES="0")["result"]


def events(prompt: str, *options: str) -> list[dict[str, Any]]:
    lines = claude(prompt, "--verbose", *options, form="stream-json").splitlines()
    return [json.loads(line) for line in lines]


def stream() -> list[str]:
    deltas = [line["event"].get("delta", {}) for line in events(HELLO, "--include-partial-messages") if "event" in line]
    return [delta["text"] for delta in deltas if "text" in delta]


def images() -> str:
    line = json.dumps({"type": "user", "message": {"role": "user", "content": abilities.IMAGE}})
    return events(f"{line}\n", "--input-format", "stream-json")[-1]["result"]


abilities.report(
    ask,
    versions={"claude": claude("", "--version").split()[0]},
    refuse=abilities.REFUSE.replace("400", "403"),  # after a 400 this client asks again, with a smaller request
    retried=lambda prompt: result(prompt)["result"],
    stream=stream,
    tools=lambda: result(abilities.WEATHER, "--allowedTools", "Bash(echo *)")["result"],
    structured=lambda: result(abilities.CITY, "--json-schema", json.dumps(abilities.CITY_SCHEMA))["structured_output"],
    images=images,
)
