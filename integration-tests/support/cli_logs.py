"""The real CLI in a folder of its own on the loopback API, and the files that it writes."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import claude_agent_sdk

from cc_loopback import LoopbackServer

CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
# Seconds. A run takes half a second; the machine may be busy.
PATIENCE = 40.0
STREAM = ("--output-format", "stream-json", "--verbose")


@dataclass
class CliRuns:
    """Runs the CLI; the API answers with counts that differ from request to request."""

    server: LoopbackServer
    folder: Path
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    """Extra fields in the usage of the next answers."""
    streams: list[Path] = field(default_factory=list[Path])
    """Output of each run."""
    _answers: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "weather.txt").write_text("sunny, 21 degrees\n", encoding="utf-8")
        self.server.respond = self._respond

    @property
    def transcripts(self) -> Path:
        """Return the folder of the CLI's transcripts."""
        return Path(self.server.env()["CLAUDE_CONFIG_DIR"]) / "projects"

    def run(
        self, prompt: str, *options: str, form: tuple[str, ...] = STREAM, given: str | None = None
    ) -> dict[str, Any]:
        """Run one prompt, and return the result.

        A prompt with READ makes the model read a file, one with AGENT makes it start a sub-agent that reads it.
        """
        command = [CLI, "-p", prompt, *form, "--allowedTools", "Read,Agent,Task", *options]
        if "--model" not in options:
            command += ["--model", "claude-sonnet-5"]
        done = subprocess.run(
            command, cwd=self.folder, env={**os.environ, **self.server.env()}, input=given or "", capture_output=True,
            text=True, timeout=PATIENCE, encoding="utf-8",
        )  # fmt: skip
        path = self.folder / f"run{len(self.streams)}.out"
        path.write_text(done.stdout, encoding="utf-8")
        self.streams.append(path)
        results = [one for one in _objects(done.stdout) if one.get("type") == "result"]
        assert results, done.stderr
        return results[-1]

    def _respond(self, body: dict[str, Any]) -> dict[str, Any]:
        self._answers += 1
        number = self._answers
        usage = {
            "input_tokens": 100 + number,
            "output_tokens": 50 + 7 * number,
            "cache_creation_input_tokens": 3000 + number,
            "cache_read_input_tokens": 5000 + 11 * number,
            "cache_creation": {"ephemeral_5m_input_tokens": 1000 + number, "ephemeral_1h_input_tokens": 2000},
            "service_tier": "standard",
            "inference_geo": "global",
        }
        usage |= self.usage
        return {"content": self._content(body), "usage": usage}

    def _content(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        tools = {tool.get("name") for tool in body.get("tools", [])}
        prompt, answered = _last_prompt(body)
        if answered:
            return [{"type": "text", "text": "The tool answered."}]
        if "StructuredOutput" in tools:
            return [{"type": "tool_use", "name": "StructuredOutput", "input": {"city": "Paris"}}]
        if "READ" in prompt and "Read" in tools:
            call = {"type": "tool_use", "name": "Read", "input": {"file_path": str(self.folder / "weather.txt")}}
            return [{"type": "thinking", "thinking": "I should look."}, {"type": "text", "text": "Let me look."}, call]
        if "AGENT" in prompt and (agents := tools & {"Agent", "Task"}):
            task = {"description": "look", "prompt": "READ the file", "subagent_type": "general-purpose"}
            return [{"type": "tool_use", "name": agents.pop(), "input": task}]
        return [{"type": "text", "text": "Hello, this is an answer."}]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        value = json.loads(line)
        yield from value if isinstance(value, list) else [value]


def _last_prompt(body: dict[str, Any]) -> tuple[str, bool]:
    content = [message for message in body["messages"] if message["role"] == "user"][-1]["content"]
    if isinstance(content, str):
        return content, False
    text = " ".join(block.get("text", "") for block in content if block["type"] == "text")
    return text, any(block["type"] == "tool_result" for block in content)
