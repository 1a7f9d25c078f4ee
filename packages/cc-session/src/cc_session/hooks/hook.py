"""Hooks: functions of the caller's that the CLI waits for when something happens, and what they can say to it.

This module defines them; `hooks/calls.py` calls them. It knows no session.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from claude_agent_sdk import HookJSONOutput

from cc_types import JsonValue

from ..timeouts import checked_seconds
from .matchers import checked_event, checked_matcher

__all__ = ["MAX_SECONDS", "Hook", "HookResult", "HookReturn", "OnError", "hook"]

OnError: TypeAlias = Literal["block", "continue"]
"""What becomes of the call, the prompt or whatever else it was about when a hook fails."""

InputT = TypeVar("InputT", bound=Mapping[str, Any])

MAX_SECONDS = 2_000_000.0
"""The longest timeout of a hook, 23 days. The CLI's clock takes a longer one for none at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookResult:
    """What a hook says. With nothing set it says that it has no opinion.

    Where an event has no use for something, saying it is a failure of the hook: it would go unheard.
    """

    decision: Literal["allow", "deny", "ask"] | None = None
    """Whether it may go on. Of several hooks that decide, deny wins over ask, and ask over allow. On `Stop` and
    `SubagentStop`, to deny is to have the model go on, because of `reason`."""
    reason: str = ""
    """Why. Who is denied or asked gets to see it."""
    updated_input: Mapping[str, JsonValue] | None = None
    """What a tool is called with instead."""
    updated_output: JsonValue = None
    """What the model gets to see instead of a tool's output."""
    context: str = ""
    """What the model is told in addition."""
    stops: bool = False
    """Whether the turn ends here. `reason` is then told to its caller."""

    @classmethod
    def allow(cls, reason: str = "", *, updated_input: Mapping[str, JsonValue] | None = None) -> Self:
        """It may go on, whatever the CLI's own rules say, those that deny excepted."""
        return cls(decision="allow", reason=reason, updated_input=updated_input)

    @classmethod
    def deny(cls, reason: str) -> Self:
        """It may not go on."""
        return cls(decision="deny", reason=reason)

    @classmethod
    def ask(cls, reason: str = "") -> Self:
        """The permission callback is to decide."""
        return cls(decision="ask", reason=reason)

    @classmethod
    def no_opinion(cls) -> Self:
        """Nothing to say. To return nothing at all is a failure: a forgotten `return` must not let anything pass."""
        return cls()


HookReturn: TypeAlias = HookResult | HookJSONOutput
"""What a hook returns: a `HookResult`, or what the SDK's own hooks return, of which `{}` is no opinion."""

HookFunction: TypeAlias = Callable[[InputT], Awaitable[HookReturn] | HookReturn]


@dataclass(frozen=True, slots=True, eq=False)
class Hook(Generic[InputT]):
    """A hook for `Session.open(hooks=…)`, made by `hook()` or `command_hook()`. Calling it calls its function."""

    event: str
    """The name of the event, such as `"PreToolUse"`."""
    function: HookFunction[InputT]
    """What is called with the event's input."""
    matcher: str | None = None
    """Which tools, or whatever the event is about; None is all."""
    timeout: float = 30.0
    """After how many seconds it is given up."""
    on_error: OnError = "block"
    """What happens when it fails."""
    runs_here: bool = False
    """Whether a coroutine function runs on the loop of the processes, and not on that of the caller."""

    def __post_init__(self) -> None:
        checked_event(self.event)
        checked_matcher(self.event, self.matcher)
        if checked_seconds(self.timeout, "hook") > MAX_SECONDS:
            raise ValueError(f"a hook can be waited for {MAX_SECONDS:,.0f} seconds at most, not {self.timeout:,.0f}")
        if self.on_error not in ("block", "continue"):
            raise ValueError(f"on_error is 'block' or 'continue', not {self.on_error!r}")

    @property
    def name(self) -> str:
        """What the hook is called where it is reported."""
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

    The function takes the event's input, for which the SDK has types. A coroutine function runs on the event loop of
    the caller whose turn it is, any other in a thread.

    A hook fails when it raises, takes longer than its timeout, or returns nothing or what the event has no use for.
    What it was about is then blocked: the tool does not run, the prompt is not sent; and the failure is logged. On
    `Stop`, `SubagentStop`, `StopFailure`, `SessionEnd` and others that tell of what has happened, there is nothing to
    block.

    Args:
        event: An event of the CLI: `PreToolUse`, `PostToolUse`, `UserPromptSubmit`, `Stop`, `SubagentStop`,
            `PreCompact`, `Notification` or another one of `EVENTS`.
        matcher: Which tools, or whatever the event is about, by the CLI's rules: nothing or `"*"` is all;
            letters, digits, `_`, `-`, spaces, `|` and `,` are exact names, as in `"Edit|Write"`; anything else is a
            regular expression that is found anywhere in a name.
        timeout: After how many seconds it is cancelled and has failed.
        on_error: `"continue"` to go on as if it had no opinion when it fails.

    Raises:
        ValueError: The CLI has no such event, or would not take the matcher for what it says.
        re.error: The matcher is no regular expression.
        TypeError: The function does not take one argument.
    """
    checked_event(event)
    checked_matcher(event, matcher)

    def decorate(function: HookFunction[InputT]) -> Hook[InputT]:
        inspect.signature(function).bind({})
        return Hook(event, function, matcher, timeout, on_error)

    return decorate
