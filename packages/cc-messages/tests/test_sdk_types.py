"""Requests and answers with each value that the official client's types allow."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, cast, get_type_hints

import httpx2
from anthropic.types.beta import BetaMessage
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming

from warm_clients.api_data import MESSAGES, parse_sse, text
from warm_clients.client import Client
from warm_clients.sdk_types import values

HINTS = get_type_hints(MessageCreateParamsNonStreaming, include_extras=True)
# Set by the test's client, sent as headers, or refused.
OTHERS = {
    "betas", "max_tokens", "mcp_servers", "messages", "model", "stream", "thread", "user_profile_id", "workspace_id",
}  # fmt: skip


def rows(table: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield dictionaries that together have each value once."""
    for row in zip_longest(*table.values(), fillvalue=...):
        yield {name: value for name, value in zip(table, row, strict=True) if value is not ...}


def without_remote_calls(items: list[Any]) -> list[Any]:
    """Return the items without a call of a remote MCP server, which Claude Code makes itself."""
    return [item for item in items if "mcp_tool_" not in json.dumps(item)]


def as_by_the_cli(answer: Any) -> Any:
    """Return an answer without pings, and without two values that the CLI keeps for itself."""
    if isinstance(answer, list):
        return [as_by_the_cli(item) for item in cast("list[Any]", answer) if item != {"type": "ping"}]
    if not isinstance(answer, dict):
        return answer
    fields = {name: as_by_the_cli(item) for name, item in cast("dict[str, Any]", answer).items()}
    fields.pop("fallback_credit_token", None)
    return {**fields, "trigger": {"type": "refusal"}} if fields.get("trigger") else fields


async def test_each_parameter_arrives(client: Client) -> None:
    """MSG-03, MSG-04, ARCH-22"""
    table = {name: values(hint) for name, hint in HINTS.items() if name not in OTHERS}
    table["tools"] = [[tool for [tool] in table["tools"]]]
    client.answers("Fine.")
    for fields in rows(table):
        client.api.requests.clear()
        await client.ask("Hello.", **fields)
        [body] = client.api.requests
        if fields.get("output_config") in ({}, None):
            fields.pop("output_config", None)
        assert {name: body.get(name) for name in fields} == fields
    assert not client.starts


async def test_all_content_arrives(client: Client) -> None:
    """MSG-08, MSG-15"""
    messages = [message for [message] in without_remote_calls(values(HINTS["messages"]))]
    messages = [message for message in messages if "content" in message or message.get("output_config")]
    assert len(messages) > 5_000
    await client.ask(*messages)
    assert client.api.requests[-1]["messages"] == messages
    assert not client.starts


async def test_each_answer_arrives(client: Client) -> None:
    """MSG-24: as the API gives it to a client without Claude Code, whole and streamed in turn."""
    table = {name: values(field.annotation) for name, field in BetaMessage.model_fields.items()}
    table["content"] = [[block for [block] in without_remote_calls(table["content"])]] * 2
    table = {name: choices for name, choices in table.items() if name not in ("type", "role")}
    async with httpx2.AsyncClient(verify=False) as http:
        for number, fields in enumerate(rows(table)):
            stream = number % 2 == 1
            client.answers({"id": "msg_1", "content": [text("Fine.")], **fields})
            direct = await http.post(client.api.url + MESSAGES, json=client.body("Hello.", stream=stream))
            expected = parse_sse(direct.content) if stream else direct.json()
            response = await client.ask("Hello.", stream=stream)
            assert as_by_the_cli(response.events or response.body) == as_by_the_cli(expected)
    assert not client.starts
