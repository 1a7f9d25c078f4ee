"""Token count of a request, `POST /v1/messages/count_tokens`, by the API itself.

Claude Code has no way to count a request: for its context usage it lets the API count its messages alone, each as a
separate message. An estimate would be a wrong number that looks right. So with a key the request goes to the API
itself, which is free; with an OAuth login, which only Claude Code may use, and with other providers, there is no count.
The caller's body is counted, without the two short system blocks that Claude Code adds to a request.
"""

import json
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from cc_session.internals import Login, login_of
from cc_types import APIError, JsonValue

from .response import invalid

_API = "https://api.anthropic.com"
_VERSION = "2023-06-01"

# Counting takes the API some hundred milliseconds; a caller can set another timeout.
_TIMEOUT_SECONDS = 60.0

_PASSED_ON = (
    "anthropic-organization-id", "content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry",
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class APIAccess:
    """The API address and key."""

    url: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, env: Mapping[str, str]) -> "APIAccess":
        """Return the access for a CLI started with `env` on top of `os.environ`."""
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
        # A user and a password in the address would be in the client log.
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
