"""`POST /v1/messages/count_tokens`: asked of the API itself, with the API key that the processes have.

Claude Code cannot be made to count a request. It asks the API to count when it is asked for its context usage, but
only its messages, without system prompt and tools, and those each as if they were messages; the sum is not what a
request has. An estimate would be a wrong number that looks like a right one. So where there is a key the API is asked,
which costs nothing; with an OAuth login, which is Claude Code's to use, and with other providers, nobody is.

What is counted is what the caller sent. The two short system blocks that Claude Code adds to a request come on top.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from cc_session import Login, login_of
from cc_types import APIError, JsonValue

__all__ = ["APIAccess"]

_API = "https://api.anthropic.com"
_VERSION = "2023-06-01"

# Counting takes the API some hundred milliseconds; a caller may set another timeout.
_TIMEOUT_SECONDS = 60.0

_PASSED_ON = ("content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry")


@dataclass(frozen=True, slots=True, repr=False)
class APIAccess:
    """Where the API is, and the key to it."""

    url: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, env: Mapping[str, str]) -> "APIAccess":
        """The access that a CLI has which is started with `env` on top of this process's environment.

        Raises:
            APIError: It has no API key, or asks another provider (status 404).
        """
        known = {**os.environ, **env}
        key, bearer = known.get("ANTHROPIC_API_KEY"), known.get("ANTHROPIC_AUTH_TOKEN")
        if login_of(env) not in (Login.API_KEY, Login.GATEWAY):
            raise APIError(
                status=404,
                message="Claude Code cannot count the tokens of a request; the API itself is asked where there is an "
                "API key: set ANTHROPIC_API_KEY",
            )
        credentials = {"x-api-key": key} if key else {"authorization": f"Bearer {bearer}"}
        return cls(known.get("ANTHROPIC_BASE_URL") or _API, credentials)

    async def count(self, fields: Mapping[str, JsonValue], request: httpx2.Request) -> httpx2.Response:
        """Have the API count the tokens of a body; what it answers, an error too, is returned as it is.

        Raises:
            httpx2.TransportError: It cannot be reached.
        """
        headers = {"anthropic-version": _VERSION, "content-type": "application/json", **self.headers}
        if betas := request.headers.get("anthropic-beta"):
            headers["anthropic-beta"] = betas
        given = request.extensions.get("timeout", {})
        timeout = httpx2.Timeout(**given) if given else httpx2.Timeout(_TIMEOUT_SECONDS)
        async with httpx2.AsyncClient(timeout=timeout) as client:
            url = f"{self.url.rstrip('/')}/v1/messages/count_tokens"
            content = json.dumps(fields).encode()
            response = await client.post(url, params=request.url.params, content=content, headers=headers)
        told = {name: value for name, value in response.headers.items() if name in _PASSED_ON}
        return httpx2.Response(response.status_code, content=response.content, headers=told)
