"""Scripts: answers step by step, with errors that show the step and the request; and the place of a responder error.

This module knows no server.
"""

import inspect
import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

from .api.errors import ReplyError, ScriptError
from .api.reply import make_message
from .api.types import JsonObject, Reply, Respond
from .turn import texts_of

Step: TypeAlias = Reply | Respond
"""A step of a script: a reply, a `call()`, or a function from the request body to a reply."""

_ANY_REQUEST: JsonObject = {"model": "m"}
_LONGEST_TEXT = 200
_PACKAGE = Path(__file__).parent
# Files whose code stands between the server and the responder in a traceback.
_SERVER_FILES = frozenset(str(_PACKAGE / name) for name in ("app.py", "script.py", "api/reply.py"))


def call(name: str, /, **arguments: object) -> JsonObject:
    """Return a tool call, a step of a script. A list of calls is a step with all of them.

    Args:
        name: Tool name.
        arguments: Arguments for the tool; not checked, so that a test can send invalid ones.
    """
    return {"type": "tool_use", "name": name, "input": arguments}


class Script:
    """Responder that answers each request with the next step. Errors name `place`, the script file and line.

    Raises:
        ReplyError: A step is not a reply.
    """

    def __init__(self, steps: Sequence[Step], place: str) -> None:
        if isinstance(steps, (str, Mapping)):
            raise ReplyError(f"a script is a list of steps, not {steps!r}: write [{steps!r}]")
        self._steps = [step if callable(step) else _whole_reply(step) for step in steps]
        for number, step in enumerate(self._steps, 1):
            if not callable(step):
                _check(step, f"step {number} of the script at {place}")
        self._place = place
        # The number of requests and the text about the last are set together, as a test reads them in another thread.
        self._progress = (0, "")

    @property
    def problem(self) -> str:
        """Text about the steps that no request has used, and the last request; empty if there are none."""
        count, last_request = self._progress
        if count >= len(self._steps):
            return ""
        return (
            f"the script at {self._place} has {len(self._steps)} steps, but only {count} requests came; the next step "
            f"is {_shown(self._steps[count])}{last_request}"
        )

    async def __call__(self, body: JsonObject) -> Reply:
        """Answer a request with the next step.

        Raises:
            ScriptError: No step is left, a call is for a tool that the request does not offer, or a function returned
                an invalid reply.
        """
        number = self._progress[0] + 1
        self._progress = (number, f"\n  request {number}: {_request(body)}")
        place = f"of the script at {self._place}"
        if number > len(self._steps):
            raise ScriptError(f"request {number} came after the last step {place}\n{self._report(number, body)}")
        step = self._steps[number - 1]
        where = f"step {number} {place}"
        reply = await _result(step, body, where) if callable(step) else step
        offered = [tool["name"] for tool in body.get("tools") or ()]
        if unknown_names := [name for name in _tool_names(reply) if name not in offered]:
            problem = f"{where} calls {', '.join(unknown_names)}, which the request does not offer"
            raise ScriptError(f"{problem}\n{self._report(number, body)}")
        return reply

    def _report(self, number: int, body: JsonObject) -> str:
        steps = [f"  step {index}: {_shown(step)}" for index, step in enumerate(self._steps[:number], 1)]
        return "\n".join([*steps, f"  request {number}: {_request(body)}"])


def place_of(error: BaseException, respond: Respond) -> str:
    """Return where `respond` raised an error, or where it is defined if its reply is invalid.

    The line is the responder's own, also if a function that it calls raised the error.
    """
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    frames = [(code, line) for code, line in frames if code.co_filename not in _SERVER_FILES]
    if frames:
        script = frames[0][0]
        line = [line for code, line in frames if code.co_filename == script.co_filename][-1]
        return f"raised by the responder {script.co_qualname} at {_shown_path(script.co_filename)}:{line}"
    name = getattr(respond, "__qualname__", type(respond).__qualname__)
    code = getattr(inspect.unwrap(respond), "__code__", None)
    place = f" at {_shown_path(code.co_filename)}:{code.co_firstlineno}" if code else ""
    return f"from the responder {name}{place}"


def _shown_path(file: str) -> str:
    """Return the path from the current folder if the file is there, otherwise the whole path."""
    path, folder = Path(file), Path.cwd()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


async def _result(respond: Respond, body: JsonObject, where: str) -> Reply:
    try:
        result = respond(body)
        reply = _whole_reply(await result if inspect.isawaitable(result) else result)
    except Exception as error:
        error.add_note(f"{where} for {_request(body)}")
        raise
    try:
        _check(reply, where)
    except ReplyError as error:
        raise ScriptError(str(error)) from error
    return reply


def _whole_reply(step: Reply) -> Reply:
    """Return the reply in a step: a block alone is a list."""
    return [step] if isinstance(step, Mapping) and "type" in step and "content" not in step else step


def _check(reply: Reply, where: str) -> None:
    try:
        make_message(reply, _ANY_REQUEST, {"input_tokens": 1})
    except ReplyError as error:
        raise ReplyError(f"{where}: {error}") from error


def _blocks(reply: Reply) -> list[JsonObject]:
    content = reply["content"] if isinstance(reply, Mapping) else reply
    return [] if isinstance(content, str) else cast("list[JsonObject]", content)


def _tool_names(reply: Reply) -> list[str]:
    return [block["name"] for block in _blocks(reply) if block["type"] == "tool_use"]


def _shown(step: Reply | Callable[..., object]) -> str:
    if callable(step):
        return f"the function {getattr(step, '__qualname__', type(step).__qualname__)}"
    content = step["content"] if isinstance(step, Mapping) else step
    return repr(content) if isinstance(content, str) else ", ".join(map(_shown_block, _blocks(step)))


def _shown_block(block: JsonObject) -> str:
    match block["type"]:
        case "tool_use":
            arguments = ", ".join(f"{name}={value!r}" for name, value in block.get("input", {}).items())
            return f"call {block['name']}({arguments})"
        case "tool_result":
            text = _shortened(" ".join(texts_of(block.get("content"))))
            return f"{'error' if block.get('is_error') else 'result'} {text}"
        case "text":
            return _shortened(block["text"])
        case kind:
            return kind


def _request(body: JsonObject) -> str:
    """Return a request's last message and tools."""
    last_message = body["messages"][-1]
    content = last_message.get("content", [])
    message = _shortened(content) if isinstance(content, str) else ", ".join(map(_shown_block, content))
    tools = ", ".join(tool["name"] for tool in body.get("tools") or ()) or "none"
    return f"message {len(body['messages'])} ({last_message['role']}): {message}; tools: {tools}"


def _shortened(text: str) -> str:
    return json.dumps(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…", ensure_ascii=False)
