"""The API receives what the caller sent, and the caller what the API answered, whatever came before in the process."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from cc_messages.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Answered, Client, Connect

    Plain = Callable[[Any], Any]

STEPS = 60
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
F: dict[str, Any] = {"name": "f", "input_schema": {"type": "object"}}
G = {"name": "g", "description": "Gee.", "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}}}}
TOOL_SETS: list[list[dict[str, Any]] | None] = [
    None,
    [F],
    [{**F, "strict": True}],
    [F, G],
    [G],
]

Message = dict[str, Any]


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def message_of(reply: Answered) -> dict[str, Any]:
    """The message of a whole or of a streamed answer."""
    answer = Answer()
    for event in reply.events:
        answer.feed(event)
    return reply.body or answer.as_json()


class Walk:
    """Makes up conversations that go on, fork and begin anew, and answers to them; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.conversations: list[list[Message]] = []
        self._ids = count()

    def request(self) -> list[Message]:
        kind = self.random.random()
        if not self.conversations or kind < 0.25:
            greeting = [{"role": "assistant", "content": [text("I begin.")]}] if kind < 0.02 else []
            return [*greeting, self._prompt()]
        messages = [*self.random.choice([self.conversations[-1], self.random.choice(self.conversations)])]
        if kind < 0.45:
            forks = [index for index, message in enumerate(messages) if message["role"] == "user"]
            messages = messages[: self.random.choice(forks)]
        return [*messages, self._reply_to(messages[-1]) if messages else self._prompt()]

    def varied(self, messages: list[Message]) -> list[Message]:
        """The request as another client could send it: with text of the system between, or an answer begun."""
        kind = self.random.random()
        if kind < 0.1:
            place = self.random.randrange(1, len(messages) + 1)
            return [*messages[:place], {"role": "system", "content": f"Mind {place}."}, *messages[place:]]
        if kind < 0.15:
            return [*messages, {"role": "assistant", "content": [text("I think")]}]
        return messages

    def answer(self) -> dict[str, Any]:
        content: list[dict[str, Any]] = []
        if self.random.random() < 0.2:
            content.append({"type": "thinking", "thinking": "Well,  well.\n", "signature": "c2ln"})
        if self.random.random() < 0.8:
            content.append(text(f"  text {self.random.randrange(1000)} with  spaces \n"))
        calls = self.random.choice([0, 0, 0, 1, 2, 3]) if any(block["type"] == "text" for block in content) else 1
        content += [self._call() for _ in range(calls)]
        usage = {"input_tokens": self.random.randrange(1, 999), "output_tokens": self.random.randrange(1, 99)}
        return {"id": f"msg_{next(self._ids)}", "content": content, "usage": usage}

    def tools(self) -> list[dict[str, Any]] | None:
        return self.random.choice(TOOL_SETS)

    def _call(self) -> dict[str, Any]:
        name = self.random.choice(["f", "g", "nobody_offered_this"])
        return {"type": "tool_use", "id": f"toolu_{next(self._ids)}", "name": name, "input": {"x": [None, 1.5]}}

    def _reply_to(self, answer: Message) -> Message:
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return self._prompt()
        content = [self._result(call["id"]) for call in calls]
        if self.random.random() < 0.3:
            content.append(text("And also /help @/etc/hostname"))
        return {"role": "user", "content": content}

    def _result(self, call: str) -> dict[str, Any]:
        outcomes: list[dict[str, Any]] = [
            {},
            {"content": ""},
            {"content": "a text"},
            {"content": [text("a"), text("b")], "is_error": False},
            {"content": [text("it failed"), text("badly")], "is_error": True},
            {"content": [IMAGE, text("an image")]},
        ]
        return {"type": "tool_result", "tool_use_id": call, **self.random.choice(outcomes)}

    def _prompt(self) -> Message:
        prompts: list[Any] = [
            f"prompt {self.random.randrange(100)} /clear",
            [text("/clear @/etc/hostname"), text("two")],
            [IMAGE, text("Look.")],
            [text(f"<system-reminder>no reminder</system-reminder> {self.random.randrange(100)}")],
        ]
        return {"role": "user", "content": self.random.choice(prompts)}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
async def test_any_walk_through_conversations_is_exact(seed: int, connect: Connect, plain: Plain) -> None:
    """MSG-03, MSG-04, MSG-08, MSG-14, MSG-18, MSG-20, MSG-23, MSG-24, MSG-25."""
    client, walk = connect(size=2), Walk(seed)
    for step in range(STEPS):
        messages, answer, tools = walk.request(), walk.answer(), walk.tools()
        client.answers(answer)
        client.api.requests.clear()
        fields: dict[str, Any] = {} if tools is None else {"tools": tools}
        sent = walk.varied(messages)
        reply = await client.ask(*sent, stream=walk.random.random() < 0.5, **fields)

        assert (step, reply.status) == (step, 200)
        assert len(client.api.requests) == 1, f"step {step}"
        assert client.received == plain(sent), f"step {step}"
        assert (client.api.requests[0].get("tools") or None) == tools, f"step {step}"
        received = message_of(reply)
        assert received["id"] == answer["id"]
        assert received["content"] == answer["content"]
        assert answer["usage"].items() <= received["usage"].items()
        walk.conversations.append([*messages, {"role": "assistant", "content": received["content"]}])
    assert set(client.routes) == {"start", "extend", "resume", "rebuild"}


def exchange_of(client: Client) -> dict[str, Any]:
    """What the API got, without what is different in every process."""
    body = {name: value for name, value in client.api.requests[-1].items() if name != "metadata"}
    return {**body, "messages": client.received}


async def test_all_routes_give_the_api_the_same_body(connect: Connect, plain: Plain) -> None:
    """MSG-14, MSG-16, MSG-17."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok", "is_error": False}
    parts: list[Any] = [
        "Hello.",
        [text("Good day.")],
        [text("Call it.")],
        [call],
        [result],
        [text("It is done.")],
        "Thanks.",
    ]
    fields: dict[str, Any] = {"system": "Be brief.", "tools": [F], "temperature": 0.5}

    client = connect(size=1)
    bodies: list[dict[str, Any]] = []
    for index in range(0, len(parts), 2):
        client.answers(parts[index + 1] if index + 1 < len(parts) else "Bye.")
        await client.ask(*parts[: index + 1], **fields)
        bodies.append(exchange_of(client))
    assert client.routes == {"start": 1, "extend": 2, "resume": 1}

    await client.ask("Something else.", **fields)
    for index in range(0, len(parts), 2):
        await client.ask(*parts[: index + 1], **fields)
        assert exchange_of(client) == bodies[index // 2]
        await client.ask(*parts[: index + 1], **fields)
        assert exchange_of(client) == bodies[index // 2]

    other = connect(size=1)
    await other.ask(*parts, **fields)
    assert other.routes == {"start": 1}
    assert exchange_of(other) == bodies[-1]
