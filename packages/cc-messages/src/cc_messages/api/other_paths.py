"""The API's other paths: `/v1/models`, and `POST /v1/messages/count_tokens`.

A model list has the models that Claude Code lists, as the API would list them: a few by an alias, each with the id;
clients can request both. Claude Code has no dates and limits, so those fields are absent: the official client returns
None for them.

Claude Code has no way to count a request: for its context usage it lets the API count its messages alone, each as a
separate message. An estimate would be a wrong number that looks right. So with a key the request goes to the API
itself, which is free; with an OAuth login, which only Claude Code may use, and with other providers, there is no count.
The caller's body is counted, without the two short system blocks that Claude Code adds to a request.
"""

import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import httpx2

from cc_session.internals import Login, login_of
from cc_types import APIError, JsonValue

from .response import invalid

Model = dict[str, JsonValue]

# A client's base URL can have a path of its own, as a gateway's has.
_API_PATH = re.compile(r"/.*(/v1/(?:messages(?:/count_tokens)?|models(?:/.*)?|limits|usage))")

_DEFAULT_LIMIT = "20"
_MAX_LIMIT = 1000

_API = "https://api.anthropic.com"
_VERSION = "2023-06-01"

# Counting takes the API some hundred milliseconds; a caller can set another timeout.
_TIMEOUT_SECONDS = 60.0

_PASSED_ON = (
    "anthropic-organization-id", "content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry",
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class APIAccess:
    """The API's address and key."""

    url: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, env: Mapping[str, str]) -> "APIAccess":
        """Return the access for a CLI started with `env` on top of this process's environment."""
        variables = {**os.environ, **env}
        key, bearer = variables.get("ANTHROPIC_API_KEY"), variables.get("ANTHROPIC_AUTH_TOKEN")
        if login_of(env) not in (Login.API_KEY, Login.GATEWAY):
            raise APIError(
                status=404,
                message="Claude Code cannot count a request's tokens; the API itself is asked where there is an "
                "API key: set ANTHROPIC_API_KEY",
            )
        credentials = {"x-api-key": key} if key else {"authorization": f"Bearer {bearer}"}
        return cls(variables.get("ANTHROPIC_BASE_URL") or _API, credentials)

    async def count(self, fields: Mapping[str, JsonValue], request: httpx2.Request) -> httpx2.Response:
        """Let the API count a body's tokens; return its answer, also an error, unchanged."""
        # A user and a password in the address would be in the client's log.
        url = httpx2.URL(f"{self.url.rstrip('/')}/v1/messages/count_tokens")
        # As the CLI sends it: beside a key, and not beside a token.
        user = b64encode(f"{url.username}:{url.password}".encode()).decode()
        basic = {"authorization": f"Basic {user}"} if url.userinfo else {}
        version = request.headers.get("anthropic-version", _VERSION)
        headers = {"anthropic-version": version, "content-type": "application/json", **basic, **self.headers}
        if betas := request.headers.get("anthropic-beta"):
            headers["anthropic-beta"] = betas
        timeout = httpx2.Timeout(**(request.extensions.get("timeout") or {"timeout": _TIMEOUT_SECONDS}))
        address, content = url.copy_with(userinfo=b""), json.dumps(fields).encode()
        try:
            async with httpx2.AsyncClient(timeout=timeout) as client:
                response = await client.post(address, params=request.url.params, content=content, headers=headers)
        except (httpx2.LocalProtocolError, UnicodeEncodeError):  # the text may have the key
            raise invalid("The key or the header anthropic-beta has a character that cannot be sent") from None
        passed_on = [(name, value) for name, value in response.headers.raw if name.lower().decode() in _PASSED_ON]
        return httpx2.Response(response.status_code, content=response.content, headers=passed_on)


def api_path(path: str) -> str:
    """Return the path in the API for the path of an address below any base URL; other paths unchanged."""
    match = _API_PATH.fullmatch(path)
    return match[1] if match else path


def catalogue(listed: JsonValue) -> list[Model]:
    """Return the models in a CLI's `initialize` answer: first the aliases, then their ids."""
    aliases: dict[str, Model] = {}
    ids: dict[str, Model] = {}
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or not isinstance(alias := entry.get("value"), str):
            continue
        name, stands_for = str(entry.get("displayName") or alias), entry.get("resolvedModel")
        aliases[alias] = _model(alias, name)
        if isinstance(stands_for, str):
            # An alias such as `default` is not a name for the model itself.
            ids.setdefault(stands_for, _model(stands_for, stands_for))
    return [*aliases.values(), *(model for name, model in ids.items() if name not in aliases)]


def resolve(listed: JsonValue, name: str) -> str:
    """Return the model id for an id or an alias."""
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and entry.get("value") == name:
            return str(entry.get("resolvedModel") or name)
    return name


def find(models: Sequence[Model], name: str) -> Model:
    """Return the model with an id or an alias."""
    for model in models:
        if model["id"] == name:
            return model
    raise APIError(status=404, message=f"model: {name}")


def page(models: Sequence[Model], query: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the page that `limit`, `after_id` and `before_id` select."""
    text = query.get("limit", _DEFAULT_LIMIT)
    if not text.isdecimal() or not 1 <= (limit := int(text)) <= _MAX_LIMIT:
        raise invalid(f"limit: must be a number from 1 to {_MAX_LIMIT}")
    ids = [model["id"] for model in models]
    for field in {"after_id", "before_id"} & query.keys():
        if query[field] not in ids:
            raise invalid(f"{field}: there is no model {query[field]!r}")
    if "before_id" in query:
        rest = models[: ids.index(query["before_id"])]
        chosen = rest[-limit:]
    else:
        rest = models[ids.index(query["after_id"]) + 1 :] if "after_id" in query else models
        chosen = rest[:limit]
    return {
        "data": [*chosen],
        "has_more": len(rest) > len(chosen),
        "first_id": chosen[0]["id"] if chosen else None,
        "last_id": chosen[-1]["id"] if chosen else None,
    }


def _model(identity: str, name: str) -> Model:
    return {"type": "model", "id": identity, "display_name": name, "lifecycle": "active"}
