"""Round trip of a question through all layers between an agent and a model."""

import time
from collections.abc import Mapping

from pydantic_ai import Agent

from ..model import ClaudeCodeModel
from ..provider import ClaudeCodeProvider

__all__ = ["offline", "online"]

_QUESTION = "Say OK."
# Login renewal and a model that thinks take some seconds.
_ANSWER_SECONDS = 60.0


async def offline(cli_path: str) -> str:
    """Ask a scripted model on this machine twice through the real CLI, and return the timings.

    Raises:
        ModuleNotFoundError: cc-loopback is not installed.
        Exception: The round trip failed.
    """
    from cc_loopback import LoopbackServer

    async with LoopbackServer() as api:
        first, second, _ = await _ask(cli_path, api.env(), "sonnet")
    return f"{first:.1f} s with the start of a process, then {second * 1_000:.0f} ms; scripted model, not Claude"


async def online(cli_path: str, model: str) -> str:
    """Ask the API twice with the existing login, and return the timings.

    Raises:
        Exception: The round trip failed.
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
