"""An agent's model both ways: directly on an API, and through Claude Code on the same API; and allowed differences."""

import json
import re
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from anthropic import AsyncAnthropic
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicStaleThinkingBlockWarning
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.run import AgentRunResult
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_jsonable_python

from api_script import with_usual_usage
from cc_loopback import Call, Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import at_rest

Run = Callable[[AnthropicModel], Awaitable[object]]

# The CLI's own two short blocks before the system prompt, with a subscription's login.
_CLI_SYSTEM = ("x-anthropic-billing-header:", "You are a Claude agent, built on Anthropic's Claude Agent SDK.")
# The prefix for some model names on Bedrock.
_ON_BEDROCK = "us.anthropic."
_OF_THE_WIRE = frozenset({"anthropic_beta", "anthropic_version", "metadata", "stream"})
# Ids and signatures are new in each run; equal ones must stay equal.
_IDS = re.compile(r"\b(?:toolu|srvtoolu|msg|req|pyd_ai|sig)_\w+")
# The graph's metadata for a run, and the answer's provider and origin.
_OF_THE_RUN = frozenset(
    {
        "timestamp",
        "duration",
        "run_id",
        "conversation_id",
        "model_id",
        "provider_name",
        "provider_url",
        "canonical_system",
        "claude_code",
    }
)


@dataclass(frozen=True)
class Seen:
    """A run's observed data, comparable with another run's."""

    outcome: Any
    bodies: list[dict[str, Any]]
    warnings: list[str]
    calls: list[Call] = field(default_factory=list[Call], compare=False)
    """The requests for messages, as received."""

    @property
    def error(self) -> str | None:
        """Return the class of the error that ended the run, if any."""
        match self.outcome:
            case {"error": str(error)}:
                return error
            case _:
                return None


@dataclass
class BothWays:
    """Two models with the same name, and the API that records their requests."""

    api: LoopbackServer
    client: AsyncAnthropic
    provider: ClaudeCodeProvider
    login: Login = "api-key"

    def direct(self, name: str, settings: ModelSettings | None = None) -> AnthropicModel:
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=self.client), settings=settings)

    def through(self, name: str, settings: ModelSettings | None = None) -> ClaudeCodeModel:
        return ClaudeCodeModel(name, provider=self.provider, settings=settings)

    async def watch(self, run: Run, model: AnthropicModel, respond: Callable[[dict[str, Any]], Any] | None) -> Seen:
        """Run with an API that answers by `respond`; an error is also an outcome.

        The bodies include all requests until the processes are at rest, also those without a waiting caller.
        """
        usual = self.api.respond
        self.api.respond = with_usual_usage(respond or usual)
        self.api.requests.clear()
        self.api.calls.clear()
        try:
            with warnings.catch_warnings(record=True) as noted:
                for category in (UserWarning, AnthropicStaleThinkingBlockWarning):
                    warnings.simplefilter("always", category)
                outcome = await _outcome(run, model)
            await at_rest(self.provider)
            bodies = comparable([*self.api.requests], self.login)
            calls = [call for call in self.api.calls if call.body and "max_tokens" in call.body]
        finally:
            self.api.respond = usual
        return Seen(outcome, bodies, [f"{note.category.__name__}: {note.message}" for note in noted], calls)


def comparable(bodies: list[dict[str, Any]], login: Login = "api-key") -> list[dict[str, Any]]:
    """Return recorded bodies without the differences that the design allows; nothing else is removed."""
    ids: dict[str, str] = {}
    return [_renamed(_of_login(_allowed(body), login), ids) for body in bodies]


def plain_ids(value: object) -> Any:
    """Return a JSON value with numbered ids."""
    return _renamed(value, {})


def comparable_messages(messages: list[ModelMessage]) -> Any:
    """Return a run's messages without times, ids and provider name."""
    return _renamed(_without(ModelMessagesTypeAdapter.dump_python(messages, mode="json"), _OF_THE_RUN), {})


def comparable_value(value: object) -> Any:
    """Return results, events, errors and other values as JSON, without times, ids and provider name."""
    return _renamed(_without(_plain(value), _OF_THE_RUN), {})


async def _outcome(run: Run, model: AnthropicModel) -> Any:
    try:
        return comparable_value(await run(model))
    except Exception as error:
        return comparable_value(error)


def _plain(value: object) -> Any:
    match value:
        case AgentRunResult():
            result = cast("AgentRunResult[object]", value)
            return {
                "output": _plain(result.output),
                "messages": ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json"),
                "usage": _plain(result.usage),
            }
        case UnexpectedModelBehavior(body=str(body)) if body.startswith(("[", "{")):
            return {"error": type(value).__name__, "says": value.message, "body": json.loads(body)}
        case BaseException():
            return {"error": type(value).__name__, "says": str(value)}
        case list() | tuple():
            return [_plain(item) for item in cast("list[object]", value)]
        case dict():
            return {str(name): _plain(item) for name, item in cast("dict[object, object]", value).items()}
        case _:
            return to_jsonable_python(value, bytes_mode="base64", serialize_unknown=True)


def _allowed(body: dict[str, Any]) -> dict[str, Any]:
    # `stream`: the CLI always streams; the transport collects the answer for callers that do not stream.
    # `anthropic_version` and `anthropic_beta`: the cloud providers' form of the headers with these names.
    body = {name: value for name, value in body.items() if name not in _OF_THE_WIRE}
    system = body.pop("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    body["system"] = [block for block in blocks if not block["text"].startswith(_CLI_SYSTEM)]
    # The CLI writes the empty default explicitly.
    if body.get("tools") == []:
        del body["tools"]
    return body


def _of_login(body: dict[str, Any], login: Login) -> dict[str, Any]:
    if login == "oauth" and body["system"]:
        # The CLI sends the prompt as a single block, with a breakpoint.
        text = "\n\n".join(block["text"] for block in body["system"])
        body["system"] = [{"type": "text", "text": text}]
    if login == "bedrock":
        # The model's name on Bedrock, and the API's default, which the CLI writes explicitly for some models.
        body["model"] = body["model"].removeprefix(_ON_BEDROCK)
        body = {name: value for name, value in body.items() if (name, value) != ("temperature", 1)}
    return body


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        remaining = {name: _without(item, names) for name, item in fields.items() if name not in names}
        return None if fields and not remaining else remaining  # no details remain
    return [_without(item, names) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _renamed(value: Any, ids: dict[str, str]) -> Any:
    text = json.dumps(value, sort_keys=True)
    return json.loads(_IDS.sub(lambda match: ids.setdefault(match[0], f"id-{len(ids)}"), text))
