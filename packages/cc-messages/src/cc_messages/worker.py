"""A worker: one process, the conversation it holds, and how it is brought to hold another one.

One request is one turn of the CLI and one API call. Before it, the process must hold exactly the messages that stand
before the last one: what differs is dropped by a rewind, what is missing is written in. After it, the process must
hold exactly the messages and the answer, and nothing of what the CLI does on its own:

- The CLI knows none of the caller's tools; the request's own `tools` reach the API as a parameter. It answers a tool
  call itself, that no such tool is there, and ends the turn, because one API call is all it may make. The worker steps
  back to before the model's message, which takes the CLI's words away, and writes the message in again. All this goes
  on while the caller runs its tools. Their results then come as a message like any other, byte for byte.
- An answer that was cut short, refused, or that nobody waits for any more is treated in the same way. If the turn still
  runs then, the same rewind ends it.

Measured on CLI 2.1.329: a rewind takes 2 to 4 ms, and some 25 ms where it ends a turn. Holding the tool call open and
answering it late, as a tool of the CLI's, is some 5 ms faster (12 to 15 against 17 to 20 ms for a step, in one run) and
not exact: `is_error: false` is dropped, and a list of blocks in an error becomes a text. See spec MSG-R1.

A worker belongs to one request at a time; who may use it is the pool's business.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from cc_session import Session
from cc_types import ClaudeCodeError, CLIConnectionError

from .answer import Event
from .api_log import APILog
from .approvals import Approvals, approved_calls
from .conversation import Held, Message, shared_prefix
from .failure import as_logged
from .loop_turn import LoopTurn
from .own_tools import Caller
from .passed_headers import PassedHeaders
from .request import LaunchKey, MessagesRequest
from .single_call import NO_LIMIT_ENV, mark
from .skill_folder import SkillFolder
from .tool_server import ToolServer
from .turn import Turn

__all__ = ["Worker"]

# All that the CLI does after an answer takes milliseconds; a process that needs longer hangs.
_SETTLE_SECONDS = 10.0


class Worker:
    """One process and its conversation."""

    def __init__(
        self,
        launch: LaunchKey,
        session: Session,
        caller: Caller | None = None,
        tools: ToolServer | None = None,
        log: APILog | None = None,
        skills: SkillFolder | None = None,
    ) -> None:
        self.launch = launch
        self.session = session
        self.log = log or APILog()
        """What the process has logged of its last API call."""
        self._caller = caller or Caller()
        self._tools = tools
        self._skills = skills
        self.held: list[Held] = []
        """The conversation; from `message_stop` on, as it will be when the worker has settled."""
        self._is_limited = not launch.has_loop
        self._is_marked = False
        self._parameters: str | None = None
        self._headers = PassedHeaders()
        self._turn: Turn | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the process can take a request."""
        return self.session.state == "idle" and self.session.is_running

    @property
    def pid(self) -> int | None:
        """The id of the process while it runs."""
        return self.session.pid if self.session.is_running else None

    @property
    def awaits_tools(self) -> bool:
        """Whether the conversation ends in a tool call, so that somebody will probably come back to it."""
        return bool(self.held) and self.held[-1].message.calls_tools

    @property
    def has_run_tools(self) -> bool:
        """Whether the CLI has called tools in the turn that runs, or ran last."""
        return self._tools is not None and self._tools.has_run

    def fits(self, request: MessagesRequest) -> bool:
        """Whether the process holds a beginning of the request's conversation, and nothing else."""
        return not request.is_verbatim and shared_prefix(self.held, request.messages[:-1]) == len(self.held)

    def reuse(self, request: MessagesRequest) -> int | None:
        """How many messages could stay if `request` came here; None if the process cannot be brought back that far."""
        if request.is_verbatim:  # which needs none of them, so that a short conversation is as good as a long one
            return None if _kept(self.held, self._finished) is None else 0
        return _kept(self.held, shared_prefix(self.held, request.messages[:-1]))

    async def prepare(self, request: MessagesRequest) -> None:
        """Bring the process to where it only lacks the last message. Makes no API call, so it may be tried elsewhere.

        Raises:
            ClaudeCodeError: The process failed; it must be closed.
        """
        await self._mark()
        if request.is_verbatim:
            await self._cut(self._finished)
        else:
            await self._cut(shared_prefix(self.held, request.messages[:-1]))
            await self._write(request.messages[len(self.held) : -1])
        await self._tell(request)

    async def answer(self, request: MessagesRequest) -> AsyncIterator[Event]:
        """Yield the API's events for a prepared request, up to `message_stop`. Then `settle()`, come what may.

        Raises:
            APIError: The API answered with an error.
            ClaudeCodeError: The process failed, or the connection to the API was lost.
        """
        self.log.forget()
        turn = self._turn = self._begin(request)
        turn.history_length = len(self.held)
        # Where it may make one API call only, that was it.
        self.log.on_refusal = None if self.launch.has_loop else turn.give_up
        try:
            async for event in turn.events():
                if event["type"] == "message_start":
                    await self.log.answered()
                elif event["type"] == "message_stop" and not turn.is_verbatim:
                    self.held = [*self.held, *turn.outcome()]
                yield event
        except ClaudeCodeError as error:
            await self.log.failed()
            raise as_logged(error, self.log) from error.__cause__

    async def settle(self) -> None:
        """Make the conversation exact after a turn, ending it if it still runs. Closes the process if it cannot."""
        turn = self._turn
        if turn is None:
            return
        try:
            async with asyncio.timeout(_SETTLE_SECONDS):
                await self._settle(turn)
        except (ClaudeCodeError, TimeoutError):
            await self.close()
        finally:
            self._turn = self._caller.beside = self._caller.approvals = None
            if self._tools is not None:
                self._tools.unbind()

    async def close(self) -> None:
        """End the process; a turn that runs in it fails."""
        if self._turn is not None:
            self._turn.abort()
        try:
            await self.session.close()
        finally:
            if self._skills is not None:
                self._skills.remove()
            if self._tools is not None:
                await self._tools.stop()

    def __repr__(self) -> str:
        return f"<Worker {self.launch.model} holds={len(self.held)} {self.session!r}>"

    @property
    def _finished(self) -> int:
        """How many of the messages may stand before any other prompt: not a call without its results."""
        return len(self.held) - self.awaits_tools

    def _begin(self, request: MessagesRequest) -> Turn:
        self._caller.beside = request.beside
        if request.beside is None or not request.launch.has_loop:
            return Turn(request, self.session)
        if self._tools is not None:
            self._tools.bind(request.beside.call)
        approvals = self._caller.approvals = _approvals(request)
        return LoopTurn(request, self.session, approvals)

    async def _settle(self, turn: Turn) -> None:
        await turn.begun()
        if turn.ends_by_itself:
            await turn.finish()
        self.held = [*self.held[: turn.history_length], *turn.outcome()]
        if turn.was_blocked:
            self._is_limited = False
            await self.session.set_env(NO_LIMIT_ENV)
        if turn.is_verbatim:
            await self._cut(turn.history_length)
            await turn.finish()
        elif not turn.is_as_left:
            await self._rewrite(turn)
        else:
            self._is_marked = False
            await self._mark()
        if isinstance(turn, LoopTurn):
            await self._connect_tools(turn)

    async def _connect_tools(self, turn: LoopTurn) -> None:
        """Start a bridge that has gone anew. The CLI tries that once, with the next call, and then never again."""
        server = self.launch.tool_server
        if server is not None and self._tools is not None and self._tools.has_missed(turn.failed_calls):
            await self.session.reconnect_mcp(server.name)

    async def _tell(self, request: MessagesRequest) -> None:
        """Tell the process what goes to the API beside the conversation, as far as it does not know."""
        env: dict[str, str] = {}
        if request.parameters != self._parameters:
            env["CLAUDE_CODE_EXTRA_BODY"] = request.parameters
        if request.headers != self._headers:
            env |= request.headers.env
        if env:
            await self.session.set_env(env)
            self._parameters, self._headers = request.parameters, request.headers

    async def _mark(self) -> None:
        """Let the next prompt pass once: an answer that the CLI holds as the API gave it counts against the limit."""
        if self._is_limited and not self._is_marked:
            await mark(self.session, self.launch.model)
            self._is_marked = True

    async def _rewrite(self, turn: Turn) -> None:
        """Take away what the CLI has made of the turn, and write in the answer, if it is complete."""
        # An answer that can be cut off by itself is; the first of a loop of tool calls goes together with its prompt.
        # One that the CLI asks the API about again may be withdrawn already, and goes together with more.
        alone = turn.ends_by_itself and bool(self.held) and self.held[-1].is_cut
        await self._cut(len(self.held) - 1 if alone else turn.history_length)
        await turn.finish()
        if (said := turn.said) and len(self.held) >= turn.history_length:
            prompt_is_gone = len(self.held) == turn.history_length
            await self._write([turn.prompt, *said] if prompt_is_gone else said[-1:])

    async def _cut(self, keep: int) -> None:
        """Drop what comes after the first `keep` messages, and as many before it as a cut needs."""
        kept = _kept(self.held, keep)
        if kept == len(self.held):
            return
        if kept is None or not await self.session.rewind(self.held[kept].uuid):
            raise CLIConnectionError(reason="Claude Code did not rewind the conversation")
        del self.held[kept:]

    async def _write(self, messages: Sequence[Message]) -> None:
        for message in messages:
            after_tools = bool(self.held) and self.held[-1].message.answers_tools
            if message.role == "user":
                uuid = await self.session.add_user(message.blocks())
                self.held.append(Held(message, uuid, is_cut=not message.answers_tools))
            else:
                uuid = await self.session.add_assistant(message.blocks(), model=self.launch.model)
                self.held.append(Held(message, uuid, is_cut=after_tools))


def _approvals(request: MessagesRequest) -> Approvals | None:
    own = request.launch.own
    if own is None or not own.defers or own.policy is None:
        return None
    return Approvals(own.policy, approved_calls(request.messages))


def _kept(held: Sequence[Held], wanted: int) -> int | None:
    """The largest number of messages, up to `wanted`, after which the conversation can be cut."""
    if wanted == len(held):
        return wanted
    return next((index for index in range(wanted, -1, -1) if held[index].is_cut), None)
