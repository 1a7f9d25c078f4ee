"""What the API says in a scenario: functions of the request's body, so that whoever asks hears the same."""

from collections.abc import Callable, Sequence
from typing import Any

Block = dict[str, Any]
Body = dict[str, Any]
Reply = str | Sequence[Block] | dict[str, Any]
Respond = Callable[[Body], Reply]

# The loopback API counts tokens by the length of the request, which is not the same both ways.
USAGE = {"input_tokens": 120, "output_tokens": 30, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7}


def steps(*replies: Reply) -> Respond:
    """Answer by how many answers the conversation has already: the first reply if it has none, and so on."""

    def respond(body: Body) -> Reply:
        return replies[sum(message["role"] == "assistant" for message in body["messages"])]

    return respond


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(tool: str, /, **arguments: Any) -> Block:
    return {"type": "tool_use", "name": tool, "input": arguments}


def thought(words: str, signature: str = "c2lnbmVk") -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature}


def stopped(reason: str, *content: Block, **fields: Any) -> dict[str, Any]:
    """A message that ended for a reason that its content does not tell."""
    return {"content": [*content], "stop_reason": reason, **fields}


def echo(body: Body) -> Reply:
    """Answer with the text of the last prompt, so that nobody's answer can be taken for another's."""
    # A system message may come after it.
    prompt = next(message for message in reversed(body["messages"]) if message["role"] == "user")
    return "You said: " + prompt["content"][-1]["text"]


def with_usual_usage(respond: Callable[[Body], Any]) -> Callable[[Body], Any]:
    """The same answers with a usage that does not depend on the request, where they say none themselves."""

    def answer(body: Body) -> dict[str, Any]:
        reply = respond(body)
        return {"usage": USAGE, **reply} if isinstance(reply, dict) else {"content": reply, "usage": USAGE}

    return answer
