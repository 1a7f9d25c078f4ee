"""The run: two turns of a conversation, with all events on the screen."""

import asyncio
import logging
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
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
from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError
from rich.console import Console

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

from .agent import CITIES, FIRST_PROMPT, NEXT_PROMPT, TravelDesk, TripPlan, planner
from .login import AnswerSource, Choice, choose_login
from .offline import EVENT_DELAY, respond
from .screen import Screen
from .signals import Signals, StoppedBySignal
from .timing import TimedModel, ToolTimes

_PACED = "The scripted model writes slowly here, so that one sees the text stream."
_ONLINE = "Both contain the API's own time."


def run(*, prompt: str | None, model: str, offline: bool, login: bool, debug: bool) -> int:
    """Run the demo with the command line options; return the exit code."""
    pydantic_ai.BANNER_ENABLED = False
    if not debug:
        # The demo reports each failure once.
        logging.getLogger().addHandler(logging.NullHandler())
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal encoding lacks are replaced: a demo must not fail over an ellipsis.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    screen = Screen(Console(highlight=False), Console(highlight=False, stderr=True))
    choice = choose_login(environ, sys.platform, offline=offline, login=login)
    signals = Signals()
    try:
        with signals:
            asyncio.run(_demo(screen, choice, signals, model, prompt or FIRST_PROMPT))
    except StoppedBySignal:
        screen.failure("Stopped.", "yellow")
    except Exception as error:
        # The user of a demo wants a sentence for any error, and not a traceback.
        screen.failure(f"cc-demo failed. {explain(error, choice.login)}")
        if debug:
            screen.errors.print_exception()
        return 1
    return signals.exit_code


async def _demo(screen: Screen, choice: Choice, signals: Signals, model_name: str, prompt: str) -> None:
    is_offline = choice.login is AnswerSource.OFFLINE
    pace = EVENT_DELAY if is_offline and screen.console.is_terminal else 0.0
    async with AsyncExitStack() as stack:
        # Claude Code takes an API key before its own login, unless the key is empty.
        env = {"ANTHROPIC_API_KEY": ""} if choice.login is AnswerSource.CLAUDE_CODE else {}
        if is_offline:
            env = (await stack.enter_async_context(LoopbackServer(respond, event_delay=pace))).env()
        provider = await stack.enter_async_context(ClaudeCodeProvider(env=env))
        model = ClaudeCodeModel(model_name, provider=provider)
        screen.banner(choice, model.model_name)
        timed = TimedModel(model, provider.transport)
        await signals.work(_turns(screen, timed, prompt, is_offline=is_offline))
        note = _PACED if pace else "" if is_offline else _ONLINE
        screen.summary(timed.timings, provider.transport.stats().start_seconds, note)


async def _turns(screen: Screen, model: TimedModel, first_prompt: str, *, is_offline: bool) -> None:
    desk = TravelDesk(CITIES)
    history: Sequence[ModelMessage] = ()
    for number, prompt in enumerate((first_prompt, NEXT_PROMPT), start=1):
        screen.turn(number, prompt)
        result = await _turn(screen, model, prompt, desk, history)
        screen.output(result.output, result.usage, is_offline=is_offline)
        history = result.all_messages()


async def _turn(
    screen: Screen, model: TimedModel, prompt: str, desk: TravelDesk, history: Sequence[ModelMessage]
) -> AgentRunResult[TripPlan]:
    """Run the agent, and show the run while it happens."""
    tool_times = ToolTimes()
    starts = model.transport.stats().starts
    if not model.transport.pids:
        screen.starting()
    async with planner.run_stream_events(
        prompt, model=model, deps=desk, message_history=history, capabilities=[tool_times]
    ) as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                screen.end_text()
                return event.result
            start_seconds = model.transport.stats().start_seconds
            for seconds in start_seconds[starts:]:
                screen.started(seconds)
            starts = len(start_seconds)
            _show(screen, event, tool_times)
    raise RuntimeError("the run ended without a result")


def _show(screen: Screen, event: AgentStreamEvent, tool_times: ToolTimes) -> None:
    match event:
        case PartStartEvent(part=TextPart(content=text)):
            screen.end_text()
            screen.say(text)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            screen.say(text)
        case FunctionToolCallEvent(part=part):
            screen.call(part.tool_name, part.args_as_dict())
        case FunctionToolResultEvent(part=part):
            show = screen.retry if part.outcome == "retried" else screen.result
            show(part.tool_name, tool_times.seconds.get(part.tool_call_id), part.content)
        case OutputToolResultEvent(part=part) if part.outcome == "retried":
            screen.retry(part.tool_name, None, part.content)
        case _:
            pass


def explain(error: Exception, login: AnswerSource) -> str:
    """Return the error and the action to take, in a paragraph."""
    match error:
        case ModelHTTPError():
            text = f"The API answered with status {error.status_code}: {_api_message(error.body)}. {error.hint or ''}"
        case UserError() | AgentRunError():
            text = str(error)
        case _:
            text = f"{type(error).__name__}: {error} (With --debug you see where.)"
    return text.rstrip() if login is AnswerSource.OFFLINE else f"{text.rstrip()} `cc-demo --offline` needs no login."


def _api_message(body: object) -> str:
    """Return the message from the API error body, or another body as a text."""
    match body:
        case {"error": {"message": str(message)}}:
            return message.rstrip(".")
        case _:
            return str(body)
