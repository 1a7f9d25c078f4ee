"""The CLI's events, and how it matches a hook to an event: checked here, before the CLI sees a hook.

A matcher that the CLI cannot read silently never matches, and the CLI drops an unknown event. So both are errors where
a hook is defined. The CLI's rules, from the code and from runs of 2.1.329:

- None, an empty text and `*` match everything.
- A text with letters, digits, `_`, `-`, spaces, `|` and `,` only is a list of exact names, split at `|` or `,`: `Bash`,
  or `Edit|Write`. `bash` and `Bas` do not match `Bash`.
- Anything else is a JavaScript regular expression, searched for anywhere in the name: `mcp__.*__write`, `^Note`.

A tool has the usual name, an MCP tool `mcp__server__tool`. Other subjects depend on the event: the reason for a session
start, the type of a sub-agent, etc.
"""

import re
import warnings
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["EVENTS", "check_event", "check_matcher"]

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
    "MessageDisplay",
)  # fmt: skip

EVENTS: Mapping[str, bool] = MappingProxyType({name: name not in _WITHOUT_MATCHER for name in _EVENT_NAMES})
"""The CLI's events by name; true if a hook on the event can have a matcher."""

# Events for which the CLI allows fewer characters in a name; any other text is a regular expression.
_FEW_CHARACTERS = frozenset({"FileChanged", "StopFailure"})
_NAMES = re.compile(r"[A-Za-z0-9_|, -]*")
_FEW_NAMES = re.compile(r"[A-Za-z0-9_|]*")

# Syntax that JavaScript lacks or reads differently: Python's groups and flags, possessive quantifiers, an open lower
# bound, and anchors that are plain letters there. Escapes and classes are skipped.
_PYTHON_ONLY = re.compile(
    r"""
    \\(?P<anchor>[AZ]) | \\. | \[\^?\]?(?:\\.|[^\]\\])*\] |
    (?P<group>\(\?(?!:|=|!|<=|<!)) | (?P<possessive>[*+?}]\+) | (?P<bound>\{,)
    """,
    re.VERBOSE | re.DOTALL,
)


def check_event(event: str) -> None:
    """Raise if the CLI has no such event."""
    if event not in EVENTS:
        raise ValueError(f"the CLI has no hook event {event!r}; it has {', '.join(EVENTS)}")


def check_matcher(event: str, matcher: str | None) -> None:
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
