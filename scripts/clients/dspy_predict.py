"""DSPy: predictions, with the model through LiteLLM."""

import asyncio
from typing import Any

import abilities
import dspy
from city import City


def lm(token: str = abilities.TOKEN) -> dspy.LM:
    return dspy.LM(f"anthropic/{abilities.MODEL}", api_base=abilities.URL, api_key=token, cache=False, max_tokens=1000)


def stream() -> list[str]:
    listener: Any = dspy.streaming.StreamListener(signature_field_name="answer")

    async def run() -> list[str]:
        made = dspy.streamify(predict, stream_listeners=[listener])(question=abilities.HELLO)
        return [piece.chunk async for piece in made if isinstance(piece, dspy.streaming.StreamResponse)]

    return asyncio.run(run())


def tools() -> str:
    """Return the result of a tool that the model called; DSPy leaves the loop to the caller."""
    with dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        ask = dspy.Predict("question, tools: list[dspy.Tool] -> calls: dspy.ToolCalls")
        prediction = ask(question=abilities.WEATHER, tools=[dspy.Tool(abilities.weather)])
    [call] = prediction.calls.tool_calls
    return f"It is {abilities.weather(**call.args)}."


def structured() -> object:
    ask = dspy.Predict(dspy.Signature("question -> city: City", custom_types={"City": City}))
    with dspy.context(adapter=dspy.JSONAdapter()):
        return ask(question=abilities.CITY).city.model_dump()


def images() -> str:
    image = dspy.Image(f"data:image/png;base64,{abilities.PNG_BASE64}")
    return dspy.Predict("image: dspy.Image, question -> answer")(image=image, question=abilities.LOOK).answer


dspy.configure(lm=lm())
predict = dspy.Predict("question -> answer")
abilities.report(
    lambda prompt, *token: lm(*token)(prompt)[0],
    "dspy",
    "litellm",
    text=lambda: predict(question=abilities.HELLO).answer,
    stream=stream,
    tools=tools,
    structured=structured,
    images=images,
)
