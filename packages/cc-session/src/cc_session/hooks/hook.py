"""Hooks: the caller's functions that the CLI calls on an event and waits for, and their results.

`hooks/calls.py` calls them, and enforces the timeout of each. This module also checks a hook's event and matcher before
the CLI sees them: a matcher that the CLI cannot read silently never matches, and the CLI drops an unknown event. The
rules in `hook()` are the CLI's, from the code and from runs of 2.1.329.
"""

import inspect
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from claude_agent_sdk import HookJSONOutput

from cc_types import JsonValue

from ..identity import value_class
from ..limits import checked_seconds

OnError: TypeAlias = Literal["block", "continue"]
"""Effect of a failed hook on the call, the prompt or the event's other subject."""

InputT = TypeVar("InputT", bound=Mapping[str, Any])

MAX_SECONDS = 2_000_000.0
"""Longest timeout of a hook, 23 days. The CLI clock treats a longer timeout as none at all."""

# Events whose subject a matcher cannot select.
_WITHOUT_MATCHER = frozenset((
    "PostToolBatch", "UserPromptSubmit", "Stop", "TeammateIdle", "TaskCreated", "TaskCompleted", "WorktreeCreate",
    "WorktreeRemove", "CwdChanged", "MessageDisplay",
))  # fmt: skip

_EVENT_NAMES = (
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionDenied", "PermissionRequest",
    "Notification", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure",
    "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PreModelSwitch", "PostModelSwitch", "Setup",
    "TeammateIdle", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange",
    "InstructionsLoaded", "WorktreeCreate", "WorktreeRemove", "CwdChanged", "FileChanged", "DirectoryAdded",
    "MessageDisplay", "PreSkillShellCommand",
)  # fmt: skip

EVENTS: Mapping[str, bool] = MappingProxyType({name: name not in _WITHOUT_MATCHER for name in _EVENT_NAMES})
"""The CLI events by name; true if a hook on the event can have a matcher."""

# Events for which the CLI allows fewer characters in a name; any other text is a regular expression.
_FEW_CHARACTERS = frozenset({"FileChanged", "StopFailure"})
_NAMES = re.compile(r"[A-Za-z0-9_|, -]*")
_FEW_NAMES = re.compile(r"[A-Za-z0-9_|]*")

# Syntax that JavaScript lacks or reads differently: Python groups and flags, possessive quantifiers, an open lower
# bound, and anchors that are plain letters there. Escapes and classes are skipped.
_PYTHON_ONLY = re.compile(
    r"""
    \\(?P<anchor>[AZ]) | \\. | \[\^?\]?(?:\\.|[^\]\\])*\] |
    (?P<group>\(\?(?!:|=|!|<=|<!)) | (?P<possessive>[*+?}]\+) | (?P<bound>\{,)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """Result of a hook. With no field set it means no opinion.

    A change of input, output or context that the event does not take is a failure; a decision that it does not take has
    no effect.
    """

    decision: Literal["allow", "deny", "ask"] | None = None
    """Decision on the event. Among several hooks, deny overrides ask, and ask overrides allow. On `Stop` and
    `SubagentStop`, deny makes the model continue, because of `reason`."""
    reason: str = ""
    """Reason, shown to the denied or asked party."""
    updated_input: Mapping[str, JsonValue] | None = None
    """Replacement for a tool input."""
    updated_output: JsonValue = None
    """Replacement for a tool output, for the model."""
    context: str = ""
    """Additional text for the model."""
    stops: bool = False
    """True to end the turn here. The turn's caller then gets `reason`."""

    @classmethod
    def allow(cls, reason: str = "", *, updated_input: Mapping[str, JsonValue] | None = None) -> Self:
        """Return "allow", which overrides the CLI rules, except deny rules."""
        return cls(decision="allow", reason=reason, updated_input=updated_input)

    @classmethod
    def deny(cls, reason: str) -> Self:
        """Return a denial."""
        return cls(decision="deny", reason=reason)

    @classmethod
    def ask(cls, reason: str = "") -> Self:
        """Let the permission callback decide."""
        return cls(decision="ask", reason=reason)

    @classmethod
    def no_opinion(cls) -> Self:
        """Return no opinion. Returning None is a failure: a forgotten `return` must not let anything pass."""
        return cls()


HookReturn: TypeAlias = HookResult | HookJSONOutput
"""Return value of a hook: a `HookResult`, or an output as the SDK hooks have it; `{}` decides nothing."""

HookFunction: TypeAlias = Callable[[InputT], Awaitable[HookReturn] | HookReturn]


@value_class
@dataclass(frozen=True, slots=True, eq=False)
class Hook(Generic[InputT]):
    """A hook for `Session.open(hooks=…)`, made by `hook()` or `command_hook()`. A call to it calls the function."""

    event: str
    """Event name, such as `"PreToolUse"`."""
    function: HookFunction[InputT]
    """Function that takes the event input."""
    matcher: str | None = None
    """Tools, or other subjects of the event; None is all."""
    timeout: float = 30.0
    """Seconds until it is cancelled and has failed; a function in a thread runs on, without effect."""
    on_error: OnError = "block"
    """Effect of a failure."""
    runs_here: bool = False
    """True if a coroutine function runs on the background loop, and not on the caller's."""

    def __post_init__(self) -> None:
        _check_event(self.event)
        _check_matcher(self.event, self.matcher)
        if checked_seconds(self.timeout, "hook") > MAX_SECONDS:
            raise ValueError(f"the timeout of a hook is at most {MAX_SECONDS:,.0f} seconds, not {self.timeout:,.0f}")
        if self.on_error not in ("block", "continue"):
            raise ValueError(f"on_error is 'block' or 'continue', not {self.on_error!r}")

    @property
    def name(self) -> str:
        """Name in reports."""
        return getattr(self.function, "__qualname__", None) or type(self.function).__name__

    def __call__(self, input: InputT) -> Awaitable[HookReturn] | HookReturn:
        """Call the function."""
        return self.function(input)

    def __repr__(self) -> str:
        return f"<Hook {self.name} on {self.event} matcher={self.matcher!r}>"


def hook(
    event: str, matcher: str | None = None, *, timeout: float = 30.0, on_error: OnError = "block"
) -> Callable[[HookFunction[InputT]], Hook[InputT]]:
    """Declare a hook.

    ```python
    @hook("PreToolUse", "Bash")
    async def no_sudo(input: PreToolUseHookInput) -> HookResult:
        return HookResult.deny("no sudo") if "sudo" in input["tool_input"]["command"] else HookResult.no_opinion()
    ```

    The function takes the event input, for which the SDK has types. A coroutine function runs on the event loop of
    the turn's caller, any other function in a thread; both have the caller's context variables.

    A hook fails when it raises, exceeds the timeout, or returns None, or a change that the event does not take. The
    failure is logged and blocks the event: the tool does not run, the prompt is not sent. On `Stop`, `SubagentStop`,
    `StopFailure`, `SessionEnd` and other events that report a past action, there is nothing to block.
    `SessionStart` and `SessionEnd` come with `/clear` alone: a process learns of its hooks after the start.

    Args:
        event: A name in `EVENTS`: `PreToolUse`, `PostToolUse`, `UserPromptSubmit`, `Stop`, `SubagentStop`,
            `PreCompact`, `Notification` and more.
        matcher: The tools, or other subjects of the event, such as the reason for a session start or the type of a
            sub-agent. None, an empty text and `"*"` match all. A text with letters, digits, `_`, `-`, spaces, `|` and
            `,` only is a list of exact names, split at `|` or `,`, as in `"Edit|Write"`: `bash` and `Bas` do not match
            `Bash`. Anything else is a JavaScript regular expression that may match anywhere in a name, as in
            `mcp__.*__write` and `^Note`. An MCP tool name is `mcp__server__tool`.
        timeout: Seconds until it is cancelled and has failed; a function in a thread runs on, without effect.
        on_error: `"continue"` to go on as if it had no opinion when it fails.

    Raises:
        ValueError: The CLI has no such event, or would read the matcher differently.
        re.error: The matcher is not a regular expression.
        TypeError: The function does not take one argument.
    """
    _check_event(event)
    _check_matcher(event, matcher)

    def decorate(function: HookFunction[InputT]) -> Hook[InputT]:
        inspect.signature(function).bind({})
        return Hook(event, function, matcher, timeout, on_error)

    return decorate


def _check_event(event: str) -> None:
    if event not in EVENTS:
        raise ValueError(f"the CLI has no hook event {event!r}; it has {', '.join(EVENTS)}")


def _check_matcher(event: str, matcher: str | None) -> None:
    """Raise if the CLI would not read a matcher as intended; None is everything."""
    if matcher in (None, "", "*"):
        return
    if not EVENTS[event]:
        raise ValueError(f"{event} has nothing that a matcher could match, and the CLI would ignore it: {matcher!r}")
    names = _FEW_NAMES if event in _FEW_CHARACTERS else _NAMES
    if not names.fullmatch(matcher):
        _check_expression(matcher)
    elif not matcher.strip(" |,"):
        raise ValueError(f"the matcher {matcher!r} names nothing, so it would never match")


def _check_expression(expression: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about set operations, which neither language has here
        re.compile(expression)
    for match in _PYTHON_ONLY.finditer(expression):
        if match.lastgroup is not None:
            raise ValueError(
                f"the CLI matches with JavaScript's regular expressions, where {match.group()!r} in {expression!r} "
                "means something else or nothing"
            )
