"""An agent's model both ways: straight to an API, and through Claude Code to the same API; and what may differ."""

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from anthropic import AsyncAnthropic
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

# The CLI's own two short blocks before the system prompt.
_CLI_SYSTEM = ("x-anthropic-billing-header:", "You are a Claude agent, built on Anthropic's Claude Agent SDK.")
# Ids are made anew in each run; equal ones must stay equal.
_IDS = re.compile(r"\b(?:toolu|msg|req|pyd_ai)_\w+")
# What the graph notes of a run, and where the answer came from.
_OF_THE_RUN = frozenset(
    {"timestamp", "run_id", "conversation_id", "model_id", "provider_name", "provider_url", "canonical_system"}
)


@dataclass
class BothWays:
    """Two models of one name, and the API that records what they send."""

    api: LoopbackServer
    client: AsyncAnthropic
    provider: ClaudeCodeProvider

    def direct(self, name: str) -> AnthropicModel:
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=self.client))

    def through(self, name: str) -> ClaudeCodeModel:
        return ClaudeCodeModel(name, provider=self.provider)


def comparable(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Recorded bodies without what the design allows to differ; nothing else is taken away."""
    ids: dict[str, str] = {}
    return [_renamed(_allowed(body), ids) for body in bodies]


def comparable_messages(messages: list[ModelMessage]) -> Any:
    """Messages of a run without times, ids and the provider's name."""
    return _renamed(_without(ModelMessagesTypeAdapter.dump_python(messages, mode="json"), _OF_THE_RUN), {})


def _allowed(body: dict[str, Any]) -> dict[str, Any]:
    # `stream`: the CLI always streams; the transport puts the answer together where the caller did not ask for it.
    body = _without(body, frozenset({"cache_control"}))
    body = {name: value for name, value in body.items() if name not in {"metadata", "stream"}}
    system = body.pop("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    body["system"] = [block for block in blocks if not block["text"].startswith(_CLI_SYSTEM)]
    # Values that only spell out the API's default, where the caller set none.
    if body.get("tools") == []:
        del body["tools"]
    if body.get("temperature") == 1:
        del body["temperature"]
    return body


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _without(item, names) for name, item in fields.items() if name not in names}
    return [_without(item, names) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _renamed(value: Any, ids: dict[str, str]) -> Any:
    text = json.dumps(value, sort_keys=True)
    return json.loads(_IDS.sub(lambda match: ids.setdefault(match[0], f"id-{len(ids)}"), text))
