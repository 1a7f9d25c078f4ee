"""DSPy: predictions, with the model through LiteLLM."""

import asyncio
from typing import Any

import dspy
from abilities import (
    CITY,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG_BASE64,
    REFUSE,
    TOKEN,
    URL,
    WEATHER,
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from city import City


class AboutCity(dspy.Signature):
    """Name a city."""

    question: str = dspy.InputField()
    city: City = dspy.OutputField()


class AboutImage(dspy.Signature):
    """Describe an image."""

    image: dspy.Image = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class WithTools(dspy.Signature):
    """Answer with the help of tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def lm(token: str = TOKEN) -> dspy.LM:
    """Return the language model."""
    return dspy.LM(f"anthropic/{MODEL}", api_base=URL, api_key=token, cache=False, max_tokens=1000)


dspy.configure(lm=lm())
predict = dspy.Predict("question -> answer")


def ask(question: str) -> str:
    """Return the answer to a question."""
    return predict(question=question).answer


def stream() -> list[str]:
    """Return the pieces of an answer."""
    listener: Any = dspy.streaming.StreamListener(signature_field_name="answer")

    async def run() -> list[str]:
        made = dspy.streamify(predict, stream_listeners=[listener])(question=HELLO)
        return [piece.chunk async for piece in made if isinstance(piece, dspy.streaming.StreamResponse)]

    return asyncio.run(run())


def tools() -> str:
    """Return the result of a tool that the model called; DSPy leaves the loop to its caller."""
    with dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        [call] = dspy.Predict(WithTools)(question=WEATHER, tools=[dspy.Tool(weather)]).calls.tool_calls
    return f"It is {weather(**call.args)}."


def structured() -> object:
    """Return an answer of a given type."""
    with dspy.context(adapter=dspy.JSONAdapter()):
        return dspy.Predict(AboutCity)(question=CITY).city.model_dump()


def images() -> str:
    """Ask about an image."""
    image = dspy.Image(f"data:image/png;base64,{PNG_BASE64}")
    return dspy.Predict(AboutImage)(image=image, question=LOOK).answer


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    model, stranger = lm(), lm(WRONG_TOKEN)
    model(REFUSE)
    refused = failure(lambda: model(HELLO))
    refused_stranger = failure(lambda: stranger(HELLO))
    model(OVERLOAD)
    return [refused, refused_stranger, model(HELLO)[0]]


report(
    "dspy",
    "litellm",
    text=lambda: ask(HELLO),
    stream=stream,
    tools=tools,
    structured=structured,
    images=images,
    errors=errors,
)
