"""The API's answers in a scenario: pure functions of the request body, equal for both ways."""

from collections.abc import Callable, Sequence
from typing import Any

Block = dict[str, Any]
Body = dict[str, Any]
Reply = str | Sequence[Block] | dict[str, Any]
Respond = Callable[[Body], Reply]

# The loopback API derives token counts from the request's length, which differs between both ways.
USAGE = {"input_tokens": 120, "output_tokens": 30, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7}


def steps(*replies: Reply) -> Respond:
    """Answer by the number of earlier answers: the first reply if there is none, and so on."""

    def respond(body: Body) -> Reply:
        return replies[sum(message["role"] == "assistant" for message in body["messages"])]

    return respond


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(tool: str, /, **arguments: Any) -> Block:
    return {"type": "tool_use", "name": tool, "input": arguments}


def thought(words: str, signature: str = "c2lnbmVk") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def number() -> int:
    """A number."""
    return 2


def stopped(reason: str, *content: Block, **fields: Any) -> dict[str, Any]:
    """Return a message with a stop reason that does not follow from the content."""
    return {"content": [*content], "stop_reason": reason, **fields}


def hop(declining: str, answering: str) -> Block:
    """Return the block between the contents of a model that declined and of its fallback."""
    models = {"from": {"model": declining}, "to": {"model": answering}}
    return {"type": "fallback", **models, "trigger": {"type": "refusal", "category": "cyber"}}


def usage_of_fallback(declining: str, answering: str) -> dict[str, Any]:
    """Return a usage with an iteration for each model; the totals are the answering model's."""
    declined = {**USAGE, "type": "message", "model": declining, "output_tokens": 9}
    return {**USAGE, "iterations": [declined, {**USAGE, "type": "fallback_message", "model": answering}]}


def echo(body: Body) -> Reply:
    """Answer with the last prompt's text, so that mixed-up answers are detected."""
    # A system message may follow the prompt.
    prompt = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    return "You said: " + prompt["content"][-1]["text"]


def with_usual_usage(respond: Callable[[Body], Any]) -> Callable[[Body], Any]:
    """Add a usage that does not depend on the request to answers without usage."""

    def answer(body: Body) -> dict[str, Any]:
        reply = respond(body)
        return {"usage": USAGE, **reply} if isinstance(reply, dict) else {"content": reply, "usage": USAGE}

    return answer
