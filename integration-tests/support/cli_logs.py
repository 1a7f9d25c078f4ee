"""The real CLI in a private folder on the loopback API, and the logs that it writes."""

import json
import os
import subprocess
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import claude_agent_sdk

from cc_loopback import LoopbackServer

CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
# The CLI's words that ask for a compaction.
_COMPACTION = "create a detailed summary of"
_WORKFLOW = """export const meta = {name: "look-up", description: "Look up the weather"};
const first = await agent("READ the file", {label: "reader"});
return [first, await parallel([() => agent("say one"), () => agent("say two")])];
"""
# Seconds. A run takes half a second; the machine may be busy.
PATIENCE = 40.0
STREAM = ("--output-format", "stream-json", "--verbose")


class Served(NamedTuple):
    """An answer from the API."""

    session: str
    """The request's session."""
    counts: tuple[int, int, int, int, int]
    """Input, output, cache read, 5m write, 1h write."""
    compaction: bool
    """True if the answer is part of a compaction."""


class Conversation:
    """A CLI process that takes several prompts."""

    def __init__(self, process: "subprocess.Popen[str]", runs: "CliRuns") -> None:
        self._process, self._runs = process, runs
        self.session = ""
        """The session's id, from the first result on."""

    def say(self, prompt: str) -> dict[str, Any]:
        """Send a prompt, and return the turn's result."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin and stdout
        stdin.write(json.dumps({"type": "user", "message": {"role": "user", "content": prompt}}) + "\n")
        stdin.flush()
        for line in stdout:
            if (message := json.loads(line)).get("type") == "result":
                self.session = message["session_id"]
                return message
        raise AssertionError(f"the CLI ended before it answered {prompt!r}")

    def kill(self) -> None:
        """Kill the process, as soon as the answers are in the transcript."""
        deadline = time.monotonic() + PATIENCE
        while not self._runs.written():
            assert time.monotonic() < deadline, "an answer was not written"
            time.sleep(0.01)
        self._process.kill()
        self._process.wait()


@dataclass
class CliRuns:
    """Runs the CLI; the API answers with counts that differ from request to request."""

    server: LoopbackServer
    folder: Path
    cli: Path = CLI
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    """Extra usage fields in the next answers."""
    declining: str = ""
    """A model that declines the next answers after 33 tokens; the API has claude-opus-5 finish them."""
    streams: list[Path] = field(default_factory=list[Path])
    """Each run's output."""
    served: list[Served] = field(default_factory=list[Served])
    """The API's answers, request by request."""

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "weather.txt").write_text("sunny, 21 degrees\n", encoding="utf-8")
        self.server.respond = self._respond

    @property
    def transcripts(self) -> Path:
        """Return the CLI's folder for transcripts."""
        return Path(self.server.env()["CLAUDE_CONFIG_DIR"]) / "projects"

    @property
    def _env(self) -> dict[str, str]:
        own = self.server.env()
        # Some older CLIs do not know the variable for their temporary folder.
        return {**os.environ, **own, "TMPDIR": own["CLAUDE_CODE_TMPDIR"]}

    def run(
        self, prompt: str, *options: str, form: tuple[str, ...] = STREAM, stdin: str | None = None
    ) -> dict[str, Any]:
        """Run one prompt, and return the result.

        READ in a prompt makes the model read a file, AGENT start a sub-agent that reads it, and WORKFLOW start a
        workflow with three agents.
        """
        process = subprocess.run(
            self._command("-p", prompt, *form, *options), cwd=self.folder, env=self._env,
            input=stdin or "", capture_output=True, text=True, timeout=PATIENCE, encoding="utf-8",
        )  # fmt: skip
        path = self.folder / f"run{len(self.streams)}.out"
        path.write_text(process.stdout, encoding="utf-8")
        self.streams.append(path)
        results = [message for message in _objects(process.stdout) if message.get("type") == "result"]
        assert results, process.stderr
        return results[-1]

    def written(self) -> bool:
        """Return whether all answers that a transcript can have are in one."""
        text = "".join(path.read_text("utf-8") for path in self.transcripts.rglob("*.jsonl"))
        answers = (number for number, answer in enumerate(self.served, 1) if not answer.compaction)
        return all(f'"id":"{_message_id(number)}"' in text for number in answers)

    @contextmanager
    def conversation(self, *options: str) -> Generator[Conversation]:
        """Start a process that takes prompts until the block ends and then exits by itself."""
        command = self._command("-p", "--input-format", "stream-json", *STREAM, *options)
        process = subprocess.Popen(
            command, cwd=self.folder, env=self._env, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
        )  # fmt: skip
        watchdog = threading.Timer(4 * PATIENCE, process.kill)  # other processes run meanwhile
        watchdog.start()
        try:
            yield Conversation(process, self)
        finally:
            process.communicate()
            watchdog.cancel()

    def _command(self, *options: str) -> list[str | Path]:
        model = () if "--model" in options else ("--model", "claude-sonnet-5")
        return [self.cli, *options, *model, "--allowedTools", "Read,Agent,Task,Workflow"]

    def _respond(self, body: dict[str, Any]) -> dict[str, Any]:
        number = len(self.served) + 1
        counts = (100 + number, 50 + 7 * number, 5000 + 11 * number, 1000 + number, 2000)
        self.served.append(Served(_session_of(body), counts, _COMPACTION in json.dumps(body["messages"][-2:])))
        fresh, output, read, short, hour = counts
        usage = {
            "input_tokens": fresh,
            "output_tokens": output,
            "cache_creation_input_tokens": short + hour,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour},
            "service_tier": "standard",
            "inference_geo": "global",
        }
        usage |= self.usage
        answer = {"id": _message_id(number), "content": self._content(body), "usage": usage}
        return _finished_by_another(answer, self.declining) if self.declining else answer

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
        if "WORKFLOW" in prompt and "Workflow" in tools:
            return [{"type": "tool_use", "name": "Workflow", "input": {"script": _WORKFLOW}}]
        if "AGENT" in prompt and (agents := tools & {"Agent", "Task"}):
            task = {"description": "look", "prompt": "READ the file", "subagent_type": "general-purpose"}
            return [{"type": "tool_use", "name": agents.pop(), "input": task}]
        return [{"type": "text", "text": "Hello, this is an answer."}]


def _finished_by_another(answer: dict[str, Any], declining: str) -> dict[str, Any]:
    usage, other = answer["usage"], "claude-opus-5"
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = {name: usage[name] for name in (*names, "cache_creation")}
    first = dict.fromkeys(names, 0) | {"input_tokens": 900, "output_tokens": 33}
    iterations = [{"type": "message", "model": declining, **first}]
    iterations.append({"type": "fallback_message", "model": other, **counts})
    change = {"type": "fallback", "from": {"model": declining}, "to": {"model": other}}
    content = [{"type": "text", "text": "It is "}, change, *answer["content"]]
    return {**answer, "model": other, "content": content, "usage": {**usage, "iterations": iterations}}


def _message_id(number: int) -> str:
    return f"msg_{number:06}"


def _session_of(body: dict[str, Any]) -> str:
    user = body.get("metadata", {}).get("user_id", "")
    return json.loads(user)["session_id"] if user.startswith("{") else user.rpartition("_session_")[2]


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
