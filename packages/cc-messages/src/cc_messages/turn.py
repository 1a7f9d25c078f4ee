"""One request's turn in a process: the prompt that is sent, the API's events, and how the CLI left the conversation.

A task of its own reads all that the CLI says, to the end of the turn. Whoever wants the events may stop listening at
any moment, and the process still gets rid of what it has to say.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent

from cc_session import Session
from cc_types import CLIConnectionError

from .answer import Answer, Event
from .carried import says_nothing
from .conversation import Held
from .conversation import Message as HeldMessage
from .failure import turn_error
from .request import MessagesRequest

__all__ = ["Turn", "is_made_up"]

# After these the turn is over, and the CLI keeps what the model said as it is.
_KEPT = frozenset({"end_turn", "pause_turn", "stop_sequence"})


class Turn:
    """The turn that answers the last message of `request`, in a session that holds the others. Begins at once."""

    def __init__(self, request: MessagesRequest, session: Session, answer: Answer | None = None) -> None:
        self.prompt = request.messages[-1]
        self.answer = answer or Answer()
        self.history_length = len(request.messages) - 1
        self.is_verbatim = request.is_verbatim
        self._beside = request.beside
        self._session = session
        self._prompt_uuid: str | None = None
        self._answer_uuid: str | None = None
        self._apology: AssistantMessage | None = None
        self._result: ResultMessage | None = None
        self._error: Exception | None = None
        self._is_broken = False
        # None ends it.
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def events(self) -> AsyncIterator[Event]:
        """Yield the API's events, up to `message_stop`.

        Raises:
            ClaudeCodeError: There will be no complete answer.
        """
        while (event := await self._events.get()) is not None:
            yield event
            if event["type"] == "message_stop":
                return
        raise self._failure()

    async def begun(self) -> None:
        """Wait until the prompt was sent, or could not be sent."""
        await self._begun.wait()

    async def finish(self) -> None:
        """Wait until the CLI has ended the turn; what it says now is no part of the answer.

        Raises:
            ClaudeCodeError: The process failed first.
        """
        await asyncio.wait({self._reading})
        if self._error is not None:
            raise self._error

    def give_up(self) -> None:
        """End the events here: the API has refused, whatever the CLI will try next."""
        if not self.answer.is_complete:
            self._break()

    def abort(self) -> None:
        """Stop reading: the process is being ended."""
        if self._reading.cancel():
            self._error = CLIConnectionError(
                reason="The process was ended while it answered", advice="Send the request again if it is still wanted."
            )

    @property
    def was_blocked(self) -> bool:
        """Whether the CLI has asked the API nothing, because it took the prompt for too long."""
        blocked = self._result is not None and self._result.terminal_reason == "blocking_limit"
        return blocked and not self.answer.has_begun

    @property
    def ends_by_itself(self) -> bool:
        """Whether the CLI will end the turn, or has ended it, without asking the API anything more.

        Calls of tools end it, and a refusal. After an answer that shows nothing, that has reached a limit, or that says
        it calls a tool and does not, the CLI asks again.
        """
        if not self.answer.is_complete:
            return self._reading.done()
        reason = self.answer.stop_reason
        if reason in _KEPT:
            return self.says_something
        return reason == "refusal" or self.answer.as_history().calls_tools

    @property
    def is_as_left(self) -> bool:
        """Whether the CLI has left the conversation as it should be: the prompt, the answer, and nothing after it."""
        good = self._result is not None and not self._result.is_error
        said = self.answer.as_history()
        kept = self.answer.stop_reason in _KEPT and not said.calls_tools
        # A blank text of its own is left out of the next request; one that was written in is not.
        has_blank = any(block["type"] == "text" and says_nothing(block) for block in said.content)
        return good and kept and not has_blank and self.ends_by_itself

    @property
    def says_something(self) -> bool:
        """Whether there is an answer that a conversation can hold."""
        return self.answer.is_complete and not all(map(says_nothing, self.answer.as_history().content))

    @property
    def said(self) -> list[HeldMessage]:
        """What comes after the prompt in a conversation that goes on from here; nothing if nothing can."""
        return [self.answer.as_history()] if self.says_something else []

    def outcome(self) -> list[Held]:
        """The prompt and the answer, if there is one, with the names the CLI has for them.

        An answer in a loop of tool calls is a cut by itself. Any other is cut together with its prompt.
        """
        if self._prompt_uuid is None:
            return []
        after_tools = self.prompt.answers_tools
        held = [Held(self.prompt, self._prompt_uuid, is_cut=not after_tools)]
        if self._answer_uuid is not None and self.answer.is_complete:
            held.append(Held(self.answer.as_history(), self._answer_uuid, is_cut=after_tools))
        return held

    async def _read(self) -> None:
        try:
            async for message in self._session.ask(self.prompt.blocks()):
                self._prompt_uuid = self._session.last_user_uuid
                self._begun.set()
                self._take(message)
                self._tell(message)
        except Exception as error:
            self._error = error
        finally:
            self._begun.set()
            self._events.put_nowait(None)

    def _tell(self, message: Message) -> None:
        if self._beside is None:
            return
        if isinstance(message, ResultMessage):
            # The CLI tells what the process has cost since it was started, whoever asked.
            spent = self._session.last_spent
            models = {name: usage.model_dump(by_alias=True) for name, usage in spent.models.items()}
            message = replace(message, total_cost_usd=spent.cost_usd, model_usage=models)
        self._beside.tell(message)

    def _take(self, message: Message) -> None:
        match message:
            case StreamEvent():
                self._take_event(message.event)
            case AssistantMessage() if message.error is not None:
                self._apology = message
            case AssistantMessage() if self._answer_uuid is None:
                # The CLI splits an answer into a message for each block; the first one's name stands for all.
                self._answer_uuid = message.uuid
            case ResultMessage():
                self._result = message
            case _:
                pass

    def _take_event(self, event: Event) -> None:
        kind = event["type"]
        if self.answer.is_complete or self._is_broken:
            return
        if kind == "message_start" and (self.answer.has_begun or self._apology is not None):
            self._break()  # the CLI asks the API again, which nobody has told it to
            return
        if self._apology is not None and is_made_up(event):
            return
        self.answer.feed(event)
        if kind != "message_stop" or self.answer.is_complete:
            self._events.put_nowait(event)
        elif self._apology is None:
            self._break()  # after an apology the result says more

    def _break(self) -> None:
        self._is_broken = True
        self._events.put_nowait(None)

    def _failure(self) -> Exception:
        if self.was_blocked:
            return CLIConnectionError(reason="Claude Code has not sent the request", advice="Send it again.")
        return self._error or turn_error(self._result, self._apology)


def is_made_up(event: Event) -> bool:
    """Whether the CLI has closed a stream that the API did not: it knows no reason for the end."""
    match event["type"]:
        case "content_block_stop":
            return True
        case "message_delta":
            return event["delta"].get("stop_reason") is None
        case _:
            return False
