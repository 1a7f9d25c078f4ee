"""One request's turn in a process: the prompt that is sent, the API's events, and how the CLI left the conversation."""

from collections.abc import AsyncIterator

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent

from cc_session import Session

from .answer import Answer, Event
from .conversation import Held
from .failure import turn_error
from .request import MessagesRequest

__all__ = ["Turn"]

# After these the turn is over, and the CLI keeps what the model said as it is.
_FINAL = frozenset({"end_turn", "stop_sequence"})


class Turn:
    """The turn that answers the last message of `request`, in a session that holds the others."""

    def __init__(self, request: MessagesRequest, session: Session) -> None:
        self.prompt = request.messages[-1]
        self.answer = Answer()
        self.history_length = len(request.messages) - 1
        self.is_void = False
        """Whether nobody wants the answer any more. The CLI may still end a stream that it breaks off."""
        self._session = session
        self._stream = session.ask(self.prompt.blocks())
        self._prompt_uuid: str | None = None
        self._answer_uuid: str | None = None
        self._apology: AssistantMessage | None = None
        self._result: ResultMessage | None = None

    async def events(self) -> AsyncIterator[Event]:
        """Send the prompt and yield the API's events, up to `message_stop`.

        Raises:
            ClaudeCodeError: The turn ended without a complete answer.
        """
        async for message in self._stream:
            event = self._take(message)
            if event is not None:
                yield event
            if self.answer.is_complete:
                return
        if self._result is not None:
            raise turn_error(self._result, self._apology)

    async def finish(self) -> None:
        """Read on until the CLI has ended the turn; what it says now is no part of the answer."""
        if self._session.state == "busy":
            async for message in self._stream:
                self._take(message)

    @property
    def has_answer(self) -> bool:
        """Whether the model has answered, to the end, somebody who still listens."""
        return self.answer.is_complete and not self.is_void

    @property
    def is_as_left(self) -> bool:
        """Whether the CLI has left the conversation as it should be: the prompt, the answer, and nothing after it."""
        good = self._result is not None and not self._result.is_error
        return good and self.has_answer and self.answer.stop_reason in _FINAL

    def outcome(self) -> list[Held]:
        """The prompt and the answer, if there is one, with the names the CLI has for them.

        An answer in a loop of tool calls is a cut by itself. Any other is cut together with its prompt.
        """
        if self._prompt_uuid is None:
            return []
        after_tools = self.prompt.answers_tools
        held = [Held(self.prompt, self._prompt_uuid, is_cut=not after_tools)]
        if self._answer_uuid is not None:
            held.append(Held(self.answer.as_history(), self._answer_uuid, is_cut=after_tools))
        return held

    def _take(self, message: Message) -> Event | None:
        self._prompt_uuid = self._session.last_user_uuid
        match message:
            case StreamEvent() if not self.answer.is_complete:
                self.answer.feed(message.event)
                return message.event
            case AssistantMessage() if message.error is not None:
                self._apology = message
            case AssistantMessage() if self._answer_uuid is None:
                # The CLI splits an answer into a message for each block; the first one's name stands for all.
                self._answer_uuid = message.uuid
            case ResultMessage():
                self._result = message
            case _:
                pass
        return None
