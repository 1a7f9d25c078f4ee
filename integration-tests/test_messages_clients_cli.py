"""The `claude` CLI, with its own tools, as the server's client: Claude Code behind Claude Code."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, cast

import claude_agent_sdk
import pytest

from cc_loopback import LoopbackServer
from messages_server import MessagesServer

pytestmark = pytest.mark.slow

CLI = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
MODEL = "claude-sonnet-5"


def plain(value: Any) -> Any:
    """Return messages without cache breakpoints, and a text instead of a list with one text."""
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    message = cast("dict[str, Any]", value)
    fields = {name: plain(item) for name, item in message.items() if name != "cache_control"}
    if "role" in fields and isinstance(text := fields["content"], str):
        fields["content"] = [{"type": "text", "text": text}]
    return fields


def claude(prompt: str, env: dict[str, str], folder: Path) -> dict[str, Any]:
    """Return the CLI's printed result for a prompt."""
    process = subprocess.run(
        [CLI, "-p", prompt, "--output-format", "json", "--allowedTools", "Read", "--model", MODEL],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=100,
        stdin=subprocess.DEVNULL,
    )
    return json.loads(process.stdout)


def reads_a_file(path: Path) -> Any:
    """Return an API that lets the CLI read the file, and then answers with the content."""

    def respond(body: dict[str, Any]) -> Any:
        blocks: list[Any] = [block for message in body["messages"] for block in message["content"]]
        results: list[Any] = [block for block in blocks if "tool_use_id" in block]
        # The CLI tells the model how many tokens remain.
        usage = {"input_tokens": 100, "output_tokens": 10}
        if results:
            return {"content": f"It says: {results[0]['content']}", "usage": usage}
        call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": str(path)}}
        return {"content": [{"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"}, call], "usage": usage}

    return respond


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "notes.txt"
    file.write_text("the password is swordfish")
    return file


def test_a_whole_turn_with_its_own_tools(
    loopback: LoopbackServer, messages_server: MessagesServer, notes: Path
) -> None:
    """MSG-07, MSG-08, MSG-97: the API receives the same requests as without the server."""
    loopback.respond = reads_a_file(notes)
    direct = claude("Read notes.txt", loopback.env(), notes.parent)
    asked_directly = [*loopback.requests]
    loopback.requests.clear()
    loopback.calls.clear()
    through = claude("Read notes.txt", {**loopback.env(), **messages_server.env()}, notes.parent)

    for result in (direct, through):
        assert not result["is_error"], result
        assert "swordfish" in result["result"]
    assert len(loopback.requests) == len(asked_directly) == 2
    for one, other in zip(asked_directly, loopback.requests, strict=True):
        assert plain(other["messages"]) == plain(one["messages"])
        assert other["tools"] == one["tools"]
        for name in ("model", "max_tokens", "thinking", "context_management", "output_config", "stream"):
            assert other.get(name) == one.get(name), name
        assert other["system"][1:] == one["system"][1:]  # the first request names the session
    assert all("context-management" in call.headers["anthropic-beta"] for call in loopback.calls)


def test_an_api_error_is_reported(loopback: LoopbackServer, messages_server: MessagesServer, tmp_path: Path) -> None:
    """MSG-30"""
    env = {**loopback.env(), **messages_server.env(), "CLAUDE_CODE_MAX_RETRIES": "0"}
    loopback.fail_next(400, message="made-up", times=20)  # this CLI retries with a smaller request
    result = claude("Hello.", env, tmp_path)
    assert (result["is_error"], result["api_error_status"]) == (True, 400), (result, loopback.calls)
    assert "made-up" in result["result"]
    wrong = claude("Hello.", {**env, "ANTHROPIC_API_KEY": "wrong"}, tmp_path)
    assert (wrong["is_error"], wrong["api_error_status"]) == (True, 401)
