"""The `claude` CLI, with its own tools."""

import json
import os
import subprocess
from typing import Any

from abilities import (
    CITY,
    CITY_SCHEMA,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG_BASE64,
    REFUSE,
    TOKEN,
    URL,
    WEATHER,
    WRONG_TOKEN,
    report,
    say,
)

CLI = os.environ["CLAUDE_CLI"]
ENV = {**os.environ, **json.loads(os.environ["CLAUDE_ENV"]), "ANTHROPIC_BASE_URL": URL, "ANTHROPIC_API_KEY": TOKEN}


def claude(prompt: str, *options: str, form: str = "json", **env: str) -> str:
    """Return the output of the CLI."""
    command = [CLI, "-p", "--model", MODEL, "--output-format", form, *options]
    done = subprocess.run(
        command, input=prompt, env={**ENV, **env}, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def ask(prompt: str, *options: str, **env: str) -> dict[str, Any]:
    """Return the result of a prompt."""
    return json.loads(claude(prompt, *options, **env))


def events(prompt: str, *options: str) -> list[dict[str, Any]]:
    """Return the lines of a stream."""
    lines = claude(prompt, "--verbose", *options, form="stream-json").splitlines()
    return [json.loads(line) for line in lines]


def stream() -> list[str]:
    """Return the pieces of an answer."""
    deltas = [line["event"].get("delta", {}) for line in events(HELLO, "--include-partial-messages") if "event" in line]
    return [delta["text"] for delta in deltas if "text" in delta]


def images() -> str:
    """Ask about an image."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    content = [{"type": "image", "source": source}, {"type": "text", "text": LOOK}]
    line = json.dumps({"type": "user", "message": {"role": "user", "content": content}})
    return events(f"{line}\n", "--input-format", "stream-json")[-1]["result"]


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE.replace("400", "403"))  # after a 400 this client asks again, with a smaller request
    refused = ask(HELLO, CLAUDE_CODE_MAX_RETRIES="0")["result"]
    stranger = ask(HELLO, ANTHROPIC_API_KEY=WRONG_TOKEN, CLAUDE_CODE_MAX_RETRIES="0")["result"]
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO)["result"]]


say("versions", value={"claude": claude("", "--version").split()[0]})
report(
    text=lambda: ask(HELLO)["result"],
    stream=stream,
    tools=lambda: ask(WEATHER, "--allowedTools", "Bash(echo *)")["result"],
    structured=lambda: ask(CITY, "--json-schema", json.dumps(CITY_SCHEMA))["structured_output"],
    images=images,
    errors=errors,
)
