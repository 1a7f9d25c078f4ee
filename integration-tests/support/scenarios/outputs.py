"""An agent's outputs: texts, tools, native and prompted JSON, functions, unions, and wrong outputs."""

from pydantic import BaseModel, Field
from pydantic_ai import (
    Agent,
    EndStrategy,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    RunContext,
    StructuredDict,
    TextOutput,
    ToolOutput,
)
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.models.anthropic import AnthropicModel

from api_script import call, echo, steps, stopped, text

from .scenario import HAIKU, SONNET, Theme, continued

outputs = Theme("outputs")

PARIS = {"name": "Paris", "population": 2_100_000}
PARIS_JSON = '{"name": "Paris", "population": 2100000}'


class City(BaseModel):
    """A city."""

    name: str
    population: int = Field(gt=0)


class River(BaseModel):
    """A river."""

    name: str
    length: float


@outputs.scenario(echo, on=(SONNET, HAIKU, "claude-opus-5-5"))
async def a_text(model: AnthropicModel) -> object:
    """MODEL-01, MODEL-37"""
    return await Agent(model).run("Hello!")


@outputs.scenario()
async def a_type_alone(model: AnthropicModel) -> object:
    """MODEL-32: the model thinks by default, so the output is requested in native mode."""
    return await Agent(model, output_type=City).run("A city, please.")


@outputs.scenario(on=HAIKU)
async def a_type_alone_by_a_tool(model: AnthropicModel) -> object:
    """MODEL-32: the model does not think by default, so the output is requested by a tool."""
    return await Agent(model, output_type=City).run("A city, please.")


@outputs.scenario(on=(SONNET, HAIKU))
async def native_with_function_tools(model: AnthropicModel) -> object:
    """MODEL-32, MODEL-35, LOOP-22"""

    def count_people(city: str) -> int:
        """Count the people in a city."""
        return 2_100_000

    return await Agent(model, tools=[count_people], output_type=NativeOutput(City)).run("A city, please.")


@outputs.scenario(steps('{"result": {"kind": "River", "data": {"name": "Seine", "length": 777}}}'))
async def native_union(model: AnthropicModel) -> object:
    """MODEL-32"""
    return await Agent(model, output_type=NativeOutput([City, River])).run("A city or a river.")


@outputs.scenario(steps("no JSON", '{"name": "Paris", "population": -1}', PARIS_JSON))
async def native_that_is_wrong_twice(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-32"""
    return await Agent(model, output_type=NativeOutput(City), retries=2).run("A city, please.")


@outputs.scenario(on=(SONNET, HAIKU))
async def a_tool(model: AnthropicModel) -> object:
    """MODEL-33, LOOP-22"""
    return await Agent(model, output_type=ToolOutput(City)).run("A city, please.")


@outputs.scenario(on=(SONNET, HAIKU))
async def a_tool_and_then_another_run(model: AnthropicModel) -> object:
    """MODEL-17: the run ends without another request; the next run sends the final result with the prompt."""
    return await continued(Agent(model, output_type=ToolOutput(City)), "A city, please.", "Another one.")


@outputs.scenario(steps([call("a_river", name="Seine", length=777.5)]))
async def a_union_of_renamed_tools(model: AnthropicModel) -> object:
    """MODEL-33"""
    kinds = [ToolOutput(City, name="a_city", description="Tell a city."), ToolOutput(River, name="a_river")]
    return await Agent(model, output_type=kinds).run("A city or a river.")


@outputs.scenario(steps([call("final_result", name="Paris")], [call("final_result", **PARIS)]), on=(SONNET, HAIKU))
async def a_tool_with_wrong_arguments_first(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-33"""
    return await Agent(model, output_type=ToolOutput(City)).run("A city, please.")


@outputs.scenario(steps("I will not.", [call("final_result", **PARIS)]), on=HAIKU)
async def a_text_where_a_tool_was_wanted(model: AnthropicModel) -> object:
    """MODEL-34: the text is returned, and rejected by the framework."""
    return await Agent(model, output_type=ToolOutput(City)).run("A city, please.")


@outputs.scenario(steps("Neither.", "Nor."), on=HAIKU, raises=UnexpectedModelBehavior)
async def texts_until_the_retries_are_used_up(model: AnthropicModel) -> object:
    """MODEL-34"""
    return await Agent(model, output_type=ToolOutput(City), retries=1).run("A city, please.")


@outputs.scenario(steps("Paris", "Lyon"))
async def a_validator_that_wants_another(model: AnthropicModel) -> object:
    """MODEL-18"""
    agent = Agent(model, deps_type=str)

    @agent.output_validator
    def not_that_one(ctx: RunContext[str], city: str) -> str:
        if city == ctx.deps:
            raise ModelRetry(f"Not {city}.")
        return city

    return await agent.run("A city, please.", deps="Paris")


@outputs.scenario(steps([call("final_result", city="Paris")], [call("final_result", city="Lyon")]))
async def a_function_that_takes_the_output(model: AnthropicModel) -> object:
    """MODEL-33"""

    def visit(ctx: RunContext[str], city: str) -> str:
        """Visit a city."""
        if city == "Paris":
            raise ModelRetry("I was there.")
        return f"{ctx.deps} is in {city}"

    return await Agent(model, deps_type=str, output_type=visit).run("A city, please.", deps="Ada")


@outputs.scenario(steps("lyon"))
async def a_function_that_takes_the_text(model: AnthropicModel) -> object:
    """MODEL-34"""

    def shout(words: str) -> str:
        return words.upper()

    return await Agent(model, output_type=TextOutput(shout)).run("A city, please.")


@outputs.scenario(on=(SONNET, HAIKU))
async def prompted(model: AnthropicModel) -> object:
    """MODEL-34, LOOP-22"""
    return await Agent(model, output_type=PromptedOutput(City)).run("A city, please.")


@outputs.scenario(steps("```json\n{}\n```", PARIS_JSON))
async def prompted_that_is_wrong_first(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-34"""
    template = "Answer with JSON like this and nothing else: {schema}"
    return await Agent(model, output_type=PromptedOutput(City, template=template)).run("A city, please.")


@outputs.scenario(steps('{"result": {"kind": "City", "data": {"name": "Paris", "population": 2}}}'), on=(SONNET, HAIKU))
async def prompted_union(model: AnthropicModel) -> object:
    """MODEL-34"""
    return await Agent(model, output_type=PromptedOutput([City, River])).run("A city or a river.")


@outputs.scenario(steps("Paris", "Paris", "Paris"), raises=UnexpectedModelBehavior)
async def a_validator_that_is_never_content(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-51"""
    agent = Agent(model, retries=2)

    @agent.output_validator
    def never(city: str) -> str:
        raise ModelRetry(f"Not {city}.")

    return await agent.run("A city, please.")


@outputs.scenario(steps([text("It is "), call("final_result_City", **PARIS)]), on=HAIKU)
async def a_text_or_a_tool(model: AnthropicModel) -> object:
    """MODEL-33, MODEL-34"""
    return await Agent(model, output_type=[str, ToolOutput(City, name="final_result_City")]).run("A city or words.")


@outputs.scenario(steps([call("final_result", response=[1, 2, 3])]), on=HAIKU)
async def a_list_of_numbers(model: AnthropicModel) -> object:
    """MODEL-33"""
    return await Agent(model, output_type=list[int]).run("Numbers, please.")


@outputs.scenario(steps([call("final_result", height=330)]), on=HAIKU)
async def a_schema_without_a_class(model: AnthropicModel) -> object:
    """MODEL-33"""
    tower = StructuredDict(
        {"type": "object", "properties": {"height": {"type": "integer"}}, "required": ["height"]}, name="Tower"
    )
    return await Agent(model, output_type=tower).run("A tower, please.")


async def _all_at_once(model: AnthropicModel, strategy: EndStrategy) -> object:
    noted: list[str] = []
    agent = Agent(model, output_type=ToolOutput(City), end_strategy=strategy)

    # Without threads, so that the words come in order.
    @agent.tool_plain
    async def note(word: str) -> str:
        """Note a word."""
        noted.append(word)
        return f"noted {word}"

    first = await agent.run("A city, please.")
    return [first, noted, await agent.run("Another.", message_history=first.all_messages())]


_ALL_AT_ONCE = steps(
    [call("note", word="one"), call("final_result", **PARIS), call("note", word="two"), call("final_result", **PARIS)],
    [call("final_result", **PARIS)],
)


@outputs.scenario(_ALL_AT_ONCE)
async def tools_beside_an_output_when_it_ends_early(model: AnthropicModel) -> object:
    """MODEL-17, MODEL-34"""
    return await _all_at_once(model, "early")


@outputs.scenario(_ALL_AT_ONCE)
async def tools_beside_an_output_when_it_ends_gracefully(model: AnthropicModel) -> object:
    """MODEL-17, MODEL-34"""
    return await _all_at_once(model, "graceful")


@outputs.scenario(_ALL_AT_ONCE)
async def tools_beside_an_output_when_all_are_run(model: AnthropicModel) -> object:
    """MODEL-17, MODEL-34"""
    return await _all_at_once(model, "exhaustive")


@outputs.scenario(
    steps([text("  "), text("Paris")], [text("Lyon")]),
)
async def several_texts_of_which_one_is_blank(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-22, MODEL-37"""
    return await continued(Agent(model), "A city, please.", "Another.")


@outputs.scenario(steps(stopped("stop_sequence", text("Paris"), stop_sequence="END")), on=HAIKU)
async def a_text_up_to_a_stop_sequence(model: AnthropicModel) -> object:
    """MODEL-26, MODEL-36"""
    return await Agent(model).run("A city.", model_settings={"stop_sequences": ["END"]})
