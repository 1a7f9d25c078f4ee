"""How a process is launched, and answers: one request, one API call. A second call by the CLI is prevented.

After an answer that ended at `max_tokens` or at the context window, that broke off after a whole block, or that shows
nothing, the CLI asks the model to go on, up to three times. No switch prevents that. But before each API call it
computes the conversation length, and makes none above a limit: from the usage that the API sent with the last answer,
and from an estimate for the later messages. So the limit is one token, and the prompt is preceded by a mark: an answer
that the CLI does not send, because it counts as empty, and whose usage is the prompt's negative length. The prompt is
always the same. With one more message, or with the API usage, it is over the limit.

The prompt's computed length depends on the CLI and on the login: up to 22 tokens with an API key; with a subscription
and a CLI that sends its version (2.1.306 and newer) 243 to 346, because of a message about the machine and the model
that the API never gets. A mark that is too small stops the prompt itself, before any API call, so it is increased in
steps until the prompt passes. A step is smaller than the 22 tokens that the CLI would add. Measured on 14 CLIs from
2.1.71 to 2.1.332.

A second call that is not prevented: the CLI retries a request that got a 404 without streaming, one that got a 401 with
a login, and one with a 400 that names the most output tokens; up to 2.1.191 also one with a connection error. It is
cancelled when it is seen, and its answer goes to no request: of the CLI messages, a reading takes only the events in
the API's one answer.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, Message, ResultMessage, StreamEvent, SystemMessage
from typing_extensions import override

from cc_session import Content, Session, Timeouts, sealed_options
from cc_session.internals import Launch, Login, PooledSession, SettingValues, login_of
from cc_types import ClaudeCodeError, CLIConnectionError

from ..api.cost import with_cost
from ..api.request import PLAIN_MODEL, MessagesRequest
from ..api.response import Answer, Event, UnreadableEventError, turn_error
from ..context import ToolServerKey
from .abilities import Abilities
from .api_log import LOG_ARGUMENTS, LOG_ENV

LIMIT_VARIABLE = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"
"""Variable, which the CLI reads before each API call, with the most tokens of a conversation."""
# Without a limit for the output, the CLI repeats any failed request for more than 32,000 tokens to a model that it does
# not know, to ask for fewer. The request's own limit replaces this one. Measured on CLI 2.1.332.
_LIMIT_ENV = {LIMIT_VARIABLE: "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "32000"}
# A process without commands: the CLI would search them after each parameter change.
_NO_COMMANDS: Mapping[str, str | None] = {"disable-slash-commands": None}

# The clouds' capabilities. With system messages among them, which the CLI would assume, it repeats a request that got a
# 400 or 422 without them; on Bedrock it adds a beta to the body. Measured on CLI 2.1.139 to 2.1.329.
_CAPABILITIES = "effort,max_effort,xhigh_effort,thinking,adaptive_thinking,interleaved_thinking"
_CLOUD_ENV = {
    "ANTHROPIC_CUSTOM_MODEL_OPTION": PLAIN_MODEL,
    "ANTHROPIC_CUSTOM_MODEL_OPTION_SUPPORTED_CAPABILITIES": _CAPABILITIES,
    "DISABLE_INTERLEAVED_THINKING": "1",
}

# The CLI prompt, in place of the conversation.
_PROMPT = "."

# The CLI text for an empty answer, which it leaves out of requests.
_NOTHING = "(no content)"

# Not a model name, since the mark precedes requests to all models. With the CLI name for its own messages,
# `<synthetic>`, it would ignore the usage.
_NO_MODEL = "none"

# After these the turn is over, and the CLI keeps the answer.
_KEPT = frozenset({"end_turn", "pause_turn", "stop_sequence"})

_FIRST_TOKENS = 22
_FIRST_TOKENS_WITH_MESSAGE = 256
_STEP_TOKENS = 16


class Reading:
    """A turn answer, built from the CLI messages, as sent to the caller."""

    repeats_refused_calls = False
    """True if a second API call after a refusal belongs to the turn."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.is_broken: bool = False
        """True if there will be no complete answer."""
        self.has_begun: bool = False
        """True if the CLI has begun the turn; messages before that are about an earlier turn."""
        self.result: ResultMessage | None = None
        self.apology: AssistantMessage | None = None
        """The CLI report about a failed API call."""

    def feed(self, message: Message) -> Sequence[Event]:
        """Process the CLI's next message; return the events for the caller."""
        self.has_begun |= isinstance(message, SystemMessage) and message.subtype == "init"
        match message:
            case StreamEvent(event={"type": str()}):
                pass
            case StreamEvent(event=event):
                raise UnreadableEventError(event)
            case _:
                pass
        return self._feed(message) if self.has_begun else ()

    def _feed(self, message: Message) -> Sequence[Event]:
        match message:
            case StreamEvent(event=event) if not self.answer.is_complete and not self.is_broken:
                if self.apology is None or not _is_made_up(event):
                    return self._feed_event(event)
            case AssistantMessage() if message.error is not None:
                self.apology = message
            case ResultMessage():
                self.result = message
            case _:
                pass
        return ()

    @property
    def was_blocked(self) -> bool:
        """True if the CLI made no API call, because it computed too long a prompt."""
        result = self.result
        if result is None or self.answer.has_begun or not result.is_error:
            return False
        return result.terminal_reason == "blocking_limit"

    async def go_on(self) -> None:
        """Let the CLI run the calls in the last message, and go on. Raises as `RequestContext.tell_step()`."""

    @property
    def has_run_tools(self) -> bool:
        """True if the CLI has called tools in this turn, so that a retry is not allowed."""
        return False

    def with_cost(self, result: ResultMessage) -> ResultMessage:
        """Return the turn result with the cost for this request alone."""
        return with_cost(result, self.answer.as_json())

    def failure(self, address: str) -> ClaudeCodeError:
        """Return the reason for the missing or incomplete answer from the API at `address`."""
        if self.was_blocked:
            return CLIConnectionError(reason="Claude Code has not sent the request", advice="Send it again.")
        return turn_error(self.result, self.apology, address)

    @property
    def ends_by_itself(self) -> bool:
        """True if the CLI will end the turn, or has ended it, without another API call.

        Tool calls end it, and a refusal. After an answer that shows nothing, that has reached a limit, or that
        announces a tool call without making it, the CLI may ask again.
        """
        if not self.answer.is_complete:
            return self.result is not None
        if self.answer.stop_reason in _KEPT:
            return self.answer.shows_something
        return self.answer.stop_reason == "refusal" or self.answer.calls_tools

    def _feed_event(self, event: Event) -> Sequence[Event]:
        kind = event["type"]
        if kind == "message_start" and (self.answer.has_begun or self.apology is not None):
            self.is_broken = True  # the CLI asks the API again, which the caller did not request
            return ()
        self.answer.feed(event)
        if kind == "message_stop" and not self.answer.is_complete:
            self.is_broken = self.apology is None  # after an apology the result has more details
            return ()
        return (event,)


def _is_made_up(event: Event) -> bool:
    """Return true if the CLI closed a stream that the API did not: it has no reason for the end."""
    if event["type"] == "message_delta":
        return event.get("delta", {}).get("stop_reason") is None
    return event["type"] == "content_block_stop"


class RequestPlan(Protocol):
    """How to open a process, to prepare it for a request, to ask, to read the answer, and to forget it."""

    has_history: bool
    """True if the conversation is in the CLI history, beside the CLI text such as the date."""
    tool_server: ToolServerKey | None
    """The caller's tools that the process has now."""
    abilities: Abilities

    async def open(self, launch: Launch, options: ClaudeAgentOptions, resources: AsyncExitStack) -> PooledSession:
        """Open the process session, as `Session.open()` does; `resources` are released with the process."""
        ...

    async def prepare(
        self, launch: Launch, settings: SettingValues, request: MessagesRequest, *, is_first: bool
    ) -> None:
        """Apply a request's settings, and write its conversation if the CLI needs it. Makes no API call."""

    def prompt(self) -> Content:
        """Return the CLI prompt."""
        ...

    @property
    def is_spent(self) -> bool:
        """True if the process can serve no other request: the caller's tools are lost, or Claude Code's were used.

        Their folder, tasks, timers and read files outlive a conversation.
        """
        ...

    def reading(self, answer: Answer) -> Reading:
        """Return the reader for a turn, which builds `answer`."""
        ...

    async def forget(self, *, was_blocked: bool = False) -> None:
        """Empty the conversation after a turn, which the CLI may have blocked before its API call."""


class PlainPlan:
    """The caller owns the loop: the whole request is in the extra body, and the CLI makes one API call."""

    has_history = is_spent = False
    tool_server: ToolServerKey | None = None
    _session: PooledSession
    _allowed: "Allowance"

    def __init__(self, abilities: Abilities) -> None:
        self.abilities = abilities

    async def open(self, launch: Launch, options: ClaudeAgentOptions, resources: AsyncExitStack) -> PooledSession:
        """Open the process session, and find out what the CLI can do."""
        session = await self.abilities.open(partial(PooledSession.start, launch), options)
        resources.push_async_callback(session.close)
        await self.abilities.probe(session)
        self._has_no_commands = _NO_COMMANDS.keys() <= options.extra_args.keys()
        self._session, self._allowed = session, Allowance(session, options)
        await self._allowed.begin(options.model or "", is_first_use=True)
        return session

    async def prepare(
        self, launch: Launch, settings: SettingValues, request: MessagesRequest, *, is_first: bool
    ) -> None:
        """Apply a request's settings, the extra body among them."""
        if not await self._session.apply(settings):
            await self._session.ping()
        # After the change of the model, which the CLI notes in the conversation.
        await self._allowed.begin(request.process_model, is_first_use=is_first)

    def prompt(self) -> Content:
        """Return the same prompt for all requests."""
        return _PROMPT

    def reading(self, answer: Answer) -> Reading:
        """Return the reader for an answer."""
        return Reading(answer)

    async def forget(self, *, was_blocked: bool = False) -> None:
        """Drop the prompt and the answer, and allow the next prompt if that is not left from before."""
        if self.abilities.can_rewind:
            await self._session.drop_messages()
        elif self._has_no_commands:  # the first process, used for the probe
            raise CLIConnectionError(reason="this process takes no command that clears its conversation")
        else:
            await self._session.reset(tools_changed=True)
        if was_blocked:
            self._allowed.increase()
        if was_blocked or not self.abilities.can_rewind:
            await self._allowed.grant()


# The longest prompt so far by CLI, and by model where its message counts: all processes of this program share it.
_longest: dict[tuple[str, str], int] = {}


class Allowance:
    """The allowed prompt length in a process, in the CLI tokens; raised in steps while the CLI blocks its prompt."""

    def __init__(self, session: Session, options: ClaudeAgentOptions) -> None:
        self._has_message = "bare" not in options.extra_args and "claude_code_version" in session.info
        self._session, self._cli = session, str(options.cli_path)
        self._model, self._tokens = "", 0
        self._granted: tuple[str, int] | None = None
        """Model and tokens of the last mark; None if none was certainly sent, as after a cancel."""
        self._is_repeated = False

    async def begin(self, model: str, *, is_first_use: bool) -> None:
        """Begin a request to a model, which the process has; a used process may hold leftovers from earlier ones."""
        self._is_repeated = is_first_use
        self._model = model if self._has_message else ""
        first_tokens = _FIRST_TOKENS_WITH_MESSAGE if self._has_message else _FIRST_TOKENS
        self._tokens = _longest.get((self._cli, self._model), first_tokens)
        if (self._model, self._tokens) != self._granted:
            await self.grant()

    async def grant(self) -> None:
        """Allow each prompt that follows directly on this, and only its first API call."""
        self._granted = None
        await self._session.add_assistant(_NOTHING, model=_NO_MODEL, input_tokens=-self._tokens)
        self._granted = (self._model, self._tokens)

    def increase(self) -> None:
        """Allow more, after a blocked prompt.

        In a used process leftovers may have blocked the prompt, so the first repetition has the same allowance: one
        that is too large would let the CLI make a second API call.
        """
        if self._is_repeated:
            self._tokens += _STEP_TOKENS
            key = (self._cli, self._model)
            _longest[key] = max(_longest.get(key, 0), self._tokens)
        self._is_repeated = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestLaunch(Launch):
    """The launch of a process that answers Messages API requests."""

    plan: Callable[[], RequestPlan]
    tool_server: ToolServerKey | None = None
    """The caller's tools that the CLI calls; None if there are none."""
    loop_key: object = None
    """The key's part for the CLI loop."""
    builder: "LaunchBuilder"

    @override
    def _companions(self) -> object:
        return self.loop_key


class LaunchBuilder:
    """Builds launches from the transport arguments, as described there; does not know the transport itself.

    Processes without Claude Code's own tools do not get `cwd`: in a repository the CLI would start git, with the
    request in its environment.
    """

    def __init__(
        self, env: Mapping[str, str], cwd: str | Path | None, cli_path: str | Path | None, timeouts: Timeouts
    ) -> None:
        self._env, self._cli_path, self._timeouts = env, cli_path, timeouts
        self.cwd = cwd
        """Working folder of Claude Code tools."""
        self.abilities: Abilities = Abilities()
        self.login_has_ended = False
        """True if processes for these launches end as soon as no request waits for them."""

    def whole(self, request: MessagesRequest | None = None) -> RequestLaunch:
        """Return the launch for a request whose body goes to the API as a whole; without one, for any without betas."""
        cloud = _CLOUD_ENV if login_of(self._env) in (Login.BEDROCK, Login.FOUNDRY, Login.VERTEX) else {}
        options = logged(self.sealed(request, {**_LIMIT_ENV, **cloud}))
        if self.abilities.can_rewind:  # without it, a command clears the conversation
            options = replace(options, extra_args={**options.extra_args, **_NO_COMMANDS})
        return self.launch(options, partial(PlainPlan, self.abilities))

    def sealed(self, request: MessagesRequest | None, env: Mapping[str, str]) -> ClaudeAgentOptions:
        """Return options without tools, settings and files, with `env` under the caller's variables."""
        prompt, model = ("", PLAIN_MODEL) if request is None else ("\n\n".join(request.system), request.process_model)
        options = sealed_options(system_prompt=prompt, model=model, env=self._env, cli_path=self._cli_path)
        # Sorted, so that equal sets are equal.
        names = sorted({beta.strip() for beta in request.betas.split(",")} - {""}) if request is not None else []
        # The caller's own variables take precedence, except over a request betas.
        betas = {"ANTHROPIC_BETAS": ",".join(names)} if names else {}
        return replace(options, env={**options.env, **env, **self._env, **betas})

    def launch(self, options: ClaudeAgentOptions, plan: Callable[[], RequestPlan]) -> RequestLaunch:
        """Return the launch with these options and this plan."""
        return RequestLaunch(options=options, timeouts=self._timeouts, plan=plan, builder=self)


def logged(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return the options, with a log of API calls."""
    return replace(options, env={**LOG_ENV, **options.env}, extra_args={**options.extra_args, **LOG_ARGUMENTS})
