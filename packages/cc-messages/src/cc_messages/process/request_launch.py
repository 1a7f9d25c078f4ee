"""The launch of a process for requests: the options, and all that its requests must have in common."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from cc_session.internals import Launch

from ..loop.claude_code_tools import ClaudeCodeTools
from ..loop.cli_tools import ToolServerKey
from .abilities import Abilities
from .single_call import Allowance

__all__ = ["NO_COMMANDS", "RequestLaunch"]

NO_COMMANDS: Mapping[str, str | None] = {"disable-slash-commands": None}
"""The command line of a process without commands: the CLI would search them after each parameter change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLaunch(Launch):
    """The launch of a process that answers requests of the Messages API."""

    tool_server: ToolServerKey | None = None
    """The tools of the requests that the CLI knows; None if it knows none."""
    claude_code_tools: ClaudeCodeTools | None = None
    """The CLI's own tools; None if it has none."""
    allowance: Allowance = field(default_factory=Allowance, compare=False)
    """The length of the prompt, in the processes' count."""
    abilities: Abilities = field(default_factory=Abilities, compare=False)
    """The abilities of the CLI."""

    @override
    def _companions(self) -> Hashable:
        return (self.tool_server, self.claude_code_tools)

    @property
    def has_loop(self) -> bool:
        """True if the CLI calls tools and asks the API again by itself; if not, it makes one API call per request."""
        return self.tool_server is not None or self.claude_code_tools is not None
