"""`ChatClaudeCode`: the same requests as `ChatAnthropic`, logins, and the life of the processes."""

import copy
import pickle
from typing import Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.chat_models import AnthropicAuthenticationError
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, ValidationError

from cc_langchain import ChatClaudeCode
from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport

MODEL = "claude-sonnet-5"
THINKING = {"type": "thinking", "thinking": "Sunny?", "signature": "c2lnbmVk"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "City", "input": {"name": "Paris"}}
HISTORY: list[Any] = [
    SystemMessage([{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]),
    HumanMessage([{"type": "text", "text": "Where?"}, {"type": "image", "url": "https://example.org/a.png"}]),
    AIMessage([THINKING, {"type": "text", "text": "I look."}, CALL]),
    ToolMessage("found", tool_call_id="toolu_1"),
]
REQUESTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"thinking": {"type": "adaptive"}, "effort": "low"}, {}),
    ({"temperature": 0.5, "top_k": 3}, {"stop": ["END"]}),
    ({"betas": ["context-management-2025-06-27"]}, {"cache_control": {"type": "ephemeral"}}),
    ({"max_tokens": 9}, {"model": "claude-opus-5"}),
]


class City(BaseModel):
    """A city."""

    name: str


@pytest.mark.parametrize(("arguments", "options"), REQUESTS)
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_the_api_sees_what_chat_anthropic_sends(
    way: str, arguments: dict[str, Any], options: dict[str, Any], shared_api: LoopbackServer,
    transport: ClaudeCodeTransport,
) -> None:  # fmt: skip
    """LANG-01, LANG-03"""
    direct: Any = ChatAnthropic(model=MODEL, base_url=shared_api.url, api_key="key", **arguments)  # pyright: ignore[reportCallIssue]
    ours: Any = ChatClaudeCode(model=MODEL, transport=transport, **arguments)
    # Synchronous: langchain-anthropic keeps an asynchronous client for longer than a test's event loop.
    expected = await answer(direct.bind_tools([City]), way.removeprefix("a"), options)
    assert await answer(ours.bind_tools([City]), way, options) == expected
    sent, relayed = (
        {name: value for name, value in body.items() if name not in ("metadata", "stream")}
        for body in shared_api.requests
    )
    assert relayed == sent
    if betas := arguments.get("betas"):
        calls = [call for call in shared_api.calls if call.path == "/v1/messages"]
        assert all(betas[0] in call.headers["anthropic-beta"] for call in calls)


async def answer(model: Any, way: str, options: dict[str, Any]) -> list[Any]:
    """Return the content of the message, or of each chunk, and the output tokens."""
    match way:
        case "invoke":
            messages = [model.invoke(HISTORY, **options)]
        case "ainvoke":
            messages = [await model.ainvoke(HISTORY, **options)]
        case "stream":
            messages = [*model.stream(HISTORY, **options)]
        case _:
            messages = [chunk async for chunk in model.astream(HISTORY, **options)]
    tokens = sum(message.usage_metadata["output_tokens"] for message in messages if message.usage_metadata)
    return [*(message.content for message in messages), tokens]


@pytest.mark.worlds
def test_a_key_is_the_login_of_the_model_s_own_processes(
    shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG-04"""
    for name, value in shared_api.env().items():
        if name not in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
            monkeypatch.setenv(name, value)
    with ChatClaudeCode(model=MODEL, api_key="sk-ant-mine", base_url=shared_api.url) as model:
        assert model.invoke("Hello!").text == 'You said: "Hello!".'
    keys = {call.headers.get("x-api-key") for call in shared_api.calls if call.path == "/v1/messages"}
    assert keys == {"sk-ant-mine"}


@pytest.mark.parametrize("name", ["api_key", "base_url"])
def test_a_login_beside_a_transport_is_an_error(name: str, transport: ClaudeCodeTransport) -> None:
    """LANG-04"""
    with pytest.raises(ValidationError, match=f"{name} cannot be set together with a transport"):
        ChatClaudeCode(model=MODEL, transport=transport, **{name: "https://example.org"})


@pytest.mark.deaths
def test_processes_end_with_the_last_block(shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """LANG-05"""
    model = own_model(shared_api, monkeypatch)
    with model:
        with model:
            model.invoke("Hello!")
        assert model.transport.pids
    assert not model.transport.pids
    model.invoke("A later request starts a process.")
    model.close()
    assert not model.transport.pids


@pytest.mark.deaths
async def test_processes_end_with_an_asynchronous_block(
    shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG-05"""
    async with own_model(shared_api, monkeypatch) as model:
        await model.ainvoke("Hello!")
        assert model.transport.pids
    assert not model.transport.pids
    await model.aclose()


def test_a_shared_transport_stays_open(transport: ClaudeCodeTransport) -> None:
    """LANG-05"""
    with ChatClaudeCode(model=MODEL, transport=transport) as model:
        model.invoke("Hello!")
    model.close()
    assert transport.pids


@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
def test_a_serialized_model_loads(transport: ClaudeCodeTransport) -> None:
    """LANG-06"""
    model = ChatClaudeCode(model=MODEL, transport=transport, max_tokens=7)
    loaded = load(dumpd(model), valid_namespaces=["cc_langchain"], allowed_objects=[ChatClaudeCode])
    assert isinstance(loaded, ChatClaudeCode)
    assert (loaded.model, loaded.max_tokens) == (MODEL, 7)
    assert loaded.transport is not transport


def test_copies_use_the_same_processes(shared_api: LoopbackServer, transport: ClaudeCodeTransport) -> None:
    """LANG-20"""
    model = ChatClaudeCode(model=MODEL, transport=transport, max_tokens=7)
    model.invoke("Hello!")
    for copied in (copy.copy(model), copy.deepcopy(model), model.model_copy(deep=True)):
        assert copied.transport is transport
        assert copied.invoke("Hello!").text == 'You said: "Hello!".'
    assert [body["max_tokens"] for body in shared_api.requests] == [7, 7, 7, 7]


@pytest.mark.worlds
def test_a_pickled_model_starts_processes_for_itself(
    shared_api: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG-20: also after a request, whose client has locks."""
    with own_model(shared_api, monkeypatch) as model:
        model.invoke("Hello!")
        with pickle.loads(pickle.dumps(model)) as loaded:
            assert loaded.invoke("Hello!").text == 'You said: "Hello!".'
            assert not set(loaded.transport.pids) & set(model.transport.pids)
        assert not loaded.transport.pids
        assert model.transport.pids


def test_api_errors_are_langchain_s(shared_api: LoopbackServer, transport: ClaudeCodeTransport) -> None:
    """LANG-07"""
    shared_api.fail_next(401)
    model = ChatClaudeCode(model=MODEL, transport=transport, max_retries=0)
    with pytest.raises(AnthropicAuthenticationError):
        model.invoke("Hello!")


def own_model(api: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> ChatClaudeCode:
    """Return a model without a transport, whose processes have the API's environment."""
    for name, value in api.env().items():
        monkeypatch.setenv(name, value)
    return ChatClaudeCode(model=MODEL)
