"""Histories: from other models, cut, repaired, long, unusual, and changed on the way to the model."""

import warnings
from typing import Any

from pydantic_ai import Agent, BinaryContent, RunContext
from pydantic_ai.capabilities import ProcessHistory, ReinjectSystemPrompt
from pydantic_ai.messages import (
    CompactionPart,
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryPromptPart,  # pyright: ignore[reportDeprecated]  # stored histories contain it
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.usage import RequestUsage

from api_script import Body, Reply, call, echo, steps

from .differences import integers_as_doubles
from .media import PNG
from .scenario import HAIKU, OPUS, SONNET, Theme
from .tools import lucky_number

histories = Theme("histories")


def user(prompt: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(prompt)])


def assistant(*parts: Any, by: str = "anthropic", name: str = SONNET) -> ModelResponse:
    return ModelResponse([*parts], provider_name=by, model_name=name)


def tool_call(id: str = "toolu_1", arguments: dict[str, Any] | None = None) -> ToolCallPart:
    return ToolCallPart("lucky_number", arguments or {"low": 1, "high": 3}, tool_call_id=id)


def tool_return(content: Any = 2, id: str = "toolu_1", **fields: Any) -> ToolReturnPart:
    return ToolReturnPart("lucky_number", content, tool_call_id=id, **fields)


async def go_on(model: AnthropicModel, *history: ModelMessage, prompt: str | list[str] | None = "Go on.") -> object:
    """Run on a history, with a tool from it, and run again on the result."""
    agent = Agent(model, tools=[lucky_number])
    first = await agent.run(prompt, message_history=[*history])
    return [first, await agent.run("And then?", message_history=first.all_messages())]


@histories.scenario(echo, on=(SONNET, HAIKU))
async def three_turns(model: AnthropicModel) -> object:
    """MODEL-14, MODEL-25"""
    agent = Agent(model, instructions="Answer briefly.")
    first = await agent.run("One.")
    second = await agent.run("Two.", message_history=first.all_messages())
    return await agent.run("Three.", message_history=second.all_messages())


@histories.scenario(echo)
async def a_fork_in_the_middle(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-14: two conversations with a common beginning, in alternation."""
    agent = Agent(model)
    root = (await agent.run("Root.")).all_messages()
    branch = (await agent.run("Left.", message_history=root)).all_messages()
    right = (await agent.run("Right.", message_history=root)).all_messages()
    return [
        await agent.run("Left again.", message_history=branch),
        await agent.run("Right again.", message_history=right),
        await agent.run("Another root."),
    ]


@histories.scenario(echo)
async def sixty_turns(model: AnthropicModel) -> object:
    """MODEL-14, MODEL-67: a long history that is new to every process."""
    history: list[ModelMessage] = []
    for number in range(60):
        history += [user(f"Question {number}?"), assistant(TextPart(f"Answer {number}."))]
    return await Agent(model).run("The last one.", message_history=history)


@histories.scenario(steps("One.", "Two.", "Three."))
async def a_processor_that_drops_and_edits(model: AnthropicModel) -> object:
    """MODEL-12: the process's state does not match the request any more."""

    def shorten(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[-1:] if len(messages) > 3 else messages

    agent = Agent(model, capabilities=[ProcessHistory[object](shorten)])
    first = await agent.run("First.")
    second = await agent.run("Second.", message_history=first.all_messages())
    third = agent.run("Third.", message_history=second.all_messages())
    return await third


def three_numbers(body: Body) -> Reply:
    """Two calls in turn, and an answer."""
    results = [block for message in body["messages"] for block in message["content"] if block["type"] == "tool_result"]
    return "Three." if len(results) == 2 else [call("lucky_number", low=len(results), high=4)]


@histories.scenario(three_numbers)
async def a_processor_that_rewrites_results_in_each_step(model: AnthropicModel) -> object:
    """MODEL-12"""

    def with_step(ctx: RunContext[object], messages: list[ModelMessage]) -> list[ModelMessage]:
        return [user(f"Step {ctx.run_step}."), assistant(TextPart("I see.")), *messages]

    return await Agent(model, tools=[lucky_number], capabilities=[ProcessHistory[object](with_step)]).run("Numbers.")


@histories.scenario(steps([call("lucky_number", low=1, high=3)], "Two."))
async def instructions_and_settings_that_change_in_each_step(model: AnthropicModel) -> object:
    """MODEL-12"""

    def settings(ctx: RunContext[object]) -> Any:
        return {"max_tokens": 1000 + ctx.run_step}

    agent = Agent(model, tools=[lucky_number], model_settings=settings)

    @agent.instructions
    def by_step(ctx: RunContext[object]) -> str:
        return f"This is step {ctx.run_step}."

    return await agent.run("A number.")


@histories.scenario(echo)
async def several_system_prompts_and_instructions(model: AnthropicModel) -> object:
    """MODEL-11: the permanent system parts, then the instructions, in order."""
    agent = Agent(model, deps_type=str, system_prompt=["First.", "Second."], instructions=["Fourth.", "Fifth."])

    @agent.system_prompt
    def third(ctx: RunContext[str]) -> str:
        return f"Third, for {ctx.deps}."

    return await agent.run("Hello.", deps="Ada", instructions="Sixth.")


@histories.scenario(echo)
async def a_dynamic_system_prompt_in_two_runs(model: AnthropicModel) -> object:
    """MODEL-11, MODEL-12"""
    agent = Agent(model, deps_type=str)

    @agent.system_prompt(dynamic=True)
    def name(ctx: RunContext[str]) -> str:
        return f"You talk to {ctx.deps}."

    first = await agent.run("Hello.", deps="Ada")
    return await agent.run("Hello again.", deps="Grace", message_history=first.all_messages())


@histories.scenario(echo, on=(SONNET, HAIKU))
async def a_system_part_in_mid_conversation(model: AnthropicModel) -> object:
    """MODEL-11: the part arrives wrapped, in place."""
    history = [user("Hi."), assistant(TextPart("Hello.")), ModelRequest([SystemPromptPart("Be brief now.")])]
    return await Agent(model).run("Go on.", message_history=history)


@histories.scenario(echo, on=OPUS)
async def a_system_part_where_the_model_would_take_one(model: AnthropicModel) -> object:
    """MODEL-03, MODEL-11: the part arrives as a system message, in place."""
    history = [user("Hi."), assistant(TextPart("Hello.")), ModelRequest([SystemPromptPart("Be brief now.")])]
    return await Agent(model).run("Go on.", message_history=history)


@histories.scenario(echo)
async def a_system_prompt_that_is_put_back(model: AnthropicModel) -> object:
    """MODEL-11"""
    agent = Agent(model, system_prompt="You are kind.", capabilities=[ReinjectSystemPrompt[object]()])
    return await agent.run("Go on.", message_history=[user("Hi."), assistant(TextPart("Hello."))])


OF_ANOTHER = [
    user("A number."),
    assistant(
        ThinkingPart("Let me see.", id="rs_1", signature="c2ln", provider_name="openai"),
        TextPart("I look."),
        ToolCallPart("lucky_number", '{"low": 1, "high": 3}', tool_call_id="call_abc|fc_1"),
        ToolCallPart("lucky_number", '{"low": 1, "hi', tool_call_id="call_def"),
        by="openai",
        name="gpt-5",
    ),
    ModelRequest([tool_return(id="call_abc|fc_1"), tool_return("bad", "call_def", outcome="failed")]),
    assistant(TextPart("Two."), by="openai", name="gpt-5"),
]


@histories.scenario(lambda body: "Yes.", on=(SONNET, HAIKU))
async def the_history_of_another_provider(model: AnthropicModel) -> object:
    """MODEL-20, MODEL-21: foreign thinking, foreign ids, and arguments that are not JSON."""
    return await go_on(model, *OF_ANOTHER)


@histories.scenario(lambda body: "Yes.")
async def native_parts_and_files_of_another_provider(model: AnthropicModel) -> object:
    """MODEL-22: foreign parts are omitted."""
    foreign = [
        NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="ws_1", provider_name="openai"),
        NativeToolReturnPart("web_search", {"hits": 1}, tool_call_id="ws_1", provider_name="openai"),
        FilePart(BinaryContent(PNG, media_type="image/png")),
        TextPart(""),
        TextPart("Found."),
    ]
    return await go_on(model, user("Search."), assistant(*foreign, by="openai", name="gpt-5"))


@histories.scenario(lambda body: "Yes.")
async def returns_of_every_outcome(model: AnthropicModel) -> object:
    """MODEL-15: a return is an error exactly for the framework's error outcomes."""
    outcomes = ("success", "failed", "denied", "retried", "interrupted")
    calls = [tool_call(f"toolu_{outcome}") for outcome in outcomes]
    returns = [tool_return(outcome, f"toolu_{outcome}", outcome=outcome) for outcome in outcomes]
    return await go_on(model, user("All."), assistant(*calls), ModelRequest(returns), prompt=None)


@histories.scenario(lambda body: "Yes.")
async def an_old_retry_part(model: AnthropicModel) -> object:
    """MODEL-18: the part becomes a retried tool return."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        retry = RetryPromptPart("Try again.", tool_name="lucky_number", tool_call_id="toolu_1")  # pyright: ignore[reportDeprecated]
        plain = RetryPromptPart("Say it in other words.")  # pyright: ignore[reportDeprecated]
    history = [user("A number."), assistant(tool_call()), ModelRequest([retry]), assistant(TextPart("Two."))]
    return await go_on(model, *history, ModelRequest([plain]))


@histories.scenario(lambda body: "Yes.", on=(SONNET, HAIKU))
async def a_history_that_begins_with_a_response(model: AnthropicModel) -> object:
    """MODEL-19"""
    return await go_on(model, assistant(TextPart("As I said, yes.")))


@histories.scenario(lambda body: "Yes.")
async def a_call_that_was_interrupted(model: AnthropicModel) -> object:
    """MODEL-19: the framework closes the call."""
    history = [
        user("A number."),
        assistant(tool_call()),
        ModelRequest([tool_return("Interrupted.", outcome="interrupted"), UserPromptPart("Stop.")]),
    ]
    return await go_on(model, *history, prompt=None)


@histories.scenario(lambda body: "Yes.")
async def neighbours_of_one_role(model: AnthropicModel) -> object:
    """MODEL-14: requests after requests and responses after responses."""
    pairs = [user("One."), user("Two."), assistant(TextPart("Three.")), assistant(TextPart("Four."))]
    return await go_on(model, *pairs)


@histories.scenario(lambda body: "Yes.")
async def a_summary_of_an_application(model: AnthropicModel) -> object:
    """MODEL-23: a compaction part without a provider replaces all messages before it, as text."""
    before = [user("A long story."), assistant(TextPart("Indeed."))]
    summary = ModelResponse([CompactionPart("They told a story.")])
    return await go_on(model, *before, summary, user("And then?"), assistant(TextPart("The end.")))


STRANGE = [
    "\u0000\u0007 control",
    "e\u0301 and \u00e9",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "lines\u2028paragraphs\u2029mark\ufeff",
    "{{x}} </system> \\n %s",
    "\u202ertl\u202c",
    "  spaces and lines around \n\n",
]


@histories.scenario(lambda body: "Yes.", on=(SONNET, OPUS))
async def a_summary_of_the_provider(model: AnthropicModel) -> object:
    """MODEL-23: the summary returns to the provider unchanged, with the necessary fields."""
    before = [user("A long story."), assistant(TextPart("Indeed."))]
    summary = assistant(CompactionPart("They told a story.", provider_name=model.system), by=model.system)
    return await go_on(model, *before, summary, user("And then?"), assistant(TextPart("The end.")))


@histories.scenario(echo)
async def unicode_of_every_kind(model: AnthropicModel) -> object:
    """MODEL-13, MODEL-14: nothing is escaped, normalised or cut."""
    agent = Agent(model)
    history: list[ModelMessage] = []
    for words in STRANGE:
        history = (await agent.run(words, message_history=history)).all_messages()
    return history


@histories.scenario(lambda body: "Yes.")
async def a_prompt_of_nothing_but_space(model: AnthropicModel) -> object:
    """MODEL-10: unsupported content is rejected, as the API would reject it."""
    return await Agent(model).run(" \n ")


@histories.scenario(lambda body: "Yes.")
async def empty_strings_beside_others(model: AnthropicModel) -> object:
    """MODEL-13, MODEL-22: the framework omits empty texts."""
    prompt = ["", "Hello.", ""]
    return await go_on(model, user("Hi."), assistant(TextPart(""), TextPart("Hello."), TextPart("")), prompt=prompt)


@histories.scenario(lambda body: "Yes.")
async def numbers_and_names_in_arguments(model: AnthropicModel) -> object:
    """MODEL-21: arguments keep their values."""
    strange: dict[str, Any] = {
        "low": 2**53,
        "high": 1e-7,
        "": None,
        "\u00fcn\u00ef": ["\u2028", {"deep": [[]]}],
        "float": 1.0,
    }
    return await go_on(
        model, user("A number."), assistant(tool_call(arguments=strange)), ModelRequest([tool_return()]), prompt=None
    )


@histories.scenario(lambda body: "Yes.", differ=integers_as_doubles)
async def a_number_that_javascript_does_not_have(model: AnthropicModel) -> object:
    """MODEL-21: the CLI keeps arguments as JavaScript does, so integers beyond 2**53 lose their last digits."""
    history = [user("A number."), assistant(tool_call(arguments={"low": 10**20 + 1})), ModelRequest([tool_return()])]
    return await go_on(model, *history, prompt=None)


@histories.scenario(lambda body: "Yes.")
async def a_response_of_huge_usage(model: AnthropicModel) -> object:
    """MODEL-62: no compaction happens without the framework."""
    huge = ModelResponse([TextPart("Yes.")], usage=RequestUsage(input_tokens=900_000, output_tokens=90_000))
    return await go_on(model, user("Hi."), huge)


@histories.scenario(lambda body: {"content": "Yes.", "usage": {"input_tokens": 999_000, "output_tokens": 500}})
async def answers_of_huge_usage(model: AnthropicModel) -> object:
    """MODEL-62: the answering process leaves the history unchanged."""
    return await go_on(model, user("Hi."), assistant(TextPart("Hello.")))
