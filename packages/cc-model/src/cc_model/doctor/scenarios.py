"""Scenarios of the live check: short runs whose answers a program can check. They know no prices and no report."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModelSettings
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage

# Login renewal, and a model that thinks, take some seconds for each request.
_SECONDS = 90.0
_FEW, _MANY = 300, 3000
_SETTINGS = ModelSettings(max_tokens=_FEW, timeout=_SECONDS)
_REFUSED = 400
# A red square of 16 x 16 pixels.
_RED = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg=="
)
# Above 4,096 tokens, the largest minimum for a cache entry.
_LONG_TEXT = " ".join(f"Article {number} costs {number * 7 % 90 + 10} euros." for number in range(700))


class ScenarioError(Exception):
    """The answer is not what the scenario asked for."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario, with an upper bound for tokens."""

    name: str
    run: Callable[[Model, RunUsage], Awaitable[str]]
    """Runs it with a model, adds the usage, and returns a short finding.

    Raises `ScenarioError` for a wrong answer, otherwise the model errors.
    """
    input_tokens: int
    """Maximum number of input tokens, all requests together. Claude Code's own system blocks are included."""
    output_tokens: int
    """Maximum number of output tokens, all requests together."""


class _City(BaseModel):
    name: str
    country: str


async def _text(model: Model, usage: RunUsage) -> str:
    result = await Agent(model, model_settings=_SETTINGS).run("Say the word pineapple.", usage=usage)
    return _with_word(result.output, "pineapple")


async def _stream(model: Model, usage: RunUsage) -> str:
    agent = Agent(model, model_settings=_SETTINGS)
    async with agent.run_stream("Count from one to twenty in words.", usage=usage) as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    _with_word("".join(pieces), "twenty")
    return f"{len(pieces)} pieces"


async def _tool(model: Model, usage: RunUsage) -> str:
    agent = Agent(model, model_settings=_SETTINGS)

    @agent.tool_plain
    def code_of(door: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """The code of a door."""
        return "code 4711"

    result = await agent.run("Which code has the north door? Use the tool.", usage=usage)
    return _with_word(result.output, "4711")


async def _tool_output(model: Model, usage: RunUsage) -> str:
    agent = Agent(model, output_type=_City, model_settings=_SETTINGS)
    return (await agent.run("The capital of France.", usage=usage)).output.name


async def _native_output(model: Model, usage: RunUsage) -> str:
    agent = Agent(model, output_type=NativeOutput(_City), model_settings=_SETTINGS)
    return (await agent.run("The capital of Japan.", usage=usage)).output.name


async def _image(model: Model, usage: RunUsage) -> str:
    prompt = ["Which color has this image: red, green or blue?", BinaryContent(_RED, media_type="image/png")]
    return _with_word((await Agent(model, model_settings=_SETTINGS).run(prompt, usage=usage)).output, "red")


async def _thinking(model: Model, usage: RunUsage) -> str:
    """Run two turns: the second sends the signed thinking of the first back."""
    settings = ModelSettings(max_tokens=_MANY, timeout=_SECONDS, thinking="low")
    agent = Agent(model, model_settings=settings)
    first_run = await agent.run("What is 37 times 43? Think first.", usage=usage)
    parts = [part for message in first_run.new_messages() for part in message.parts if isinstance(part, ThinkingPart)]
    second = await agent.run("And plus one?", message_history=first_run.all_messages(), usage=usage)
    _with_word(second.output.replace(",", ""), "1592")
    return f"{len(parts)} thinking parts"


async def _conversation(model: Model, usage: RunUsage) -> str:
    agent = Agent(model, model_settings=_SETTINGS)
    first_run = await agent.run("My dog is called Bruno. Say OK.", usage=usage)
    second = await agent.run("What is my dog called?", message_history=first_run.all_messages(), usage=usage)
    return _with_word(second.output, "Bruno")


async def _instructions(model: Model, usage: RunUsage) -> str:
    """Run two agents in turn, whose instructions must not mix."""
    answers: list[str] = []
    for word, other_word in (("tomato", "cabbage"), ("cabbage", "tomato")):
        agent = Agent(model, instructions=f"End each answer with the word {word}.", model_settings=_SETTINGS)
        answer = _with_word((await agent.run("Say hello.", usage=usage)).output, word)
        if other_word in answer.casefold():
            raise ScenarioError(f"the other agent's word {other_word!r} is in the answer {answer!r}")
        answers.append(answer)
    return "; ".join(answers)


async def _cache(model: Model, usage: RunUsage) -> str:
    settings = AnthropicModelSettings(**_SETTINGS, anthropic_cache_instructions=True)
    agent = Agent(model, instructions=_LONG_TEXT, model_settings=settings)
    for question in ("What does article 5 cost?", "What does article 6 cost?"):
        result = await agent.run(question, usage=usage)
    tokens = result.usage.cache_read_tokens
    if not tokens:
        raise ScenarioError("the second request read no token from the cache")
    return f"{tokens} tokens read"


async def _refusal(model: Model, usage: RunUsage) -> str:
    try:
        await Agent(model, model_settings=ModelSettings(max_tokens=-1)).run("Hello!", usage=usage)
    except ModelHTTPError as error:
        if error.status_code == _REFUSED:
            return f"status {error.status_code}"
        raise
    raise ScenarioError("the API took a request with max_tokens=-1")


def _with_word(answer: str, word: str) -> str:
    """Return the answer, shortened, if the word is in it."""
    if word.casefold() not in answer.casefold():
        raise ScenarioError(f"{word!r} is not in the answer {answer[:80]!r}")
    return answer if len(answer) <= 40 else f"{answer[:40]}…"


SCENARIOS: Sequence[Scenario] = (
    Scenario("text", _text, 2_000, _FEW),
    Scenario("stream", _stream, 2_000, _FEW),
    Scenario("tool", _tool, 6_000, 3 * _FEW),
    Scenario("output by a tool", _tool_output, 4_000, 2 * _FEW),
    Scenario("native output", _native_output, 4_000, 2 * _FEW),
    Scenario("image", _image, 3_000, _FEW),
    Scenario("thinking", _thinking, 6_000, 2 * _MANY),
    Scenario("conversation", _conversation, 4_000, 2 * _FEW),
    Scenario("two instructions in turn", _instructions, 4_000, 2 * _FEW),
    Scenario("cache read", _cache, 16_000, 2 * _FEW),
    Scenario("a refused request", _refusal, 0, 0),
)
