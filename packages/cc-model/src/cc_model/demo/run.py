"""The run: two turns of one conversation, with everything that happens in them put on the screen."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from os import environ

from pydantic_ai import (
    AgentRunResult,
    AgentRunResultEvent,
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from rich.console import Console

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

from .agent import CITIES, FIRST_PROMPT, NEXT_PROMPT, TravelDesk, TripPlan, planner
from .failure import explain
from .login import Choice, Login, choose_login
from .offline import EVENT_DELAY, offline_env, respond
from .options import Options
from .screen import Screen
from .signals import StoppedBySignal, run_until_signal
from .summary import show_timings, usage_line
from .timing import TimedModel, ToolTimes

__all__ = ["run"]


def run(options: Options) -> int:
    """Run the demo with `options`; returns the exit code."""
    screen = _screen()
    choice = choose_login(environ, sys.platform, offline=options.offline, login=options.login)
    try:
        run_until_signal(_demo(screen, options, choice))
    except StoppedBySignal as stopped:
        screen.stopped()
        return stopped.exit_code
    except Exception as error:
        # Whatever it is, the user of a demo wants a sentence and not a traceback.
        screen.failure(explain(error, choice.login))
        if options.debug:
            screen.errors.print_exception()
        return 1
    return 0


def _screen() -> Screen:
    for stream in (sys.stdout, sys.stderr):
        # What the terminal's encoding cannot say is replaced: a demo must not fail over an ellipsis.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    return Screen(Console(highlight=False), Console(highlight=False, stderr=True))


async def _demo(screen: Screen, options: Options, choice: Choice) -> None:
    offline = choice.login is Login.OFFLINE
    pace = EVENT_DELAY if screen.console.is_terminal else 0.0
    async with _offline(pace) if offline else _online(choice) as provider:
        model = (
            ClaudeCodeModel(options.model, provider=provider) if options.model else ClaudeCodeModel(provider=provider)
        )
        screen.banner(choice, model.model_name)
        timed = TimedModel(model, provider.transport)
        desk = TravelDesk(CITIES)
        history: Sequence[ModelMessage] = ()
        for number, prompt in enumerate((options.prompt or FIRST_PROMPT, NEXT_PROMPT), start=1):
            screen.turn(number, prompt)
            result = await _Turn(screen, provider.transport).run(prompt, timed, desk, history)
            screen.output(result.output)
            screen.usage(usage_line(result.usage, offline=offline))
            history = result.all_messages()
        show_timings(screen, timed.timings, provider.transport.start_seconds, is_paced=offline and pace > 0)


def _online(choice: Choice) -> ClaudeCodeProvider:
    # Claude Code takes an API key before its own login, unless the key is empty.
    return ClaudeCodeProvider(env={"ANTHROPIC_API_KEY": ""} if choice.login is Login.CLAUDE_CODE else {})


@asynccontextmanager
async def _offline(pace: float) -> AsyncGenerator[ClaudeCodeProvider]:
    async with (
        LoopbackServer(respond, event_delay=pace) as server,
        ClaudeCodeProvider(env=offline_env(server)) as provider,
    ):
        yield provider


class _Turn:
    """One run of the agent, shown as it goes."""

    def __init__(self, screen: Screen, transport: ClaudeCodeTransport) -> None:
        self._screen = screen
        self._transport = transport
        self._starts_seen = len(transport.start_seconds)
        self._tool_times = ToolTimes()

    async def run(
        self, prompt: str, model: TimedModel, desk: TravelDesk, history: Sequence[ModelMessage]
    ) -> AgentRunResult[TripPlan]:
        if not self._transport.pids:
            self._screen.starting()
        async with planner.run_stream_events(
            prompt, model=model, deps=desk, message_history=history, capabilities=[self._tool_times]
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
                self._screen.say(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._screen.say(text)
            case FunctionToolCallEvent(part=part):
                self._screen.call(part.tool_name, part.args_as_dict())
            case FunctionToolResultEvent(part=part):
                show = self._screen.retry if part.outcome == "retried" else self._screen.result
                # A call that was refused, because of its arguments for instance, took no time.
                show(part.tool_name, self._tool_times.seconds.get(part.tool_call_id, 0.0), part.content)
            case _:
                pass

    def _show_start(self) -> None:
        """Say it when a process has been started: the first event shows that it was."""
        starts = self._transport.start_seconds
        for seconds in starts[self._starts_seen :]:
            self._screen.started(seconds)
        self._starts_seen = len(starts)
