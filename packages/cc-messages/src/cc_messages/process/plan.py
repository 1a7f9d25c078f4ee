"""How a process answers requests: the plan that its launch makes for it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial

from claude_agent_sdk import ClaudeAgentOptions
from typing_extensions import override

from cc_session import Content
from cc_session.internals import Launch, PooledSession, SettingValues, Worker
from cc_types import CLIConnectionError

from ..api.message import Answer
from ..api.request import MessagesRequest
from ..context.tool_server_key import ToolServerKey
from .abilities import Abilities
from .single_call import Allowance, PromptAllowance
from .turn_reader import Reading

__all__ = ["NO_COMMANDS", "PlainPlan", "RequestPlan"]

NO_COMMANDS: Mapping[str, str | None] = {"disable-slash-commands": None}
"""The command line for a process without commands: the CLI would search them after each parameter change."""

# The CLI's prompt, in place of the conversation.
_PROMPT = "."


class RequestPlan(ABC):
    """How to open a process, to prepare it for a request, to ask, to read the answer, and to forget it."""

    has_history = False
    """True if the conversation is in the CLI's history, beside the CLI's own text such as the date."""
    tool_server: ToolServerKey | None = None
    """The caller's tools that the process has now."""

    @abstractmethod
    async def open(self, launch: Launch, options: ClaudeAgentOptions, resources: AsyncExitStack) -> PooledSession:
        """Open the process's session; `resources` are released with the process.

        Raises:
            ClaudeCodeError: As `Session.open()`.
        """

    async def prepare(self, worker: Worker, settings: SettingValues, request: MessagesRequest) -> None:
        """Apply a request's settings, and write its conversation if the CLI needs it. Makes no API call."""
        if not await worker.apply(settings):
            await worker.ping()

    @abstractmethod
    def prompt(self) -> Content:
        """Return the CLI's prompt."""

    @abstractmethod
    def reading(self, answer: Answer) -> Reading:
        """Return the reader for a turn, which builds `answer`."""

    @abstractmethod
    async def forget(self, *, was_blocked: bool = False) -> None:
        """Empty the conversation after a turn, which the CLI may have blocked before its API call."""


class PlainPlan(RequestPlan):
    """The caller owns the loop: the whole request is in the extra body, and the CLI makes one API call.

    Args:
        abilities: The CLI's abilities.
        allowance: The allowed prompt length with this CLI and this login.
    """

    _session: PooledSession
    _allowed: PromptAllowance

    def __init__(self, abilities: Abilities, allowance: Allowance) -> None:
        self._abilities, self._allowance = abilities, allowance

    @override
    async def open(self, launch: Launch, options: ClaudeAgentOptions, resources: AsyncExitStack) -> PooledSession:
        session = await self._abilities.open(partial(Worker.open, launch), options)
        resources.push_async_callback(session.close)
        await self._abilities.probe(session)
        self._has_no_commands = NO_COMMANDS.keys() <= options.extra_args.keys()
        self._session, self._allowed = session, PromptAllowance(session, self._allowance)
        await self._allowed.grant()
        return session

    @override
    async def prepare(self, worker: Worker, settings: SettingValues, request: MessagesRequest) -> None:
        self._allowed.begin(is_first_use=worker.uses == 0)
        await super().prepare(worker, settings, request)

    @override
    def prompt(self) -> Content:
        return _PROMPT

    @override
    def reading(self, answer: Answer) -> Reading:
        return Reading(answer)

    @override
    async def forget(self, *, was_blocked: bool = False) -> None:
        if self._abilities.can_rewind:
            await self._session.drop_messages()
        elif self._has_no_commands:  # the first process, used for the probe
            raise CLIConnectionError(reason="this process takes no command that clears its conversation")
        else:
            await self._session.reset(tools_changed=True)
        if was_blocked:
            self._allowed.increase()
        if was_blocked or not self._abilities.can_rewind:
            await self._allowed.grant()
