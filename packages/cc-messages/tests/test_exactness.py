"""The API gets the caller's request, and the caller the API's answer, whatever the process did before."""

from itertools import count
from random import Random
from typing import Any

import pytest

from cc_messages.api.response import Answer
from warm_clients.api_data import IMAGE, plain, text
from warm_clients.client import Response
from warm_clients.fixtures import Connect

STEPS = 60
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


def message_of(reply: Response) -> dict[str, Any]:
    """Return the message in a whole or streamed answer."""
    answer = Answer()
    for event in reply.events:
        answer.feed(event)
    return reply.body or answer.as_json()


class Walk:
    """Generates conversations that continue, fork and restart, and their answers; equal for equal seeds."""

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
        """Return the request as another client could send it: with system text in between, or a partial answer."""
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_any_walk_through_conversations_is_exact(seed: int, connect: Connect) -> None:
    """MSG-03, MSG-04, MSG-08, MSG-18, MSG-20, MSG-23, MSG-24, MSG-25"""
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
        assert (plain(client.api.requests[0].get("tools")) or None) == tools, f"step {step}"
        received = message_of(reply)
        assert received["id"] == answer["id"]
        assert received["content"] == answer["content"]
        assert answer["usage"].items() <= received["usage"].items()
        walk.conversations.append([*messages, {"role": "assistant", "content": received["content"]}])
    assert client.starts <= 2


MARKED: dict[str, Any] = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
BODIES: list[dict[str, Any]] = [
    {"system": "Be brief."},
    {"system": [MARKED, text("And kind.")], "model": "claude-opus-4-8"},
    {"system": [], "temperature": 0.5},
    {"system": "", "model": "claude-haiku-4-5", "tools": [{**F, "cache_control": {"type": "ephemeral"}}]},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000, "service_tier": "auto"},
    {"something_new": [None], "container": None, "metadata": {"user_id": "u"}},
    {},
]


async def test_one_process_sends_any_body_as_it_was_written(connect: Connect) -> None:
    """MSG-01, MSG-02, MSG-03, MSG-07, SES-62, MSG-16, MSG-70, MSG-R4: everything from the caller is there."""
    client = connect(size=1)
    for fields in [*BODIES, *reversed(BODIES), *BODIES]:
        client.api.requests.clear()
        await client.ask("Hello.", **fields)
        [sent] = client.api.requests
        expected = client.body("Hello.", **fields)
        if not expected.get("system"):
            expected["system"] = []
        assert {name: sent.get(name) for name in expected} == expected
        spelled_out = {name: sent[name] for name in sent.keys() - expected.keys()}
        assert spelled_out.pop("metadata", "in the body")
        assert spelled_out in ({"stream": True}, {"stream": True, "tools": []})
    assert client.starts == 1
