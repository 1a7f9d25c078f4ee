"""Events of the CLI, and its rules for matching a hook to one: checked here, before the CLI sees a hook.

A matcher that the CLI cannot read silently never matches, and an event that it does not know is dropped. So both are
errors where a hook is defined. The CLI's rules, read in its code and seen in runs of 2.1.329:

- None, an empty text and `*` match everything.
- A text of letters, digits, `_`, `-`, spaces, `|` and `,` is a list of exact names, split at `|` or `,`: `Bash`, or
  `Edit|Write`. `bash` and `Bas` do not match `Bash`.
- Anything else is a regular expression of JavaScript, searched for anywhere in the name: `mcp__.*__write`, `^Note`.

A tool has its usual name, and an MCP tool `mcp__server__tool`. Other subjects depend on the event: the reason of a
session start, the type of a sub-agent, etc.
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

_NAMES_OF_EVENTS = (
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionDenied", "PermissionRequest",
    "Notification", "UserPromptSubmit", "UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure",
    "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PreModelSwitch", "PostModelSwitch", "Setup",
    "TeammateIdle", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange",
    "InstructionsLoaded", "WorktreeCreate", "WorktreeRemove", "CwdChanged", "FileChanged", "DirectoryAdded",
    "MessageDisplay",
)  # fmt: skip

EVENTS: Mapping[str, bool] = MappingProxyType({name: name not in _WITHOUT_MATCHER for name in _NAMES_OF_EVENTS})
"""The events of the CLI, and whether a hook on one can have a matcher."""

# For these the CLI allows fewer characters in a name; any other text is a regular expression.
_FEW_CHARACTERS = frozenset({"FileChanged", "StopFailure"})
_NAMES = re.compile(r"[A-Za-z0-9_|, -]*")
_FEW_NAMES = re.compile(r"[A-Za-z0-9_|]*")

# Syntax with another meaning in JavaScript than in Python, or none: Python's groups and flags, possessive quantifiers,
# an open lower bound, and anchors that are plain letters there. Escapes and classes are skipped.
_PYTHON_ONLY = re.compile(
    r"""
    \\(?P<anchor>[AZ]) | \\. | \[\^?\]?(?:\\.|[^\]\\])*\] |
    (?P<group>\(\?(?!:|=|!|<=|<!)) | (?P<possessive>[*+?}]\+) | (?P<bound>\{,)
    """,
    re.VERBOSE | re.DOTALL,
)


def check_event(event: str) -> None:
    """Check that the CLI knows an event."""
    if event not in EVENTS:
        raise ValueError(f"the CLI has no hook event {event!r}; it has {', '.join(EVENTS)}")


def check_matcher(event: str, matcher: str | None) -> None:
    """Check that the CLI reads a matcher as intended; None is everything."""
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
        warnings.simplefilter("ignore", FutureWarning)  # of set operations, which neither language has here
        re.compile(expression)
    for found in _PYTHON_ONLY.finditer(expression):
        if found.lastgroup is not None:
            raise ValueError(
                f"the CLI matches with JavaScript's regular expressions, where {found.group()!r} in {expression!r} "
                "means something else or nothing"
            )
