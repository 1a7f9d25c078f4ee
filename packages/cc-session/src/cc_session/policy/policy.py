"""Policies: which tool calls may run, whatever the permission mode and whatever else has been allowed.

A policy is a value: rules, a default, and whom to ask. `policy/gate.py` puts it between the CLI and its tools. It
knows no session, and of the CLI only the names of its tools.
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
"""What becomes of a call that no rule matches. `"pass"` leaves it to the CLI's own rules."""
Ask: TypeAlias = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult] | PermissionResult]
"""Who decides about a call: the tool's name, its input, and what the CLI says about it; the SDK's types."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says about one call."""

    behavior: Default
    """What becomes of it."""
    reason: str
    """Why."""


class Policy:
    """Rules for all tool calls of a session, for `Session.open(policy=…)`.

    Of all rules that match a call, deny wins over ask and ask over allow, wherever they stand; then comes the default.
    This holds for every call, in every permission mode: of the CLI's own tools, of MCP tools, and of those that
    sub-agents make. What is allowed here can still be denied by the CLI: by a deny rule of its settings, for example.

    Args:
        rules: The rules, in any order.
        default: What becomes of a call that none matches. `"pass"` leaves it to the CLI; then the permission mode and
            the CLI's own rules decide, and `ask` is asked where they would ask somebody.
        ask: Who decides where a rule, or the CLI, asks. It returns the SDK's `PermissionResultAllow`, perhaps with
            another input, or `PermissionResultDeny`. If it raises, returns something else or is late, the call is
            denied, as it is without a callback. A deny rule holds for another input, too. Updates of permissions that
            it hands back hold for the session, and are written to no file.
        timeout: How many seconds it may take; `Timeouts.permission` if None.

    Raises:
        ValueError: There is no such default.
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
        """Reading and searching files, and nothing else: no shell, no network, no MCP tools, no sub-agents.

        Any other tool, also one that a later CLI brings, is denied. Add to it with `with_rules()`.
        """
        return cls(reading(), default="deny")

    @classmethod
    def workspace_write(
        cls, path: str | Path, *, shell: Behavior = "deny", ask: Ask | None = None, timeout: float | None = None
    ) -> Self:
        """As `read_only()`, and writing files below a folder: not elsewhere, nor in its `.git` and `.claude` folders.

        Symbolic links are followed and `..` is resolved before a path is judged.

        Args:
            path: The folder, which must exist.
            shell: What becomes of shell commands. No folder confines them: if they are allowed, or asked about and
                allowed, they can write anywhere.
            ask: Who is asked about them.
            timeout: How many seconds that may take.

        Raises:
            NotADirectoryError: The path is no folder.
            FileNotFoundError: There is nothing at the path.
        """
        return cls([*reading(), *writing_below(path), *shell_rules(shell)], default="deny", ask=ask, timeout=timeout)

    def with_rules(self, *rules: Rule) -> "Policy":
        """Return a policy with more rules."""
        return Policy([*self.rules, *rules], default=self.default, ask=self.ask, timeout=self.timeout)

    def verdict(self, tool: str, input: Mapping[str, Any]) -> Verdict:
        """Return what the policy says about a call, without asking anybody."""
        for behavior in ("deny", "ask", "allow"):
            for rule in self.rules:
                if rule.behavior != behavior:
                    continue
                try:
                    is_about_it = rule.matches(tool, input)
                except Exception as error:
                    return Verdict("deny", f"A rule about {tool} could not be applied: {type(error).__name__}.")
                if is_about_it:
                    return Verdict(behavior, rule.reason or _REASONS[behavior].format(tool=tool))
        return Verdict(self.default, _REASONS[self.default].format(tool=tool))

    def __repr__(self) -> str:
        return f"<Policy of {len(self.rules)} rules, default {self.default}>"


_REASONS: Mapping[str, str] = {
    "deny": "The policy of this session does not allow this use of {tool}.",
    "ask": "The policy of this session has {tool} asked about.",
    "allow": "The policy of this session allows {tool}.",
    "pass": "The policy of this session says nothing about {tool}.",
}
