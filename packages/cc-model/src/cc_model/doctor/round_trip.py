"""One question through everything that stands between an agent and a model."""

import time
from collections.abc import Mapping

from pydantic_ai import Agent

from ..model import ClaudeCodeModel
from ..provider import ClaudeCodeProvider

__all__ = ["offline", "online"]

_QUESTION = "Say OK."
# A login that must be renewed and a model that thinks take some seconds.
_ANSWER_SECONDS = 60.0


async def offline(cli_path: str) -> str:
    """Ask a scripted model on this machine through the real CLI, twice; returns what is to be told.

    Raises:
        ModuleNotFoundError: There is no cc-loopback.
        Exception: What went wrong on the way.
    """
    from cc_loopback import LoopbackServer

    async with LoopbackServer() as api:
        first, second, _ = await _ask(cli_path, api.env(), "sonnet")
    return f"{first:.1f} s with the start of a process, then {second * 1_000:.0f} ms; scripted model, not Claude"


async def online(cli_path: str, model: str) -> str:
    """Ask the API with the login that there is, twice; returns what is to be told.

    Raises:
        Exception: What went wrong on the way.
    """
    first, second, name = await _ask(cli_path, {}, model)
    return f"{name}: {first:.1f} s with the start of a process, then {second:.1f} s"


async def _ask(cli_path: str, env: Mapping[str, str], model: str) -> tuple[float, float, str]:
    async with ClaudeCodeProvider(pool=1, env=env, cli_path=cli_path, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(model, provider=provider), model_settings={"timeout": _ANSWER_SECONDS})
        begun = time.monotonic()
        await agent.run(_QUESTION)
        middle = time.monotonic()
        result = await agent.run(_QUESTION)
        return middle - begun, time.monotonic() - middle, result.response.model_name or model
