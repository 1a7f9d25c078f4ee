"""Turns in four forms (raw dicts, SDK objects, two look-alikes), and logs built line by line."""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, cast

import pytest

from cc_convert.cli import main

Frame: TypeAlias = dict[str, object]
Form: TypeAlias = Callable[[Frame], object]
Classes: TypeAlias = Mapping[str, type]

LOGS = Path(__file__).parent / "logs"
BLOCKS = {kind: kind.title().replace("_", "") + "Block" for kind in ("text", "thinking", "tool_use", "tool_result")}
FIELDS = {
    "TextBlock": ["text"],
    "ThinkingBlock": ["thinking", "signature"],
    "ToolUseBlock": ["id", "name", "input"],
    "ToolResultBlock": ["tool_use_id", "content", "is_error"],
    "DeferredToolUse": ["id", "name", "input"],
    "AssistantMessage": ["content", "model", "parent_tool_use_id"],
    "UserMessage": ["content"],
    "SystemMessage": ["subtype", "data"],
    "ResultMessage": [
        "subtype", "duration_ms", "duration_api_ms", "is_error", "num_turns", "session_id", "stop_reason",
        "total_cost_usd", "usage", "result", "structured_output", "model_usage", "permission_denials",
        "deferred_tool_use", "errors", "api_error_status", "uuid", "terminal_reason", "origin", "user_message_uuid",
        "user_message_uuids",
    ],
}  # fmt: skip


def _make(kind: type, values: Mapping[str, object]) -> object:
    fields = {field.name: field for field in dataclasses.fields(kind)}
    required = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    fields_set = {name: value for name, value in values.items() if name in fields}
    return cast("object", kind(**(dict.fromkeys(required) | fields_set)))


def _as_object(frame: Frame, classes: Classes) -> object:
    if frame["type"] == "result":
        deferred = cast("Frame | None", frame.get("deferred_tool_use"))
        values = frame | {"model_usage": frame.get("modelUsage")}
        values["deferred_tool_use"] = deferred and _make(classes["DeferredToolUse"], deferred)
        return _make(classes["ResultMessage"], values)
    if frame["type"] == "system":
        return _make(classes["SystemMessage"], frame | {"data": frame})
    message = cast("Frame", frame["message"])
    content = [
        _make(classes[BLOCKS[cast("str", block["type"])]], block) for block in cast("list[Frame]", message["content"])
    ]
    kind = "AssistantMessage" if frame["type"] == "assistant" else "UserMessage"
    return _make(classes[kind], message | frame | {"content": content})


def _with_slots() -> Classes:
    return {
        kind: dataclasses.make_dataclass(kind, [(name, object, None) for name in names], slots=True)
        for kind, names in FIELDS.items()
    }


def _namespace(frame: Frame) -> object:
    value = cast("Any", _as_object(frame, _with_slots()))
    return SimpleNamespace(**{field.name: getattr(value, field.name) for field in dataclasses.fields(value)})


def _maker_of_objects(kind: str) -> Form:
    classes = cast("Classes", vars(pytest.importorskip("claude_agent_sdk.types"))) if kind == "sdk" else _with_slots()
    return lambda frame: _as_object(frame, classes)


@pytest.fixture(params=["dict", "sdk", "slots", "namespace"])
def form(request: pytest.FixtureRequest) -> Form:
    """Converts a stream-json frame to an equivalent input form."""
    if request.param == "dict":
        return lambda frame: frame
    return _namespace if request.param == "namespace" else _maker_of_objects(request.param)


@pytest.fixture(params=["sdk", "slots"], scope="session")
def as_object(request: pytest.FixtureRequest) -> Form:
    """Return a frame as an object."""
    return _maker_of_objects(request.param)


@pytest.fixture
def recorded() -> Callable[[str], list[Frame]]:
    """Return a log that the CLI wrote."""
    return lambda name: [json.loads(line) for line in (LOGS / f"{name}.jsonl").read_text("utf-8").splitlines()]


class LogMaker:
    """Writes lines in the CLI's format, with increasing ids and times a minute apart."""

    def __init__(
        self, path: Path, session: str = "s1", start: str = "2026-11-20T10:00:00Z", project: str = "/home/user/p"
    ) -> None:
        self.path, self.session, self.project = path, session, project
        self.lines: list[Frame] = []
        self._time = datetime.fromisoformat(start)
        self._number = 0

    def time(self) -> str:
        """Return the next minute."""
        self._time += timedelta(minutes=1)
        return self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _common(self) -> Frame:
        return {"cwd": self.project, "sessionId": self.session, "timestamp": self.time()}

    def usage(self, **counts: object) -> Frame:
        """Input 100, output 20, read 1000, written 300 (100 of it for an hour)."""
        cache: Frame = {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100}
        usage: Frame = {
            "input_tokens": 100, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 1000,
            "output_tokens": 20, "cache_creation": cache, "service_tier": "standard", "inference_geo": "global",
            "iterations": [], "speed": "standard",
        }  # fmt: skip
        return usage | counts

    def answer(
        self,
        identity: str = "",
        *,
        content: list[Frame] | None = None,
        model: str = "claude-sonnet-5",
        usage: Frame | None = None,
        **more: object,
    ) -> Frame:
        """Add one content block in an answer, to a transcript."""
        self._number += 1
        identity = identity or f"msg_{self.session}_{self._number}"
        message = {
            "id": identity, "type": "message", "role": "assistant", "model": model,
            "content": content or [{"type": "text", "text": "Hello."}], "stop_reason": "end_turn",
            "usage": self.usage() if usage is None else usage,
        }  # fmt: skip
        line: Frame = {
            "parentUuid": None, "isSidechain": False, "message": message, "requestId": f"req_{identity}",
            "type": "assistant", "uuid": f"uuid-{self.session}-{self._number}", **self._common(),
        }  # fmt: skip
        line = {name: value for name, value in (line | more).items() if value is not ...}
        self.lines.append(line)
        return line

    def answers(self, *identities: str) -> None:
        """Add one block for each answer."""
        for identity in identities:
            self.answer(identity)

    def user(self, content: object = "Hi", **more: object) -> Frame:
        """Add a prompt, or a tool result."""
        message = {"role": "user", "content": content}
        line: Frame = {"parentUuid": None, "type": "user", "message": message, **self._common(), **more}
        self.lines.append(line)
        return line

    def state(
        self, totals: Mapping[str, tuple[int, int, int, int, int, float]], session: str = "", **more: object
    ) -> None:
        """Add the CLI's total: input, output, read, 5m, 1h, dollars, by model."""
        usage = {model: model_usage(*numbers) for model, numbers in totals.items()}
        cost = sum(numbers[5] for numbers in totals.values())
        self.lines.append(
            {"type": "cost-state", "sessionId": session or self.session, "totalCostUSD": cost, "modelUsage": usage}
            | more
        )

    def compaction(self, tokens: int) -> None:
        """Add a compaction with a number of tokens."""
        self._number += 1
        line: Frame = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"preTokens": tokens}}
        self.lines.append(line | {"uuid": f"uuid-{self.session}-{self._number}"} | self._common())

    def stream(self, identity: str, *, output: int = 1, model: str = "claude-sonnet-5", **more: object) -> None:
        """Add one content block in an answer, as stream-json, with the counts at its start."""
        message = {
            "id": identity, "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": "Hello."}], "stop_reason": None,
            "usage": self.usage(output_tokens=output),
        }  # fmt: skip
        self.lines.append(
            {
                "type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": self.session,
                "uuid": f"uuid-{identity}", "timestamp": self.time(), "request_id": f"req_{identity}", **more,
            }
        )  # fmt: skip

    def result(
        self,
        uuid: str,
        total: tuple[int, int, int, int, int, float],
        delta: tuple[int, int, int, int, int, float] | None = None,
        turns: int = 1,
    ) -> None:
        """Add the end of a turn: the session's usage so far, and optionally the turn's usage."""
        line: Frame = {
            "type": "result", "subtype": "success", "is_error": False, "num_turns": turns, "uuid": uuid,
            "session_id": self.session, "result": "Hello.", "total_cost_usd": total[5],
            "usage": self.usage(), "modelUsage": {"claude-sonnet-5": model_usage(*total)},
        }  # fmt: skip
        if delta is not None:
            line["model_usage_since_last_result"] = {"claude-sonnet-5": model_usage(*delta)}
        self.lines.append(line)

    def text(self) -> bytes:
        """Return the log."""
        return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in self.lines)

    def write(self, path: Path | None = None) -> Path:
        """Write the log to a file, by default to `log.jsonl` in the test's folder."""
        path = path or self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.text())
        return path


def model_usage(fresh: int, output: int, read: int, short: int, hour: int, cost: float) -> Frame:
    return {
        "inputTokens": fresh, "outputTokens": output, "cacheReadInputTokens": read,
        "cacheCreationInputTokens": short + hour, "cacheCreationEphemeral5mInputTokens": short,
        "cacheCreationEphemeral1hInputTokens": hour, "webSearchRequests": 0, "costUSD": cost,
    }  # fmt: skip


@pytest.fixture
def maker(tmp_path: Path) -> Callable[..., LogMaker]:
    """Creates logs."""
    return partial(LogMaker, tmp_path / "log.jsonl")


@pytest.fixture
def log(maker: Callable[..., LogMaker]) -> LogMaker:
    """Return an empty log for the session `s1`."""
    return maker()


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from this machine's logs and cache."""
    monkeypatch.setenv("CC_CONVERT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("TZ", "UTC")
    if sys.platform != "win32":
        time.tzset()


# --- the command


class Outcome(NamedTuple):
    """Result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the decoded output."""
        return json.loads(self.out)


Run: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def running(*words: object) -> Outcome:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return running


@pytest.fixture
def short_log(log: LogMaker) -> Path:
    """Return three requests on two days, among them a compaction."""
    log.user("What is <b>this</b>?")
    log.answer("msg_1", content=[{"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "x"}}])
    log.user([{"type": "tool_result", "tool_use_id": "t1", "content": "```\nfile\n```"}])
    log.answer("msg_2", timestamp="2026-11-21T10:00:00Z")
    log.state({"claude-sonnet-5": (300, 60, 3000, 600, 300, 0.0045)})
    return log.write()


SESSION = "0123abcd-0123-4123-8123-0123456789ab"


@pytest.fixture
def session(maker: Callable[..., LogMaker], tmp_path: Path) -> Path:
    """Return a session with a prompt, an answer, a tool call with a result, and a sub-agent's transcript."""
    log = maker(SESSION, project="/home/user/my project")
    labels: dict[str, Any] = {"gitBranch": "main", "entrypoint": "cli", "version": "2.1.329"}
    log.user("Mend the needle pool", **labels)
    log.answer(content=[{"type": "thinking", "thinking": "Where may the haystack be?"}], **labels)
    log.answer(content=[{"type": "text", "text": "I look for\nthe Needle\nin it."}], **labels)
    tool_input = {"command": 'grep -n "needle" *.py', "edits": [{"old": "a\tb"}, {"new": "c\nd"}]}
    log.answer(content=[{"type": "tool_use", "id": "t1", "name": "Bash", "input": tool_input}], **labels)
    log.user(
        [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "pool.py:7"}]}], **labels
    )
    log.lines.append({"type": "ai-title", "aiTitle": "Pool repair", "sessionId": SESSION})
    log.write(tmp_path / "logs" / f"{SESSION}.jsonl")
    agent = maker(SESSION, project="/home/user/my project")
    agent.user("Look for straw", agentId="a1", isSidechain=True)
    agent.write(tmp_path / "logs" / SESSION / "subagents" / "agent-a1.jsonl")
    return tmp_path / "logs"
