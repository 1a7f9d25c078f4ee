"""Questions to the user: Claude's, forms of MCP servers, and the CLI's dialogs."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PermissionMode

from cc_loopback import LoopbackServer
from cc_session import (
    HookResult,
    Policy,
    Question,
    Questions,
    Rule,
    Session,
    SessionPool,
    StdioServer,
    Timeouts,
    Turn,
    TurnError,
    hook,
)  # fmt: skip
from cc_types import JsonValue

from .conftest import calling, results_of, say, sealed, until, use

Answer: TypeAlias = Callable[[Question], Awaitable[JsonValue]]

DIALOG = "refusal_fallback_prompt"
COLOURS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
COLOUR = {"question": "Which colour?", "header": "Colour", "options": COLOURS, "multiSelect": True}
ASK = use("question", "AskUserQuestion", questions=[COLOUR])
ORDER = use("order", "mcp__form__order")

MODES = [
    "default",
    *(pytest.param(mode, marks=pytest.mark.slow) for mode in get_args(PermissionMode) if mode != "default"),
]


class Desk:
    """Answers to questions, recorded with the event loop and thread that gave them."""

    def __init__(self, answer: Callable[[Question], JsonValue]) -> None:
        self._answer = answer
        self.questions: list[Question] = []
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def __call__(self, question: Question) -> JsonValue:
        self.questions.append(question)
        self.loops.append(asyncio.get_running_loop())
        return self._answer(question)


def always(answer: JsonValue) -> Desk:
    return Desk(lambda _question: answer)


def asking(options: ClaudeAgentOptions, mode: PermissionMode = "dontAsk") -> ClaudeAgentOptions:
    return replace(options, tools=["AskUserQuestion"], max_turns=None, permission_mode=mode)


def form(script: str = "form_server.py", **env: str) -> dict[str, StdioServer]:
    return {"form": StdioServer(sys.executable, [str(Path(__file__).parent / script)], env=env)}


async def turn(options: ClaudeAgentOptions, questions: Questions | None, **kwargs: Any) -> Turn:
    """Run a turn in a process of its own."""
    async with await Session.open(options, questions=questions, **kwargs) as session, asyncio.timeout(40):
        return await session.run("Go.")


class Shared:
    """A process, with a form, that takes the present test's answers, and calls its hooks by event."""

    session: Session
    answer: Answer = always(None)
    functions: Mapping[str, Callable[[Any], Any]] = {}

    async def ask(self, question: Question) -> JsonValue:
        return await self.answer(question)

    def call(self, input: Mapping[str, Any]) -> Any:
        return self.functions.get(input["hook_event_name"], say(HookResult.no_opinion()))(input)

    async def turn(self, answer: Answer, **functions: Callable[[Any], Any]) -> Turn:
        self.answer, self.functions = answer, functions
        async with asyncio.timeout(40):
            return await self.session.run("Go.")


@pytest.fixture(scope="module")
async def process(worker_api: LoopbackServer) -> AsyncIterator[Shared]:
    shared = Shared()
    hooks = [hook(event)(shared.call) for event in ("Elicitation", "ElicitationResult")]
    hooks.append(hook("PreToolUse", "AskUserQuestion")(shared.call))
    questions = Questions(shared.ask)
    options = asking(sealed(worker_api))
    async with await Session.open(options, questions=questions, mcp_servers=form(), hooks=hooks) as shared.session:
        yield shared


@pytest.fixture
async def shared(process: Shared, server: LoopbackServer) -> Shared:
    await process.session.reset()
    return process


@pytest.mark.parametrize("mode", MODES)
async def test_an_answer_to_claude_s_question_reaches_the_model(
    server: LoopbackServer, options: ClaudeAgentOptions, mode: PermissionMode
) -> None:
    """SES-120: in every permission mode, on the caller's loop."""
    server.respond = calling(ASK)
    desk = always({"Which colour?": ["Blue", "or green"]})
    await turn(asking(options, mode), Questions(desk))
    [question] = desk.questions
    assert (question.kind, question.source, question.text) == ("question", "Claude", "Which colour?")
    assert question.details["questions"] == [COLOUR]
    assert desk.loops == [asyncio.get_running_loop()]
    assert '\\"Which colour?\\"=\\"Blue, or green\\"' in results_of(server)["toolu_question"]


@pytest.mark.parametrize("event", ["Elicitation", "ElicitationResult"])
@pytest.mark.parametrize("result", [HookResult.deny("No forms."), None], ids=["denial", "failure"])
async def test_a_hook_that_blocks_a_form_declines_it(
    server: LoopbackServer, shared: Shared, event: str, result: Any
) -> None:
    """SES-40, SES-42."""
    server.respond = calling(ORDER)
    await shared.turn(always({"size": 42}), **{event: say(result)})
    assert json.loads(text_of(server)) == {"action": "decline"}


@pytest.mark.worlds
async def test_a_form_in_mcp_s_new_protocol_gets_its_fields(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-120: there, a form is a tool's result, and the CLI calls the tool again."""
    pytest.importorskip("mcp.server.mcpserver.resolve")
    server.respond = calling(ORDER)
    await turn(options, Questions(always({"size": 42})), mcp_servers=form("new_form_server.py"))
    assert "size 42" in results_of(server)["toolu_order"]


def text_of(server: LoopbackServer) -> str:
    """Return the text that the MCP server's tool returned to the model."""
    [block] = json.loads(results_of(server)["toolu_order"])
    return block["text"]


@pytest.fixture
def refusing(server: LoopbackServer) -> ClaudeAgentOptions:
    """Options with a model that refuses, where the CLI asks before it takes another."""

    def respond(body: dict[str, Any]) -> Any:
        details = {"type": "refusal", "category": "cyber", "explanation": "no"}
        refusal: dict[str, Any] = {"content": [], "stop_reason": "refusal", "stop_details": details}
        return refusal if body["model"].startswith("claude-fable") else "With pleasure."

    server.respond = respond
    return ClaudeAgentOptions(
        model="claude-fable-5",
        system_prompt="You are a test.",
        tools=[],
        setting_sources=[],
        settings=json.dumps({"switchModelsOnFlag": False}),
        env=server.env(),
    )


@pytest.mark.worlds
async def test_a_dialog_that_the_program_knows_is_answered(refusing: ClaudeAgentOptions) -> None:
    """SES-121."""
    desk = always("retry_fallback")
    outcome = await turn(refusing, Questions(desk, dialogs=[DIALOG]))
    assert outcome.text == "With pleasure."
    [question] = desk.questions
    assert (question.kind, question.source, question.details["originalModel"]) == ("dialog", DIALOG, "claude-fable-5")


@pytest.mark.worlds
@pytest.mark.parametrize("dialogs", [[], [DIALOG]])
async def test_a_dialog_without_an_answer_never_blocks_the_turn(
    refusing: ClaudeAgentOptions, dialogs: list[str]
) -> None:
    """SES-121: the CLI would wait forever after an error. It sends no dialog that the program does not know."""
    desk = always(None)
    with pytest.raises(TurnError, match="safeguards flagged this message"):
        await turn(refusing, Questions(desk, dialogs=dialogs))
    assert len(desk.questions) == len(dialogs)


def fails(_question: Question) -> JsonValue:
    raise LookupError("secret of the program")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fails, "the program failed"),
        (say(None), "the program refused"),
        (say("Blue"), "the program's answer has a wrong type"),
    ],
    ids=["raises", "refuses", "wrong type"],
)
async def test_a_question_without_a_usable_answer_is_refused_in_words(
    server: LoopbackServer, shared: Shared, answer: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-122"""
    server.respond = calling(ASK, ORDER)
    await shared.turn(Desk(answer))
    assert f"The user has not answered: {reason}." in results_of(server)["toolu_question"]
    assert json.loads(text_of(server)) == {"action": "decline"}
    assert "secret of the program" not in json.dumps(server.requests)
    assert bool(caplog.records) == (reason != "the program refused")


@pytest.mark.worlds
async def test_a_question_without_an_answer_in_time_is_refused(
    server: LoopbackServer, options: ClaudeAgentOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-122."""

    async def answer(_question: Question) -> JsonValue:
        return await asyncio.Future[JsonValue]()

    server.respond = calling(ASK, ORDER)
    await turn(asking(options), Questions(answer), mcp_servers=form(), timeouts=Timeouts(question=0.5))
    assert "The user has not answered: no answer within 0.5 seconds." in results_of(server)["toolu_question"]
    assert json.loads(text_of(server)) == {"action": "decline"}
    assert caplog.records


@pytest.mark.worlds
async def test_where_nobody_can_answer_claude_has_no_tool_and_forms_are_declined(
    server: LoopbackServer, options: ClaudeAgentOptions, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-122."""
    server.respond = calling(ASK, ORDER)
    await turn(asking(options), None, mcp_servers=form())
    assert [tool["name"] for tool in server.requests[0]["tools"]] == ["mcp__form__order"]
    assert "No such tool available: AskUserQuestion" in results_of(server)["toolu_question"]
    assert json.loads(text_of(server)) == {"action": "decline"}
    [record] = caplog.records
    assert record.getMessage().startswith("form asked the user 'Which size?', and was refused: Questions(answer)")


async def test_the_end_of_a_turn_cancels_the_question(server: LoopbackServer, shared: Shared) -> None:
    """SES-122."""
    server.respond = calling(ASK)
    outcomes: list[str] = []

    async def answer(_question: Question) -> JsonValue:
        outcomes.append("asked")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            outcomes.append("cancelled")
            raise

    running = asyncio.ensure_future(shared.turn(answer))
    await until(lambda: outcomes)
    await shared.session.interrupt()
    with pytest.raises(TurnError):
        await running
    await until(lambda: outcomes == ["asked", "cancelled"])
    server.respond = say("Still here.")
    assert (await shared.session.run("Hello?")).text == "Still here."


@pytest.mark.worlds
async def test_a_policy_also_decides_on_questions(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-123: deny wins; a rule that asks needs no other callback."""
    server.respond = calling(ASK)
    desk = always({"Which colour?": "Red"})
    await turn(asking(options), Questions(desk), policy=Policy.read_only())
    assert (desk.questions, "does not allow" in results_of(server)["toolu_question"]) == ([], True)

    server.requests.clear()
    await turn(asking(options), Questions(desk), policy=Policy([Rule("AskUserQuestion", "ask")], default="deny"))
    assert 'colour?\\"=\\"Red' in results_of(server)["toolu_question"]


@pytest.mark.worlds
async def test_a_pool_s_leases_share_processes_by_their_questions(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-120."""
    first, second = always({"size": 1}), always({"size": 2})
    server.respond = calling(ORDER)
    async with SessionPool(options, questions=Questions(first), mcp_servers=form()) as pool:
        await pool.run("Go.")
        assert json.loads(text_of(server))["content"] == {"size": 1}
        server.requests.clear()
        await pool.run("Go.", questions=Questions(second))
        assert json.loads(text_of(server))["content"] == {"size": 2}
    assert (len(first.questions), len(second.questions)) == (1, 1)


async def test_invalid_questions_are_refused_at_once(options: ClaudeAgentOptions) -> None:
    """SES-123."""
    with pytest.raises(TypeError, match="takes the function that answers, not 'yes'"):
        Questions("yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"write dialogs=\['x'\]"):
        Questions(always(None), dialogs="x")
    with pytest.raises(ValueError, match="permission_prompt_tool_name answer the same requests"):
        await turn(replace(options, permission_prompt_tool_name="stdio"), Questions(always(None)))


async def test_a_hook_of_the_caller_still_changes_a_question(server: LoopbackServer, shared: Shared) -> None:
    """SES-123."""

    def reword(input: Mapping[str, Any]) -> Any:
        changed = {"questions": [{**COLOUR, "question": "Colour, please?"}]}
        return {"hookSpecificOutput": {"hookEventName": input["hook_event_name"], "updatedInput": changed}}

    server.respond = calling(ASK)
    desk = always({"Colour, please?": "Red"})
    await shared.turn(desk, PreToolUse=reword)
    assert desk.questions[0].text == "Colour, please?"
