"""Messages sent to the CLI: their states, the CLI messages until it has finished the work on each; history and cost.

Two sides change a message's state: the CLI, which ends the message, and the reader in this process, which reads the
result, leaves early, or rewinds the conversation to before the message. Pure bookkeeping on the background loop.
Received messages may be read from any thread.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Literal, TypeAlias, cast
from uuid import uuid4

from claude_agent_sdk import Message, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import ControlRequestError, JsonValue, ModelUsage

from ..errors import MessageParseError
from .turn import Spent

Content: TypeAlias = str | list[dict[str, JsonValue]]
"""A message's `content`, as in the Messages API."""
SessionState = Literal["idle", "busy", "dirty", "dead"]


# Fields in a `ModelUsage` that may be consumed amounts.
_AMOUNTS = ModelUsage.model_fields.keys() - {"context_window", "max_output_tokens"}

# Prices are per million tokens; smaller amounts are noise from float subtraction. In US dollars.
_DIGITS = 12


class TurnState(Enum):
    """State of a message, from creation on."""

    NEW = "new"
    """Not sent yet."""
    RUNNING = "running"
    """Sent; the CLI works on it."""
    DROPPED = "dropped"
    """The conversation was rewound to before it; the CLI has not ended it yet."""
    LEFT = "left"
    """The reader has left; the CLI has not ended it yet."""
    ENDED = "ended"
    """The CLI has ended it, and the result is unread."""
    OVER = "over"
    """Nothing more has to be done for it."""


class TurnEvent(Enum):
    """Cause of a change of state."""

    SEND = "send"
    """It is written to the CLI."""
    END = "end"
    """The result arrives, or the process ends."""
    READ = "read"
    """The reader has received the result."""
    LEAVE = "leave"
    """The reader leaves, or is cancelled."""
    DROP = "drop"
    """The conversation is rewound to before it."""


TRANSITIONS: Mapping[tuple[TurnState, TurnEvent], TurnState] = {
    (TurnState.NEW, TurnEvent.SEND): TurnState.RUNNING,
    (TurnState.NEW, TurnEvent.LEAVE): TurnState.OVER,
    (TurnState.RUNNING, TurnEvent.END): TurnState.ENDED,
    (TurnState.RUNNING, TurnEvent.LEAVE): TurnState.LEFT,
    (TurnState.RUNNING, TurnEvent.DROP): TurnState.DROPPED,
    (TurnState.DROPPED, TurnEvent.END): TurnState.OVER,
    (TurnState.DROPPED, TurnEvent.LEAVE): TurnState.LEFT,
    (TurnState.LEFT, TurnEvent.END): TurnState.OVER,
    (TurnState.ENDED, TurnEvent.READ): TurnState.OVER,
    (TurnState.ENDED, TurnEvent.LEAVE): TurnState.OVER,
    (TurnState.ENDED, TurnEvent.DROP): TurnState.OVER,
}
"""The next state for a state and an event. All other events leave the state as it is."""

SESSION_STATES: Mapping[TurnState, SessionState] = {
    TurnState.NEW: "idle",
    TurnState.RUNNING: "busy",
    TurnState.DROPPED: "busy",
    TurnState.LEFT: "dirty",
    TurnState.ENDED: "busy",
    TurnState.OVER: "idle",
}
"""State of a living session during its last turn. A session whose process has ended is `"dead"`."""


class SentMessage:
    """A user message, and the messages that follow it.

    If it `asks`, the model answers; otherwise the CLI acknowledges it and appends it to the conversation. If it is
    `verbatim`, the CLI takes it literally: it reads no `@file` and runs no slash command. Measured on CLI 2.1.327.
    """

    def __init__(self, content: Content, *, asks: bool, verbatim: bool = True) -> None:
        _check_content(content)
        self.uuid = str(uuid4())
        flags = {"client_composed": True} if verbatim else dict[str, bool]()
        if not asks:
            flags["shouldQuery"] = False
        self.line = _line("user", self.uuid, {"role": "user", "content": content}, flags)
        self.asks = asks
        self.is_command = not verbatim and _is_command(content)
        self.messages: list[Message] = []
        """Messages received, in order. The list only grows."""
        self.result: ResultMessage | None = None
        """The last message, once received."""
        self.has_ended = asyncio.Event()
        """Set at the event `END`."""
        self.state = TurnState.NEW
        self.spent = Spent()
        """Spending, complete with the result."""
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._next = 0
        self._lock = threading.Lock()

    def enter(self, event: TurnEvent) -> None:
        """Change the state. May be called from any thread: a reader may leave while the result arrives."""
        with self._lock:
            self.state = TRANSITIONS.get((self.state, event), self.state)

    @property
    def is_read(self) -> bool:
        """True if the result was delivered."""
        return self._next > 0 and self.messages[self._next - 1] is self.result

    def put(self, message: Message, spent: Spent) -> None:
        """Add a message from the CLI; the result, which reports `spent`, is the last."""
        has_reader = self.asks and self.state is not TurnState.LEFT
        # Before the message is added: other threads that see it must see all facts about it.
        if isinstance(message, ResultMessage) and self.result is None and self._is_mine(message):
            if self.asks:
                self.spent = spent
            self.result = message
            self.enter(TurnEvent.END)
        if has_reader:
            self.messages.append(message)
        if self.result is not None:
            self.has_ended.set()
        self._news.set()

    def fail(self, error: Exception) -> None:
        """End the input: the reader raises `error` after the messages received."""
        self.give_up(error)
        self.enter(TurnEvent.END)
        self.has_ended.set()

    def give_up(self, error: Exception) -> None:
        """Make the reader raise `error` after the messages received, even if the CLI continues."""
        self._error = self._error or error
        self._news.set()

    def has_unread(self) -> bool:
        """Return true if `take()` has a message."""
        return self._next < len(self.messages)

    def has_result(self) -> bool:
        """Return true if the result was received."""
        return self.result is not None

    def take(self) -> Message:
        """Return the next message, which must have been received."""
        message = self.messages[self._next]
        self._next += 1
        if message is self.result:
            self.enter(TurnEvent.READ)
        return message

    def take_all(self) -> None:
        """Skip all messages, once the result has been received."""
        self._next = len(self.messages)
        self.enter(TurnEvent.READ)

    async def wait_until(self, is_enough: Callable[[], bool]) -> None:
        """Wait for more messages until `is_enough()`; raise the reader error."""
        while not is_enough():
            if self._error is not None:
                raise self._error
            self._news.clear()
            await self._news.wait()

    def _is_mine(self, result: ResultMessage) -> bool:
        """Return true if a result answers this message, not an earlier message or something that the CLI did itself."""
        uuids = {result.user_message_uuid, *(result.user_message_uuids or ())} - {None}
        # An old CLI sends no uuids.
        return self.uuid in uuids if uuids else result.origin is None


class History:
    """User messages of a conversation, in order, as far as a rewind needs them, and the content before the first.

    A rewind to the first user message empties a conversation. Content before that message would stay, so a reset must
    know that there is none. Measured on CLI 2.1.329.
    """

    def __init__(self, *, is_resumed: bool) -> None:
        self.last_sent: str | None = None
        """Last message sent, even if it was dropped since then."""
        self.uuids: list[str] = []
        """User messages in the conversation, and perhaps some that a hook has blocked or a rewind has dropped."""
        self._beginning = "messages of an earlier session" if is_resumed else None

    def add_user(self, uuid: str, *, is_command: bool) -> None:
        """Record a sent message. A command may leave an echo before it."""
        if is_command and not self.uuids:
            self._beginning = self._beginning or "the echo of a command"
        self.uuids.append(uuid)
        self.last_sent = uuid

    def add_assistant(self) -> None:
        """Record a sent assistant message."""
        if not self.uuids:
            self._beginning = self._beginning or "an assistant message"

    def clear(self) -> None:
        """Record that a command has cleared the conversation, with an echo at the beginning."""
        self.uuids.clear()
        self._beginning = "the echo of a command"

    def latest(self, uuid: str) -> list[str | None]:
        """Return the user messages from this one on, the last first; one of them is the conversation's last."""
        first = self.uuids.index(uuid) if uuid in self.uuids else 0
        return [*reversed(self.uuids[first:])] or [self.last_sent]

    def rewind(self, uuid: str) -> None:
        """Record that a message was dropped, and all after it."""
        if uuid in self.uuids:
            del self.uuids[self.uuids.index(uuid) :]

    def check_can_be_emptied(self) -> None:
        """Raise if dropping all user messages would leave content."""
        if self._beginning is not None:
            message = f"the conversation begins with {self._beginning}, which a rewind does not drop"
            raise ControlRequestError(subtype="rewind_conversation", message=message)


class CostLedger:
    """Turns the CLI totals into differences, which are never negative and add up to the session spending.

    The totals grow over the CLI session and start again at `/clear`.
    """

    def __init__(self) -> None:
        self.cost_usd = 0.0
        """Cost since the session was opened, across clears, in US dollars."""
        self._session_id: str | None = None
        self.total_usd = 0.0
        """The CLI total in the last result, in US dollars."""
        self._models: Mapping[str, ModelUsage] = {}
        self.last = Spent()
        """Amount that the last result added."""

    def begin_at(self, usage: Mapping[str, JsonValue]) -> None:
        """Record the answer to `get_usage` as spent before this session was opened."""
        match usage:
            case {"session": {"total_cost_usd": int() | float() as total, "model_usage": {**models}}}:
                self.total_usd = float(total)
                try:
                    self._models = {name: ModelUsage.model_validate(model) for name, model in models.items()}
                except ValueError as error:
                    raise MessageParseError(reason=f"The usage of the session is invalid: {error}") from error
            case _:
                pass  # an old CLI

    def forget(self) -> None:
        """Count from zero; the CLI totals continue."""
        self.cost_usd = 0.0
        self.last = Spent()

    def take(self, result: ResultMessage) -> None:
        """Record the totals of a result."""
        if self._session_id not in (None, result.session_id):
            # A cleared conversation continues under another id, with new totals.
            self.total_usd, self._models = 0.0, dict[str, ModelUsage]()
        self._session_id = result.session_id
        self.last = Spent()
        if result.total_cost_usd == self.total_usd and not result.num_turns:
            return  # the answer to a message without a question
        totals = convert_sdk_messages_to_cli_response([result])
        cost = max(totals.total_cost_usd or 0.0, self.total_usd)
        models = {**self._models, **(totals.model_usage or {})}
        self.last = Spent(round(cost - self.total_usd, _DIGITS), _difference(models, self._models))
        self.cost_usd = round(self.cost_usd + self.last.cost_usd, _DIGITS)
        self.total_usd, self._models = cost, models


def _difference(current: Mapping[str, ModelUsage], earlier: Mapping[str, ModelUsage]) -> dict[str, ModelUsage]:
    differences: dict[str, ModelUsage] = {}
    for model, usage in current.items():
        amounts = {
            name: max(0, round(value - (getattr(earlier.get(model), name, 0) or 0), _DIGITS))
            for name, value in usage
            if name in _AMOUNTS and isinstance(value, int | float)
        }
        if any(amounts.values()):
            differences[model] = usage.model_copy(update=amounts)
    return differences


def assistant_line(uuid: str, content: Content, *, model: str, input_tokens: int) -> str:
    """Return the line for an earlier assistant message."""
    message = {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        # The CLI counts context by it; the real cost was counted when the model made the message.
        "usage": {"input_tokens": input_tokens, "output_tokens": 0},
    }
    return _line("assistant", uuid, message)


def _line(kind: str, uuid: str, message: Mapping[str, object], flags: Mapping[str, bool] | None = None) -> str:
    frame = {"type": kind, "message": message, "parent_tool_use_id": None, "session_id": "default", "uuid": uuid}
    return json.dumps(frame | dict(flags or {})) + "\n"


def _check_content(content: object) -> None:
    """Raise if the CLI would ignore a message, drop a part of it, or answer it without the model.

    Raises:
        TypeError: It is neither a text nor content blocks.
        ValueError: It has no text, or a text without a visible character.
    """
    if not isinstance(content, (str, list)):
        raise TypeError(f"a prompt is a text or a list of content blocks, not {content!r}")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[object]", content)
    if not blocks:
        raise ValueError("the prompt has no content blocks")
    for index, block in enumerate(blocks):
        if not isinstance(block, dict) or not isinstance(cast("dict[str, object]", block).get("type"), str):
            raise TypeError(f"a content block is a dict with a 'type', not {block!r}, in place {index} of the prompt")
        match cast("dict[str, object]", block):
            case {"type": "text", "text": str(text)}:
                if "".join(text.split()).strip("\ufeff") == "":
                    raise ValueError(f"a prompt must say something: the text {text!r} has only white space")
            case {"type": "text", **others}:
                raise TypeError(f"a block of text has a 'text' of type str, not {others.get('text')!r}")
            case _:
                pass


def _is_command(content: Content) -> bool:
    """Return true if the CLI may treat a message as a command, unless it is sent with `verbatim`."""
    if not isinstance(content, str):
        texts = [block.get("text") for block in content if block.get("type") == "text"]
        content = str(texts[-1]) if texts else ""
    return content.lstrip().startswith("/")
