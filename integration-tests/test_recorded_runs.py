"""Agents on Claude Code, recorded against one loopback API and replayed without it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse

from api_script import call, steps, thought
from cc_loopback import Cassette, Login, LoopbackServer, RecordMode
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

pytestmark = pytest.mark.worlds

KEY = "sk-ant-api03-not-for-the-cassette"
TOKEN = "sk-ant-oat01-not-for-the-cassette"
LOGINS: dict[Login, dict[str, str]] = {
    "api-key": {"ANTHROPIC_API_KEY": KEY},
    "oauth": {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN},
}

agent = Agent(instructions="You sell kettles.")


@agent.tool_plain
def price(article: str) -> int:
    """An article's price, in euros."""
    return {"kettle": 30}[article]


@pytest.fixture(params=[pytest.param("api-key", marks=pytest.mark.slow), "oauth"])
def login(request: pytest.FixtureRequest, loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> Login:
    """Set a user's variables with a login, and the loopback API as the API."""
    loopback.respond = steps([thought("A price."), call("price", article="kettle")], "A kettle costs 30 euros.")
    for name, value in {"ANTHROPIC_BASE_URL": loopback.url, **LOGINS[request.param]}.items():
        monkeypatch.setenv(name, value)
    return request.param


def answers(messages: list[ModelMessage]) -> list[object]:
    return [
        (message.parts, message.usage, message.provider_response_id)
        for message in messages
        if isinstance(message, ModelResponse)
    ]


async def run(model: ClaudeCodeModel, prompt: str = "What is a kettle?") -> tuple[list[object], list[str]]:
    async with agent.run_stream(prompt, model=model) as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    return answers(result.all_messages()), pieces


@asynccontextmanager
async def model_on(path: Path, record: RecordMode) -> AsyncGenerator[ClaudeCodeModel]:
    with LoopbackServer(cassette=Cassette(path, record)) as server:
        async with ClaudeCodeProvider(env=server.env(), pool=1, max_retries=2) as provider:
            yield ClaudeCodeModel(provider=provider)


async def test_an_agent_run_is_recorded_and_replayed_with_each_login(
    tmp_path: Path, login: Login, loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOOP-50, LOOP-52, LOOP-55, LOOP-56, LOOP-59: streams, tools, and a subscription's login."""
    path = tmp_path / "kettle.json"
    loopback.fail_next(529, headers={"retry-after": "0"})
    async with model_on(path, "once") as model:
        recorded = await run(model)
    logins = [call.headers.get("x-api-key") or call.headers["authorization"] for call in loopback.calls]
    assert logins == [KEY if login == "api-key" else f"Bearer {TOKEN}"] * 3
    cassette = path.read_text("utf-8")
    sessions = [call.headers["x-claude-code-session-id"] for call in loopback.calls]
    for secret in (KEY, TOKEN, "user_id", "cc_version", *sessions):
        assert secret not in cassette

    for name in ("ANTHROPIC_BASE_URL", *LOGINS[login]):
        monkeypatch.delenv(name)
    async with model_on(path, "none") as model:
        assert await run(model) == recorded
        with pytest.raises(ModelHTTPError) as caught:
            await run(model, "What is a pot?")
    assert len(loopback.calls) == 3
    assert caught.value.status_code == 424
    assert '-            text: "What is a kettle?"' in caught.value.message
    assert '+            text: "What is a pot?"' in caught.value.message
