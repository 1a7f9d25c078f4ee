"""One rule of a policy: which calls it is about, and what to do about them."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeAlias

from .tool_names import checked_tool_pattern

__all__ = ["Behavior", "Predicate", "Rule"]

Behavior: TypeAlias = Literal["allow", "ask", "deny"]
"""What a rule says about the calls that it matches."""
Predicate: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Whether a rule is about a call with this input. Not a coroutine function."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do about some calls.

    ```python
    Rule("Bash", "deny", when=lambda input: input.get("run_in_background"))
    Rule("mcp__github__*", "ask")
    Rule(re.compile("Edit|Write|NotebookEdit"), "allow")
    ```

    Raises:
        ValueError: The tool is no name, such as `Bash(git *)`, a rule of the CLI's own; or in another case than a tool
            of the CLI's.
        TypeError: The predicate is a coroutine function.
    """

    tool: str | re.Pattern[str]
    """A name, in which `*` stands for any characters; or a regular expression that the whole name must match. A tool of
    an MCP server is `mcp__server__tool`, whatever name the model sees; one of `Session.open(tools=…)` is
    `mcp__session__name`."""
    behavior: Behavior
    """What to do: deny, ask the policy's callback, or allow."""
    _: KW_ONLY
    when: Predicate | None = None
    """A condition on the input: the rule matches where it returns something true. If it raises, the call is denied,
    whatever the rule says. A relative path in a file tool's input is made absolute by the CLI before."""
    reason: str | None = None
    """What the model is told when it is denied, or who is asked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", checked_tool_pattern(self.tool))
        if self.behavior not in ("allow", "ask", "deny"):
            raise ValueError(f"a rule can 'allow', 'ask' or 'deny', not {self.behavior!r}")
        if inspect.iscoroutinefunction(self.when):
            raise TypeError(f"the predicate of a rule is no coroutine function: {self.when!r}")

    def matches(self, tool: str, input: Mapping[str, Any]) -> bool:
        """Whether the rule is about this call. Raises what the predicate raises."""
        if isinstance(self.tool, str):
            if not re.fullmatch(".*".join(map(re.escape, self.tool.split("*"))), tool, re.DOTALL):
                return False
        elif not self.tool.fullmatch(tool):
            return False
        if self.when is None:
            return True
        answer = self.when(input)
        if inspect.isawaitable(answer):
            raise TypeError("the predicate of a rule returned something to be awaited")
        return bool(answer)
