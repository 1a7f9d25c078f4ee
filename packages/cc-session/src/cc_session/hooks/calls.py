"""How the CLI calls a hook: within the hook timeout, with an answer in the CLI form, and never with an exception.

An exception would reach the CLI, which prints kilobytes of source code about it. So this module turns a failure into a
decision. The CLI also blocks when it gets no answer, in case this process hangs.

`CallbackRunner` calls the caller's functions from the background loop, with the context variables of the turn's caller.
A coroutine function runs on that caller's event loop, where its resources live. Any other function runs in a new
thread, so that it delays nothing else, however long it takes. These calls have no time limit: the calling code sets one
and cancels the call.

The CLI names the turn in a hook input. A caller has gone when its turn was abandoned, or its lease has ended. What
the CLI asks about such a turn afterwards is refused, and never goes to the next caller:

| Callback                                    | The caller is that of       | A late call                           |
|---------------------------------------------|-----------------------------|---------------------------------------|
| hook, also one in the SDK options           | the turn in the input       | blocks its event, whatever `on_error` |
| policy, a rule's `when`, `ask`              | the turn in the gate hook   | denied                                |
| `can_use_tool` beside a policy or questions | the turn in the gate hook   | denied                                |
| `can_use_tool` alone                        | the present turn            | denied between a leave and the next   |
| question of Claude's                        | the turn in the gate hook   | refused                               |
| form of an MCP server                       | the present turn            | declined if a turn that its caller    |
|                                             |                             | has left called this server           |
| dialog                                      | the present turn            | cancelled                             |
| in-process MCP server                       | who gave the server         | answered by that server               |
| `stderr` in the SDK options                 | the process, and its launch | all lines go to the one function      |

A process serves another launch only if each of these is the same object (`identity.py`).
"""

import asyncio
import contextvars
import inspect
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar, cast

from claude_agent_sdk import HookCallback, HookContext, HookJSONOutput, HookMatcher

from ..background import await_on, awaited_context
from .hook import Hook, HookResult

logger = logging.getLogger(__name__)

T = TypeVar("T")

mark_of_programs: ContextVar[Mapping[str, str]] = ContextVar("mark_of_programs", default=MappingProxyType({}))
"""Environment variables for a hook program, so that it ends with the session that calls it."""

# A turn that has been forgotten counts as a turn that the CLI began by itself, for the last caller.
_TURNS_REMEMBERED = 10_000

# Extra wait of the CLI, so that our timeout comes first, and gives the reason.
_CLI_WAITS_LONGER_SECONDS = 2.0

# Events with a decision field in `hookSpecificOutput`; elsewhere deny is sent as `block`.
_PERMISSIONS = frozenset({"PreToolUse", "PreModelSwitch", "PreSkillShellCommand"})

# Events where block makes the model continue; a hook that always fails would never let it end.
_BLOCKED_TO_GO_ON = frozenset({"Stop", "SubagentStop", "TaskCompleted", "TeammateIdle"})

# Events that report a past action.
_NEVER_BLOCKED = frozenset((
    "CwdChanged", "DirectoryAdded", "FileChanged", "InstructionsLoaded", "MessageDisplay", "Notification",
    "PermissionDenied", "PostCompact", "PostModelSwitch", "PostToolUseFailure", "SessionEnd", "SessionStart", "Setup",
    "StopFailure", "SubagentStart", "WorktreeRemove",
))  # fmt: skip
_WITH_CONTEXT = frozenset((
    "Notification", "PostModelSwitch", "PostToolBatch", "PostToolUse", "PostToolUseFailure", "PreToolUse",
    "SessionStart", "Stop", "SubagentStart", "SubagentStop", "UserPromptExpansion", "UserPromptSubmit",
))  # fmt: skip
_FIELDS = frozenset((
    "async", "async_", "asyncTimeout", "continue", "continue_", "decision", "hookSpecificOutput", "reason",
    "stopReason", "suppressOutput", "systemMessage",
))  # fmt: skip
_DECISIONS = frozenset({"allow", "ask", "defer", "deny"})


class QuitError(RuntimeError):
    """A callback raised an exception that is not an `Exception`, or one that a future does not accept.

    Raised in its place: it would stop the background loop, or leave the CLI without an answer.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"it raised {error!r}")


class CallerGoneError(RuntimeError):
    """The CLI asks about a turn whose caller has gone."""


@dataclass(slots=True)
class _Caller:
    loop: asyncio.AbstractEventLoop | None
    has_gone: bool = False
    tools: set[str] = field(default_factory=set[str])

    def leave(self) -> None:
        self.loop, self.has_gone = None, True


class CallbackRunner:
    """Calls functions on the event loop of a turn's caller; one caller at a time has a turn.

    `turn` is the CLI's `prompt_id`; None, as from an old CLI, is the turn that began last.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._current = _Caller(loop)
        self._opened = self._context = contextvars.copy_context()
        self._callers: OrderedDict[str, _Caller] = OrderedDict()
        self.left_tools: set[str] = set()
        """Tools that a turn whose caller has gone has called, by their names in rules."""
        self.mark: Mapping[str, str] = {}

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """Loop of the caller of the turn that began last; None also after that caller has gone."""
        return self._current.loop

    def begin(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Begin a turn of a caller on `loop`."""
        self._current, self._context = _Caller(loop), contextvars.copy_context()

    def leave(self) -> None:
        """Refuse later calls for the present turn."""
        self._current.leave()
        self.left_tools |= self._current.tools

    def leave_all(self) -> None:
        """Refuse later calls for all turns so far."""
        for caller in (self._current, *self._callers.values()):
            caller.leave()
        self._context = self._opened

    def check(self, turn: str | None) -> None:
        """Raise `CallerGoneError` if the turn's caller has gone."""
        self._caller_of(turn)

    def note_tool(self, turn: str | None, tool: str) -> None:
        """Learn that a turn calls a tool; raise `CallerGoneError` if the turn's caller has gone."""
        self._caller_of(turn).tools.add(tool)

    async def call(self, turn: str | None, function: Callable[..., Awaitable[T] | T], *args: object) -> T:
        """Call a function as `call_on()` does, for a turn's caller; raise if the caller has gone.

        The context of an earlier turn is that in which the session was opened: contexts can hold large objects.
        """
        caller = self._caller_of(turn)
        context = self._context if caller is self._current else self._opened
        return await call_on(caller.loop, function, *args, context=context)

    def note_turns(self) -> HookMatcher:
        """Return a hook that learns each turn id before any call for the turn."""

        async def note(input: Any, _tool_use_id: str | None, _context: HookContext) -> HookJSONOutput:
            if (turn := input.get("prompt_id")) is not None:
                self._callers.setdefault(turn, self._current)
                if len(self._callers) > _TURNS_REMEMBERED:
                    self._callers.popitem(last=False)
            return {}

        return HookMatcher(hooks=[note])

    def _caller_of(self, turn: str | None) -> _Caller:
        # The CLI begins turns by itself, too, for the caller of the last.
        caller = self._current if turn is None else self._callers.get(turn, self._current)
        if caller.has_gone:
            raise CallerGoneError("the caller of this turn has gone")
        return caller


async def call_on(
    loop: asyncio.AbstractEventLoop | None,
    function: Callable[..., Awaitable[T] | T],
    *args: object,
    context: contextvars.Context | None = None,
) -> T:
    """Call a function in a copy of `context`, and await its result, if it is awaitable, on `loop`, or here if None."""
    context = awaited_context(context)
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    result: Any = None if is_async else await _in_thread(context, function, *args)
    if not is_async and not inspect.isawaitable(result):
        return result

    async def run() -> T:
        task = asyncio.current_task()
        try:
            return await (cast("Awaitable[T]", function(*args)) if is_async else result)
        except BaseException as error:
            is_cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
            is_closed = asyncio.current_task() is not task  # with its event loop
            if is_cancelled or is_closed or _is_harmless(error):
                raise
            raise QuitError(error) from error

    return await await_on(loop, run(), context)


async def _in_thread(context: contextvars.Context, function: Callable[..., T], *args: object) -> T:
    """Call a function in a new thread, which does not end with a cancelled call, nor delay an exit."""
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()  # a cancelled caller must not cancel it

    def run() -> None:
        try:
            outcome.set_result(context.run(function, *args))
        except BaseException as error:
            outcome.set_exception(error if _is_harmless(error) else QuitError(error))

    threading.Thread(target=run, name="claude-code-callback", daemon=True).start()
    return await asyncio.wrap_future(outcome)


def _is_harmless(error: BaseException) -> bool:
    return isinstance(error, Exception) and not isinstance(error, StopIteration)


def for_the_cli(hook: Hook[Any], callback_runner: CallbackRunner) -> HookMatcher:
    """Return a hook in the SDK form."""

    async def answer(input: Any, _tool_use_id: str | None, _context: HookContext) -> HookJSONOutput:
        mark_of_programs.set(callback_runner.mark)
        limit = asyncio.timeout(hook.timeout)
        try:
            async with limit:
                if hook.runs_here:
                    returned = await call_on(None, hook.function, input)
                else:
                    returned = await callback_runner.call(input.get("prompt_id"), hook.function, input)
            return _json(hook.event, returned)
        except CallerGoneError as error:
            return refused(hook.event, error)
        except Exception as error:
            if limit.expired() and isinstance(error, TimeoutError):
                return _failed(hook, f"took longer than {hook.timeout:g} seconds", error)
            return _failed(hook, f"raised {type(error).__name__}", error)

    return HookMatcher(
        matcher=hook.matcher, hooks=[answer], timeout=hook.timeout + _CLI_WAITS_LONGER_SECONDS, on_failure=hook.on_error
    )


def denied(event: str, reason: str) -> HookJSONOutput:
    """Return the output that blocks `event`, or `{}` if it cannot be blocked."""
    return {} if event in _NEVER_BLOCKED | _BLOCKED_TO_GO_ON else _json(event, HookResult.deny(reason))


def refused(event: str, error: CallerGoneError) -> HookJSONOutput:
    """Return the output that blocks `event`, because nobody is there to answer."""
    logger.debug("An event %s is refused: %s", event, error)
    return denied(event, f"This is refused: {error}.")


def keeping_in_memory(event: str, callback: HookCallback, callback_runner: CallbackRunner) -> HookCallback:
    """Return a hook that writes no permission to a settings file, and is answered whatever it raises."""

    async def keeping(input: Any, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        try:
            callback_runner.check(input.get("prompt_id"))
        except CallerGoneError as error:
            return refused(event, error)
        output: Any = await call_on(None, callback, input, tool_use_id, context)
        match output:
            case {
                "hookSpecificOutput": {"decision": {"updatedPermissions": [*updates], **decision}, **specific},
                **top,
            } if event == "PermissionRequest":
                in_memory = [{**update, "destination": "session"} for update in updates]
                specific["decision"] = {**decision, "updatedPermissions": in_memory}
                return cast(HookJSONOutput, {**top, "hookSpecificOutput": specific})
            case _:
                return output

    return keeping


def _failed(hook: Hook[Any], failure: str, error: Exception) -> HookJSONOutput:
    logger.error("The hook %s on %s %s", hook.name, hook.event, failure, exc_info=error)
    # Without the error text, which may be for the log only.
    return {} if hook.on_error == "continue" else denied(hook.event, f"The hook {hook.name} {failure}.")


def _json(event: str, returned: object) -> HookJSONOutput:
    if isinstance(returned, HookResult):
        return _from_result(event, returned)
    if not isinstance(returned, Mapping):
        raise TypeError(
            f"a hook returns a HookResult or a dict, not {returned!r}: HookResult.no_opinion() decides nothing"
        )
    output = dict(cast("Mapping[str, Any]", returned))
    _check_fields(event, output)
    return cast(HookJSONOutput, output)


def _from_result(event: str, result: HookResult) -> HookJSONOutput:
    specific = _decision(event, result)
    top: dict[str, Any] = {}
    if result.updated_input is not None and event == "PreToolUse":
        specific["updatedInput"] = dict(result.updated_input)
    elif result.updated_input is not None and "decision" not in specific:
        raise ValueError(f"a hook on {event} cannot change an input")
    if result.updated_output is not None:
        if event != "PostToolUse":
            raise ValueError(f"a hook on {event} cannot change an output")
        specific["updatedToolOutput"] = result.updated_output
    if result.context:
        if event not in _WITH_CONTEXT:
            raise ValueError(f"a hook on {event} cannot add context")
        specific["additionalContext"] = result.context
    if result.decision == "deny" and not specific.keys() & {"permissionDecision", "decision"}:
        top |= {"decision": "block", "reason": result.reason}
    if result.stops:
        top |= {"continue_": False, "stopReason": result.reason}
    if specific:
        top["hookSpecificOutput"] = {"hookEventName": event, **specific}
    return cast(HookJSONOutput, top)


def _decision(event: str, result: HookResult) -> dict[str, Any]:
    """Return the decision, if the event has fields for it."""
    if result.decision is None:
        return {}
    if event in _PERMISSIONS:
        return {"permissionDecision": result.decision, "permissionDecisionReason": result.reason}
    if result.decision == "ask" or (result.decision == "deny" and event in _NEVER_BLOCKED):
        raise ValueError(f"a hook on {event} cannot {result.decision}")
    if event == "PermissionRequest":
        if result.decision == "deny":
            return {"decision": {"behavior": "deny", "message": result.reason}}
        changed = {} if result.updated_input is None else {"updatedInput": dict(result.updated_input)}
        return {"decision": {"behavior": "allow", **changed}}
    return {}


def _check_fields(event: str, output: Mapping[str, Any]) -> None:
    """Raise if the CLI would silently ignore output that was meant to stop a call."""
    if unknown_fields := output.keys() - _FIELDS:
        raise ValueError(f"a hook's output has no field {', '.join(sorted(map(str, unknown_fields)))}")
    specific = output.get("hookSpecificOutput")
    if specific is None:
        return
    if not isinstance(specific, Mapping):
        raise TypeError(f"hookSpecificOutput is a dict, not {specific!r}")
    fields = cast("Mapping[str, Any]", specific)
    if fields.get("hookEventName") != event:
        raise ValueError(f"the output is for {fields.get('hookEventName')!r}, and this is a hook on {event}")
    if fields.get("permissionDecision", "allow") not in _DECISIONS:
        raise ValueError(f"there is no permissionDecision {fields['permissionDecision']!r}")
