"""A log with a line for each request, in the form of Claude Code's transcripts, which cc-convert reads.

Several processes and threads may write to the same file: a line is written at once, to its end.
"""

import json
import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolReturnPart,
    UserPromptPart,
)

from cc_convert.internals import open_private
from cc_messages.internals import cost_of, usages_of
from cc_types import JsonValue

if TYPE_CHECKING:
    from cc_messages import RequestReport

logger = logging.getLogger(__name__)

_ENTRYPOINT = "cc-model"
_SERVER = "mcp_server:"


class RequestLog:
    """File with a line for each request: agent, model, tokens, cost, milliseconds, and whether a process was started.

    The file is readable by this user only, also if it existed, and it must not be a link. `cc-convert report agent
    FILE` sums it up. The first of failed writes is logged as a warning, and none fails a request.

    Args:
        path: The file, created with the first line; its folder must exist. It may be renamed at any time: the next line
            begins a new file.
        prompts: True if lines also have prompts, answers, and tool calls with their results; otherwise they have no
            text of a conversation but the names of the called tools.

    Raises:
        ValueError: The folder does not exist, or `path` is a folder.
    """

    def __init__(self, path: str | Path, *, prompts: bool = False) -> None:
        self.path: Path = Path(path).absolute()
        """The file."""
        self.prompts: bool = prompts
        """True if lines have prompts and answers."""
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise ValueError(f"The log {str(path)!r} is not a file in an existing folder: create the folder first")
        self._has_failed = self._is_cut = False

    def __repr__(self) -> str:
        return f"RequestLog({str(self.path)!r})"

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a record; never raises an `OSError`."""
        # Half of a character, which a tool text may contain, cannot be UTF-8.
        line = (
            json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")
            + b"\n"
        )
        try:
            with open(self.path, "ab", buffering=0, opener=open_private) as file:
                if self._is_cut:  # a full disk has cut the last line, which must not take this one along
                    line = b"\n" + line
                # Appended in a single call, so that lines of several processes do not mix.
                written = file.write(line)
            self._is_cut = 0 < written < len(line) or (self._is_cut and not written)
            if written < len(line):
                raise OSError(f"{len(line) - written} bytes of a line could not be written")
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                logger.warning("Requests are not logged: %s cannot be written: %s", self.path, error)
            self._has_failed = True


class LogEntry:
    """A request on its way to the log; in `messages`, only the last is new."""

    def __init__(self, log: RequestLog, model: str, messages: Sequence[ModelMessage], context: RunContext[Any]) -> None:
        self.report: RequestReport | None = None
        """How the request was handled, if it came that far."""
        self.response: ModelResponse | None = None
        """The response; None without one."""
        self._log, self._model, self._last_message = log, model, messages[-1] if messages else None
        self._began = time.monotonic()
        session = context.conversation_id or context.run_id or ""
        self._common: dict[str, Any] = {"sessionId": session, "cwd": "", "entrypoint": _ENTRYPOINT}
        with suppress(OSError):  # the folder was deleted
            self._common["cwd"] = os.getcwd()
        if name := context.agent and context.agent.name:
            self._common["attributionAgent"] = name
        self._messages: dict[str, Mapping[str, JsonValue]] = {}
        self._has_ended = False

    def take_usage(self, message: Mapping[str, JsonValue]) -> None:
        """Take the API counts so far, in any thread; after the end, they complete an answer that broke off."""
        if isinstance(message.get("usage"), dict):
            self._messages[str(message.get("id", ""))] = message
            if self._has_ended:
                self._write_answer(message)

    def __enter__(self) -> None:
        """Begin; the lines are written at the end, also if the request fails or is left."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Write the lines; never raises an `Exception`, since the request itself has not failed."""
        self._has_ended = True
        try:
            self._write_all(error)
        except Exception:
            logger.exception("A request could not be logged")

    def _write_all(self, error: BaseException | None) -> None:
        if self._log.prompts and (blocks := _prompt_blocks(self._last_message)):
            self._write("user", message={"role": "user", "content": blocks})
        for message in list(self._messages.values()):
            self._write_answer(message)
        if error is not None and not self._messages:
            reason = f"{type(error).__name__}: {error}" if self._log.prompts else type(error).__name__
            content = [{"type": "text", "text": reason}]
            failure: dict[str, Any] = {"model": self._model, "role": "assistant", "content": content, "usage": {}}
            self._write("assistant", isApiErrorMessage=True, message=failure)

    def _write_answer(self, message: Mapping[str, JsonValue]) -> None:
        cost = cost_of(usages_of(message))
        more: dict[str, Any] = {} if cost is None else {"costUSD": round(cost, 9)}
        content = _answer_blocks(self.response, with_text=self._log.prompts)
        self._write("assistant", message={**message, "content": content, "usage": message["usage"]}, **more)

    def _write(self, kind: str, **fields: Any) -> None:
        timestamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        facts: dict[str, Any] = {"type": kind, "timestamp": timestamp, "uuid": str(uuid4()), **self._common}
        if kind == "assistant":
            facts["durationMs"] = round((time.monotonic() - self._began) * 1000, 1)
            if self.report is not None:
                facts["processStarted"] = self.report.process_started
        self._log.write(facts | fields)


def _prompt_blocks(message: ModelMessage | None) -> list[dict[str, Any]]:
    """Return a request's new parts as blocks; files by their kind alone."""
    blocks: list[dict[str, Any]] = []
    for part in message.parts if isinstance(message, ModelRequest) else ():
        match part:
            case UserPromptPart():
                items = [part.content] if isinstance(part.content, str) else part.content
                texts = [item if isinstance(item, str) else f"[{type(item).__name__}]" for item in items]
                blocks += [{"type": "text", "text": text} for text in texts]
            case ToolReturnPart():
                result = {"type": "tool_result", "tool_use_id": part.tool_call_id, "content": part.model_response_str()}
                blocks.append({**result, "is_error": part.outcome in ("failed", "retried")})
            case _:
                pass
    return blocks


def _answer_blocks(response: ModelResponse | None, *, with_text: bool) -> list[dict[str, Any]]:
    """Return an answer's blocks; without text, only the called tools' names."""
    blocks: list[dict[str, Any]] = []
    for part in response.parts if response else ():
        match part:
            case BaseToolCallPart():
                call = {"type": "tool_use", "id": part.tool_call_id, "name": _tool_name(part)}
                blocks.append(call | ({"input": part.args_as_dict()} if with_text else {}))
            case TextPart() if with_text:
                blocks.append({"type": "text", "text": part.content})
            case ThinkingPart() if with_text:
                blocks.append({"type": "thinking", "thinking": part.content})
            case _:
                pass
    return blocks


def _tool_name(part: BaseToolCallPart) -> str:
    """Return the called tool; a call by the CLI itself has it among its arguments."""
    name = part.args_as_dict().get("tool_name") if part.tool_name.startswith(_SERVER) else None
    return name if isinstance(name, str) else part.tool_name
