"""The run: two turns of one conversation, with everything that happens in them put on the screen."""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from os import environ

import pydantic_ai
from pydantic_ai import (
    AgentRunResult,
    AgentRunResultEvent,
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    OutputToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from rich.console import Console

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

from .agent import CITIES, FIRST_PROMPT, NEXT_PROMPT, TravelDesk, TripPlan, planner
from .failure import explain
from .login import AnswerSource, Choice, choose_login
from .offline import EVENT_DELAY, respond
from .options import Options, default_model
from .screen import Screen
from .signals import Signals, StoppedBySignal
from .summary import show_timings, usage_line
from .timing import TimedModel, ToolTimes

__all__ = ["run"]

_PACED = "The scripted model writes slowly here, so that one sees the text stream."
_ONLINE = "Both contain the API's own time."


def run(options: Options) -> int:
    """Run the demo with `options`; returns the exit code."""
    # It would stand in the middle of ours.
    pydantic_ai.BANNER_ENABLED = False
    if not options.debug:
        # The demo reports each failure once.
        logging.getLogger().addHandler(logging.NullHandler())
    screen = _screen()
    choice = choose_login(environ, sys.platform, offline=options.offline, login=options.login)
    signals = Signals()
    try:
        with signals:
            asyncio.run(_demo(screen, options, choice, signals))
    except StoppedBySignal:
        screen.stopped()
    except Exception as error:
        # Whatever it is, the user of a demo wants a sentence and not a traceback.
        screen.failure(explain(error, choice.login))
        if options.debug:
            screen.errors.print_exception()
        return 1
    return signals.exit_code


def _screen() -> Screen:
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal's encoding lacks are replaced: a demo must not fail over an ellipsis.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    return Screen(Console(highlight=False), Console(highlight=False, stderr=True))


async def _demo(screen: Screen, options: Options, choice: Choice, signals: Signals) -> None:
    is_offline = choice.login is AnswerSource.OFFLINE
    pace = EVENT_DELAY if is_offline and screen.console.is_terminal else 0.0
    async with _offline(pace) if is_offline else _online(choice) as provider:
        model = ClaudeCodeModel(options.model or default_model(), provider=provider)
        screen.banner(choice, model.model_name)
        timed = TimedModel(model, provider.transport)
        await signals.work(_turns(screen, timed, options.prompt or FIRST_PROMPT, is_offline=is_offline))
        note = _PACED if pace else "" if is_offline else _ONLINE
        show_timings(screen, timed.timings, provider.transport.stats().start_seconds, note=note)


async def _turns(screen: Screen, model: TimedModel, first_prompt: str, *, is_offline: bool) -> None:
    desk = TravelDesk(CITIES)
    history: Sequence[ModelMessage] = ()
    for number, prompt in enumerate((first_prompt, NEXT_PROMPT), start=1):
        screen.turn(number, prompt)
        result = await _Turn(screen, model).run(prompt, desk, history)
        screen.output(result.output)
        screen.usage(usage_line(result.usage, is_offline=is_offline))
        history = result.all_messages()


def _online(choice: Choice) -> ClaudeCodeProvider:
    # Claude Code takes an API key before its own login, unless the key is empty.
    return ClaudeCodeProvider(env={"ANTHROPIC_API_KEY": ""} if choice.login is AnswerSource.CLAUDE_CODE else {})


@asynccontextmanager
async def _offline(pace: float) -> AsyncGenerator[ClaudeCodeProvider]:
    async with (
        LoopbackServer(respond, event_delay=pace) as server,
        ClaudeCodeProvider(env=server.env()) as provider,
    ):
        yield provider


class _Turn:
    """One run of the agent, shown as it goes."""

    def __init__(self, screen: Screen, model: TimedModel) -> None:
        self._screen = screen
        self._model = model
        self._starts_seen = model.transport.stats().starts
        self._tool_times = ToolTimes()

    async def run(self, prompt: str, desk: TravelDesk, history: Sequence[ModelMessage]) -> AgentRunResult[TripPlan]:
        if not self._model.transport.pids:
            self._screen.starting()
        async with planner.run_stream_events(
            prompt, model=self._model, deps=desk, message_history=history, capabilities=[self._tool_times]
        ) as events:
            async for event in events:
                if isinstance(event, AgentRunResultEvent):
                    self._screen.end_text()
                    return event.result
                self._show(event)
        raise RuntimeError("the run ended without a result")

    def _show(self, event: AgentStreamEvent) -> None:
        self._show_start()
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                self._screen.end_text()
                self._screen.say(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._screen.say(text)
            case FunctionToolCallEvent(part=part):
                self._screen.call(part.tool_name, part.args_as_dict())
            case FunctionToolResultEvent(part=part):
                show = self._screen.retry if part.outcome == "retried" else self._screen.result
                show(part.tool_name, self._tool_times.seconds.get(part.tool_call_id), part.content)
            case OutputToolResultEvent(part=part) if part.outcome == "retried":
                self._screen.retry(part.tool_name, None, part.content)
            case _:
                pass

    def _show_start(self) -> None:
        """Say it when a process has been started: the first event shows that it was."""
        starts = self._model.transport.stats().start_seconds
        for seconds in starts[self._starts_seen :]:
            self._screen.started(seconds)
        self._starts_seen = len(starts)
