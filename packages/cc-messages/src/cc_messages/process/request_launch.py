"""The launch of a process for requests: the options, and everything that a request must share with others on it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from cc_session import Launch

from ..loop.claude_code_tools import OwnTools
from ..loop.cli_tools import ToolServerKey
from .abilities import Abilities
from .single_call import Allowance

__all__ = ["NO_COMMANDS", "RequestLaunch"]

NO_COMMANDS: Mapping[str, str | None] = {"disable-slash-commands": None}
"""The command line of a process without commands, for which the CLI would look after each change of parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLaunch(Launch):
    """How a process is started that answers requests of the Messages API."""

    tool_server: ToolServerKey | None = None
    """The tools of the requests that the CLI knows; None where it knows none of them."""
    own: OwnTools | None = None
    """The tools of its own; None where it has none."""
    allowance: Allowance = field(default_factory=Allowance, compare=False)
    """The length of the prompt, as the processes reckon."""
    abilities: Abilities = field(default_factory=Abilities, compare=False)
    """The abilities of the CLI."""

    @override
    def _companions(self) -> Hashable:
        return (self.tool_server, self.own)

    @property
    def has_loop(self) -> bool:
        """Whether the CLI calls tools and asks the API again by itself; if not, it makes one API call for a request."""
        return self.tool_server is not None or self.own is not None
