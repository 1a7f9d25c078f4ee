"""A contender for the benchmarks in a separate process, controlled by JSON lines.

    python scripts/bench/contenders.py CONTENDER

Prints `{}` after all imports and setup, and for each input line a line with the duration and the processor time of this
process (`processor`), both in milliseconds. Exits at the end of the input. A peer's environment has no packages from
this workspace; so each contender imports only what it needs.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

MODEL = "claude-sonnet-5"
PROMPT = "Hello?"
ANSWER = "Hello."


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word} is a greeting"


class AgentContender:
    """A pydantic-ai agent, in any version, with any model; with a transport, the CLI runs the tool loop.

    The public methods are orders, as for other contenders.
    """

    def __init__(self, model: Any, transport: str | None = None) -> None:
        self._transport = transport
        self._agent_class: Any = import_module("pydantic_ai").Agent
        self._model, self._agent = model, self._agent_class(model)
        self._talker, self._history = self._agent, list[Any]()

    async def begin(self, messages: int, *, tool: bool) -> None:
        """Start a new conversation with a unique first prompt."""
        self._talker = self._agent_class(self._model, tools=[look_up]) if tool else self._agent
        self._history = _made_elsewhere(messages)
        if self._transport:
            self._model.set_agent_toolsets(self._talker.toolsets, transport=self._transport)

    async def turn(self) -> None:
        result = await self._talker.run(PROMPT, message_history=self._history)
        _check(result.output)
        self._history = result.all_messages()

    async def run(self) -> None:
        _check((await self._agent.run(PROMPT)).output)

    async def stream(self, words: int) -> dict[str, float]:
        """Stream `words` words, and return the milliseconds until the first."""
        begun, first, deltas = time.perf_counter(), 0.0, 0
        async with self._agent.run_stream(f"Count to {words}.") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                first = first or time.perf_counter() - begun
                deltas += 1
        if deltas < words:
            raise RuntimeError(f"{words} words came in {deltas} pieces")
        return {"first": first * 1_000}


class ClientContender:
    """The SDK's client on a live process: a turn there is the lower limit for Claude Code."""

    def __init__(self) -> None:
        self._client: Any = None

    async def begin(self, messages: int, *, tool: bool) -> None:
        """Start a conversation in a new process, which cannot import a history and does not have our tool."""
        await self.aclose()
        self._client = import_module("claude_agent_sdk").ClaudeSDKClient(_sealed_options())
        await self._client.connect()

    async def turn(self) -> None:
        await self._client.query(PROMPT)
        await _check_result(self._client.receive_response())

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.disconnect()


class QueryContender:
    """`claude_agent_sdk.query()`, which starts a process for each call."""

    def __init__(self) -> None:
        self._sdk: Any = import_module("claude_agent_sdk")
        self._options, self._tools = _sealed_options(), dict[str, Any]()

    async def begin(self, messages: int, *, tool: bool) -> None:
        """Select whether a tool is called, in the CLI's own loop; there are no conversations."""

        async def serve(arguments: Any) -> Any:
            return {"content": [{"type": "text", "text": look_up(arguments["word"])}]}

        tools = [self._sdk.tool("look_up", look_up.__doc__, {"word": str})(serve)]
        servers = {"bench": self._sdk.create_sdk_mcp_server("bench", tools=tools)}
        wanted = {"mcp_servers": servers, "allowed_tools": ["mcp__bench__look_up"], "max_turns": None}
        self._tools = wanted if tool else {}

    async def turn(self) -> None:
        await _check_result(self._sdk.query(prompt=PROMPT, options=replace(self._options, **self._tools)))

    async def run(self) -> None:
        await self.turn()


class LangChainContender:
    """langchain-claude-cli's chat model, for runs without a conversation."""

    def __init__(self) -> None:
        # By default it removes API keys from the CLI's environment.
        self._model: Any = import_module("langchain_claude_cli").ChatClaudeCli(model="sonnet", auth="inherit")

    async def run(self) -> None:
        _check((await self._model.ainvoke(PROMPT)).text)


async def _check_result(messages: AsyncIterator[Any]) -> None:
    async for message in messages:
        if hasattr(message, "result"):
            _check(message.result)


def _check(answer: object) -> None:
    if not str(answer).startswith(ANSWER):
        raise RuntimeError(f"not the answer: {answer!r}")


def _made_elsewhere(messages: int) -> list[Any]:
    module = import_module("pydantic_ai.messages")
    history: list[Any] = []
    for number in range(0, messages, 2):
        # The time makes it a conversation that no process has seen.
        prompt = module.UserPromptPart(f"Question {number}, asked at {time.time_ns()}?")
        answer = module.TextPart(f"An answer to question {number}, of a length that answers have. " * 4)
        history += [module.ModelRequest(parts=[prompt]), module.ModelResponse(parts=[answer], model_name=MODEL)]
    return history


@asynccontextmanager
async def contender(name: str) -> AsyncGenerator[Any]:
    """Yield the named contender; imports and setup count as the start."""
    async with AsyncExitStack() as stack:
        match name:
            case "plain":
                yield AgentContender(_plain())
            case "ours":
                yield AgentContender(await _ours(stack))
            case "sdk" | "stdio":
                yield AgentContender(await _ours(stack), name)
            case "peer":
                peer = import_module("pydantic_ai_claude_code")
                provider = peer.ClaudeCodeProvider({"use_sandbox_runtime": False})
                yield AgentContender(peer.ClaudeCodeModel("sonnet", provider=provider))
            case "langchain":
                yield LangChainContender()
            case "client":
                yield await stack.enter_async_context(aclosing(ClientContender()))
            case "query":
                yield QueryContender()
            case _:
                raise ValueError(f"unknown contender: {name}")


def _plain() -> Any:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(api_key="key", base_url=os.environ["BENCH_API_URL"], max_retries=0)
    return AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))


async def _ours(stack: AsyncExitStack) -> Any:
    from cc_model import ClaudeCodeModel, ClaudeCodeProvider

    provider = await stack.enter_async_context(ClaudeCodeProvider(pool=1, max_retries=0))
    return ClaudeCodeModel(MODEL, provider=provider)


def _sealed_options() -> Any:
    from cc_session import sealed_options

    # Events are not requested where they are not needed, which is the cheapest turn.
    return replace(sealed_options(model=MODEL), include_partial_messages=False)


async def main(name: str) -> None:
    loop = asyncio.get_running_loop()
    async with contender(name) as agent:
        print("{}", flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            begun, worked = time.perf_counter(), time.process_time()
            order = json.loads(line)
            times: dict[str, float] = await getattr(agent, order.pop("do"))(**order) or {}
            times["milliseconds"] = (time.perf_counter() - begun) * 1_000
            times["processor"] = (time.process_time() - worked) * 1_000
            print(json.dumps(times), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
