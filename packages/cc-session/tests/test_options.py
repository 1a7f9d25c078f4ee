"""The sealed configuration, as the API sees it."""

import json
import mmap
from dataclasses import replace
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_session import Session, sealed_options
from cc_session.internals import Launch, Login, api_address, bundled_cli

from .conftest import ask

LOGINS: list[tuple[dict[str, str], Login]] = [
    ({}, Login.SUBSCRIPTION),
    ({"CLAUDE_CODE_OAUTH_TOKEN": "token"}, Login.SUBSCRIPTION),
    ({"ANTHROPIC_API_KEY": "key", "CLAUDE_CODE_OAUTH_TOKEN": "token"}, Login.API_KEY),
    ({"ANTHROPIC_AUTH_TOKEN": "token"}, Login.GATEWAY),
    ({"ANTHROPIC_AUTH_TOKEN": " sk-ant-oat01-token"}, Login.SUBSCRIPTION),
    ({"ANTHROPIC_AUTH_TOKEN": "sk-ant-oat01-token", "ANTHROPIC_API_KEY": "key"}, Login.SUBSCRIPTION),
    ({"ANTHROPIC_AUTH_TOKEN": "sk-ant-oat01-token", "CLAUDE_CODE_USE_VERTEX": "1"}, Login.VERTEX),
    ({"CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_API_KEY": "key"}, Login.VERTEX),
    ({"CLAUDE_CODE_USE_BEDROCK": "true"}, Login.BEDROCK),
    ({"CLAUDE_CODE_USE_FOUNDRY": "1"}, Login.FOUNDRY),
    ({"CLAUDE_CODE_USE_MANTLE": "1"}, Login.CLOUD),
    ({"CLAUDE_CODE_USE_BEDROCK": "0"}, Login.SUBSCRIPTION),
]


@pytest.mark.parametrize(
    ("env", "address"),
    [
        ({}, "https://api.anthropic.com"),
        ({"ANTHROPIC_BASE_URL": "http://me:secret@host:81/x?key=secret"}, "http://host:81 (from ANTHROPIC_BASE_URL)"),
        ({"ANTHROPIC_BASE_URL": "me:secret@host"}, "host (from ANTHROPIC_BASE_URL)"),
        ({"ANTHROPIC_BASE_URL": "https://host?key=secret"}, "https://host (from ANTHROPIC_BASE_URL)"),
        ({"ANTHROPIC_BASE_URL": "host#see=http://me:secret"}, "host (from ANTHROPIC_BASE_URL)"),
        ({"ANTHROPIC_BASE_URL": "http://me:sec/ret@host"}, "http://… (from ANTHROPIC_BASE_URL)"),
        ({"ANTHROPIC_BASE_URL": "http://me:sec?ret@host/x"}, "http://… (from ANTHROPIC_BASE_URL)"),
        ({"ANTHROPIC_BASE_URL": "me:sec#ret@host"}, "… (from ANTHROPIC_BASE_URL)"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, "the cloud provider's API"),
        (
            {"CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_VERTEX_BASE_URL": "https://v", "ANTHROPIC_BASE_URL": "http://a"},
            "https://v (from ANTHROPIC_VERTEX_BASE_URL)",
        ),
        (
            {"https_proxy": "http://me:secret@proxy:3128"},
            "https://api.anthropic.com, through the proxy http://proxy:3128 (from https_proxy)",
        ),
    ],
)
def test_the_address_of_the_api_is_told_without_secrets(
    env: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-85."""
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    assert api_address(env) == address


@pytest.mark.parametrize(("key", "is_bare"), [("key", True), ("", False)])
def test_only_an_api_key_login_is_bare_and_caller_variables_win(key: str, is_bare: bool) -> None:
    """SES-26."""
    sealed = sealed_options(env={"ANTHROPIC_API_KEY": key, "CLAUDE_CODE_MAX_RETRIES": "3"})
    assert ("bare" in sealed.extra_args, sealed.env["CLAUDE_CODE_MAX_RETRIES"]) == (is_bare, "3")


async def test_a_sealed_request_holds_what_the_caller_said_and_little_else(
    server: LoopbackServer, session: Session
) -> None:
    """SES-26."""
    await ask(session, "Hello.")

    [body] = server.requests
    assert {*body} == {"max_tokens", "messages", "metadata", "model", "stream", "system", "tools"}
    assert body["tools"] == []
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert body["system"][-1]["text"] == "You are a test."
    assert len(json.dumps(body)) < 1200


async def test_a_failed_request_is_a_result_and_is_not_repeated(server: LoopbackServer, session: Session) -> None:
    """SES-01, SES-26: the subtype is not enough, and retries belong to the client."""
    server.fail_next(status=529)
    failed: Any = (await ask(session, "Hello?"))[-1]
    assert (failed.is_error, failed.api_error_status, failed.subtype) == (True, 529, "success")
    assert len(server.calls) == 1

    again: Any = (await ask(session, "Hello again?"))[-1]
    assert not again.is_error


@pytest.mark.worlds
async def test_without_an_api_key_a_session_starts_as_well(server: LoopbackServer) -> None:
    """SES-26: a login that bare mode could not use; here it is none at all."""
    env = server.env() | {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "token"}
    options: ClaudeAgentOptions = sealed_options(env=env, system_prompt="You are a test.")
    async with await Session.open(options) as session:
        assert await session.run("Hello.")

    assert not server.requests[-1]["tools"]
    assert server.calls[-1].headers["authorization"] == "Bearer token"


@pytest.mark.parametrize(
    "name", ["ANTHROPIC_API_KEY", "CLOUD_ML_REGION", "VERTEX_REGION_CLAUDE_SONNET_5", "HTTPS_PROXY"]
)
def test_a_changed_login_or_address_needs_another_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-61."""
    before = Launch(options=sealed_options()).key
    monkeypatch.setenv(name, "another")
    assert Launch(options=sealed_options()).key != before


THINKS: Any = {"type": "enabled", "budget_tokens": 2048}


@pytest.mark.parametrize(
    ("asked", "name", "value"),
    [
        ({"effort": "low"}, "CLAUDE_CODE_EFFORT_LEVEL", ""),
        ({"thinking": THINKS}, "CLAUDE_CODE_DISABLE_THINKING", "0"),
        ({"max_thinking_tokens": 2048}, "CLAUDE_CODE_DISABLE_THINKING", "0"),
        ({"enable_file_checkpointing": True}, "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "0"),
        ({"skills": ["mine"]}, "CLAUDE_CODE_DISABLE_ATTACHMENTS", "0"),
        ({"skills": []}, "CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
    ],
)
def test_a_sealed_process_has_the_features_that_options_ask_for(asked: dict[str, Any], name: str, value: str) -> None:
    """SES-139: unless the caller has set the variable."""

    def env(options: ClaudeAgentOptions) -> dict[str, str]:
        return Launch(options=replace(options, **asked)).options.env

    assert env(sealed_options()) == {**sealed_options().env, name: value}
    assert env(sealed_options(env={name: "mine"}))[name] == "mine"
    assert name not in env(ClaudeAgentOptions())


@pytest.mark.parametrize("name", ["BUN_GC_TIMER_INTERVAL", "CLAUDE_STREAM_IDLE_TIMEOUT_MS"])
def test_the_program_knows_the_times_of_a_sealed_process(name: str) -> None:
    """SES-26: it would ignore an unknown name."""
    assert name in sealed_options().env
    with open(bundled_cli(), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
        assert program.find(name.encode()) >= 0


def test_launches_with_thinking_share_a_process_if_a_request_can_change_the_budget() -> None:
    """SES-61, SES-139."""

    def key(thinking: Any, options: ClaudeAgentOptions | None = None) -> object:
        return Launch(options=replace(options or sealed_options(), thinking=thinking)).key

    more: Any = {**THINKS, "budget_tokens": 4096}
    assert key(THINKS) == key(more) == key({"type": "disabled"})
    others = [None, {"type": "adaptive"}, {"type": "adaptive", "display": "omitted"}, {**THINKS, "display": "omitted"}]
    assert len({key(THINKS), *map(key, others)}) == 5
    for options in (ClaudeAgentOptions(), sealed_options(env={"MAX_THINKING_TOKENS": "9"})):
        assert key(THINKS, options) != key(more, options)
