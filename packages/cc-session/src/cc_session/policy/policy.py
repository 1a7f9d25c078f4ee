"""Policies: the tool calls that may run, regardless of permission mode and other permissions.

A policy is a value: rules, a default, and a callback. `policy/gate.py` puts it between the CLI and the tools.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from claude_agent_sdk import PermissionResult, ToolPermissionContext

from ..timeouts import checked_seconds
from .rules import Behavior, Rule, reading, shell_rules, writing_below

__all__ = ["Ask", "Default", "Policy", "Verdict"]

Default: TypeAlias = Literal["pass", "allow", "ask", "deny"]
"""Decision on a call that no rule matches. `"pass"` leaves it to the CLI's rules."""
Ask: TypeAlias = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult] | PermissionResult]
"""Callback that decides on a call, by tool name, input and the CLI's context; in the SDK's types."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A policy's decision on a call."""

    behavior: Default
    """The decision."""
    reason: str
    """The reason, for the model or the asked callback."""


class Policy:
    """Rules for all tool calls in a session, for `Session.open(policy=…)`.

    Among the rules that match a call, deny overrides ask and ask overrides allow, in any order; then comes the default.
    This holds for every call, in every permission mode: for the CLI's tools and MCP tools, and by sub-agents. The CLI
    can still deny a call that is allowed here, for example by a deny rule in the settings.

    Args:
        rules: The rules, in any order.
        default: The decision on a call that no rule matches. `"pass"` leaves it to the CLI; then the permission mode
            and the CLI's rules decide, and `ask` is called where they ask.
        ask: Callback that decides where a rule, or the CLI, asks. It returns the SDK's `PermissionResultAllow`, perhaps
            with a changed input, or `PermissionResultDeny`. If it raises, returns another value or is late, the call is
            denied, as without a callback. Deny rules also apply to a changed input. Permission updates in the answer
            hold for the session and are written to no file.
        timeout: Seconds that `ask` may take; `Timeouts.permission` if None.

    Raises:
        ValueError: The default is unknown.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        default: Default = "pass",
        ask: Ask | None = None,
        timeout: float | None = None,
    ) -> None:
        if default not in ("pass", "allow", "ask", "deny"):
            raise ValueError(f"the default is 'pass', 'allow', 'ask' or 'deny', not {default!r}")
        if timeout is not None:
            checked_seconds(timeout, "policy")
        self.rules = tuple(rules)
        if not_rules := [rule for rule in self.rules if type(rule) is not Rule]:
            raise TypeError(f"the rules of a policy are a sequence of Rule, not of {type(not_rules[0]).__name__}")
        self.default: Default = default
        self.ask = ask
        self.timeout = timeout

    @classmethod
    def read_only(cls) -> Self:
        """Return a policy for reading and searching files only: no shell, network, MCP tools or sub-agents.

        Any other tool, also in a later CLI, is denied. Add rules with `with_rules()`.
        """
        return cls(reading(), default="deny")

    @classmethod
    def workspace_write(
        cls, path: str | Path, *, shell: Behavior = "deny", ask: Ask | None = None, timeout: float | None = None
    ) -> Self:
        """Return `read_only()` plus writing files only below a folder, but not in `.git` and `.claude` folders there.

        Symbolic links are followed and `..` is resolved before the check.

        Args:
            path: The folder, which must exist.
            shell: The decision on shell commands. No folder confines them: if allowed, also after asking, they can
                write anywhere.
            ask: Callback for shell commands.
            timeout: Seconds that `ask` may take.

        Raises:
            NotADirectoryError: The path is not a folder.
            FileNotFoundError: The path does not exist.
        """
        return cls([*reading(), *writing_below(path), *shell_rules(shell)], default="deny", ask=ask, timeout=timeout)

    def with_rules(self, *rules: Rule) -> "Policy":
        """Return a policy with more rules."""
        return Policy([*self.rules, *rules], default=self.default, ask=self.ask, timeout=self.timeout)

    def verdict(self, tool: str, input: Mapping[str, Any]) -> Verdict:
        """Return the policy's decision on a call, without calling `ask`."""
        for behavior in ("deny", "ask", "allow"):
            for rule in self.rules:
                if rule.behavior != behavior:
                    continue
                try:
                    is_match = rule.matches(tool, input)
                except Exception as error:
                    return Verdict("deny", f"A rule about {tool} could not be applied: {type(error).__name__}.")
                if is_match:
                    return Verdict(behavior, rule.reason or _REASONS[behavior].format(tool=tool))
        return Verdict(self.default, _REASONS[self.default].format(tool=tool))

    def __repr__(self) -> str:
        return f"<Policy with {len(self.rules)} rules, default {self.default}>"


_REASONS: Mapping[str, str] = {
    "deny": "The policy of this session does not allow this use of {tool}.",
    "ask": "The policy of this session requires permission for {tool}.",
    "allow": "The policy of this session allows {tool}.",
    "pass": "The policy of this session has no rule for {tool}.",
}
