"""All content that is not refused arrives unchanged; a single process carries each kind in turn."""

import base64
import struct
import zlib
from random import Random
from typing import Any

import httpx2
import pytest

from warm_clients.api_data import CALL, IMAGE, THINKING, plain, text
from warm_clients.client import Client
from warm_clients.fixtures import Connect

PDF = base64.b64encode(b"%PDF-1.4\n" + b"x" * 100_000).decode()
REDACTED = {"type": "redacted_thinking", "data": "c2Vj"}


def document(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": kind, **fields}, "title": "T", "citations": {"enabled": True}}


def result(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **fields}


PROMPTS: dict[str, list[Any]] = {
    "what would be commands": [text("/clear"), text("/compact @/etc/hostname !ls"), text("# remember")],
    "what the CLI itself writes": [text("[Request interrupted by user]"), text("<command-name>/clear</command-name>")],
    "blanks around words": [text("\n a\r\n"), text("\tb  ")],
    "odd characters": [text("a\0b\x1b[31m\u2028\ufeff\u202e\U0001f600")],
    "long": [text("x" * 500_000)],
    "image": [IMAGE],
    "many images": [*([IMAGE] * 30), text("Compare.")],
    "PDF": [document("base64", media_type="application/pdf", data=PDF), text("Read.")],
    "unknown block": [{"type": "hologram", "data": [1, None]}, text("Look.")],
}

ANSWERS: dict[str, list[Any]] = {
    "blanks around words": [text("\n\n"), text(" x  \n")],
    "thinking": [THINKING, text("x")],
    "thinking that shows nothing": [{**THINKING, "thinking": ""}, text("x")],
    "thinking between": [text("x"), THINKING, text("y"), REDACTED],
    "remote MCP tool": [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "n", "server_name": "s", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": [text("r")]},
        text("x"),
    ],
    "the words of an error": [text("API Error: 500 Prompt is too long")],
}

CALLS: dict[str, dict[str, Any]] = {
    "name of a built-in tool": {**CALL, "name": "Bash", "input": {"command": "ls"}},
    "longest name": {**CALL, "name": "n" * 64},
    "any input": {
        **CALL,
        "input": {"a": None, "cache_control": "data", "b": [1e-9, 2**70, "\0é\u2028"], "c": '{"x": 1}'},
    },
}

RESULTS: dict[str, list[Any]] = {
    "text": [result("ok")],
    "nothing": [{"type": "tool_result", "tool_use_id": "toolu_1"}],
    "no blocks": [result([])],
    "blank block": [result([text(" ")])],
    "error": [result("<tool_use_error>it failed</tool_use_error>", is_error=True)],
    "error of blocks": [result([text("a"), text("b")], is_error=True)],
    "no error": [result([text("a")], is_error=False)],
    "image": [result([IMAGE, text("a")])],
    "PDF": [result([document("base64", media_type="application/pdf", data=PDF)])],
    "text on both sides": [text("before"), result("ok"), text("after")],
}


def conversations() -> dict[str, list[Any]]:
    prompts: dict[str, list[Any]] = {f"prompt: {name}": [prompt] for name, prompt in PROMPTS.items()}
    past = {f"past prompt: {name}": [prompt, "x", "b"] for name, prompt in PROMPTS.items()}
    answered = {f"answer: {name}": ["a", answer, "b"] for name, answer in ANSWERS.items()}
    called = {f"call: {name}": ["a", [call], [result("ok")]] for name, call in CALLS.items()}
    returned = {f"result: {name}": ["a", [CALL], results] for name, results in RESULTS.items()}
    long_ago = {f"past result: {name}": ["a", [CALL], results, "x", "b"] for name, results in RESULTS.items()}
    many = {"many messages": [f"message {number}" for number in range(101)]}
    return prompts | past | answered | called | returned | long_ago | many


async def test_all_content_arrives_as_it_was_written(client: Client) -> None:
    """MSG-08, MSG-15, MSG-17, MSG-18, MSG-26"""
    wrong: list[str] = []
    for name, contents in conversations().items():
        client.api.requests.clear()
        reply = await client.ask(*contents)
        messages = client.body(*contents)["messages"]
        if reply.status != 200 or len(client.api.requests) != 1 or client.received != plain(messages):
            wrong.append(name)
    assert not wrong
    assert not client.starts


def png(width: int, height: int) -> str:
    """Return an image with noise, which cannot be compressed."""
    noise = b"".join(b"\0" + Random(row).randbytes(3 * width) for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(noise, 0)), (b"IEND", b""))
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


async def test_a_large_image_arrives_as_it_is(client: Client) -> None:
    """MSG-08: the CLI scales down images in a prompt over 512,000 bytes, or 2000 pixels on a side."""
    for width, height in ((450, 400), (2001, 1)):
        source = {"type": "base64", "media_type": "image/png", "data": png(width, height)}
        large = {"type": "image", "source": source}
        conversations: list[list[Any]] = [
            [[large, text("Look.")]],
            [[large], "x", "b"],
            ["a", [CALL], [result([large])]],
        ]
        for contents in conversations:
            await client.ask(*contents)
            assert client.received == plain(client.body(*contents)["messages"])


async def test_any_system_prompt_arrives_as_it_was_written(several: Client) -> None:
    odd = "@/etc/hostname /clear ${HOME} $(ls) é\u2028\U0001f600"
    for system in (" \n", f"\n a\r\n\0\ufeff {odd} {'x' * 300_000} "):
        await several.ask("Hello.", system=system)
        arrived = several.api.requests[-1]["system"]
        assert (arrived if isinstance(arrived, str) else arrived[0]["text"]) == system


async def test_breakpoints_are_added_if_asked_for(connect: Connect) -> None:
    """MSG-71: after the system prompt and after the last user message."""
    client = connect(size=1, cache_breakpoints=True)
    await client.ask("Hello.", system="Be brief.")
    body = client.api.requests[-1]
    assert [block.get("cache_control") for block in body["system"]] == [{"type": "ephemeral"}]
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


async def test_betas_reach_the_api(several: Client) -> None:
    """MSG-73"""
    await several.ask("Hello.", headers={"anthropic-beta": "first-2026-01-01, second-2026-02-02"})
    await several.ask("Hello.", headers={"anthropic-beta": "third-2026-03-03"})
    assert [call.headers["anthropic-beta"] for call in several.api.calls] == [
        "first-2026-01-01,second-2026-02-02",
        "third-2026-03-03",
    ]


async def test_remote_mcp_servers_are_refused_before_a_call(client: Client) -> None:
    """MSG-181: the CLI breaks off at the input of the first remote call, after the API has counted the request."""
    servers = [{"type": "url", "url": "https://example.com/mcp", "name": "s"}]
    reply = await client.ask("Hello.", mcp_servers=servers, headers={"anthropic-beta": "mcp-client-2025-11-20"})
    assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert "ClaudeCodeTools(mcp_servers=…)" in reply.error["message"]
    assert not client.api.requests

    call = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "n", "server_name": "s", "input": {"a": 1}}
    client.answers([call])
    with pytest.raises(httpx2.ReadError):
        await client.ask("Hello.", mcp_servers=[])


async def test_a_body_without_a_required_field_does_not_reach_a_process(client: Client) -> None:
    """MSG-09"""
    for reply in (await client.ask("Hello.", max_tokens=None), await client.ask(messages=None)):
        assert (reply.status, reply.error["type"]) == (400, "invalid_request_error")
    assert not client.api.requests
