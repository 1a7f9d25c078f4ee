"""Vertex AI and Amazon Bedrock, as an endpoint sees them that shares no code with the packages."""

import json
from typing import Any

import httpx2
import pytest
from pydantic_ai import Agent

from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from cloud_endpoint import Cloud, CloudEndpoint, cloud_endpoint
from processes import at_rest

pytestmark = pytest.mark.worlds

STATUSES = (400, 403, 404, 422, 429, 500, 529)
# The pages name these: README, cc-messages' README, troubleshooting, and MSG-96.
SEVERAL_CALLS = {("bedrock", 403): 3, ("bedrock", 404): 2, ("vertex", 404): 2}
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Hello."}],
}


# Bedrock's exceptions within a stream, from its API reference.
EXCEPTIONS = {
    "internalServerException": (500, "api_error"),
    "modelStreamErrorException": (500, "api_error"),
    "modelTimeoutException": (504, "timeout_error"),
    "serviceUnavailableException": (529, "overloaded_error"),
    "throttlingException": (429, "rate_limit_error"),
    "validationException": (400, "invalid_request_error"),
}


async def asked(provider: ClaudeCodeProvider, endpoint: CloudEndpoint, *, is_streamed: bool) -> tuple[Any, int]:
    """Return the response, and the number of requests at the endpoint."""
    endpoint.paths.clear()
    request = httpx2.Request("POST", "http://claude/v1/messages", json={**REQUEST, "stream": is_streamed})
    response = await provider.transport.handle_async_request(request)
    await response.aread()
    await at_rest(provider)
    return response, len(endpoint.paths)


@pytest.mark.parametrize("cloud", ["vertex", "bedrock"])
async def test_an_outsiders_cloud_sees_one_request_for_each_error(cloud: Cloud, nothing_is_left: None) -> None:
    """MSG-96, MSG-141"""
    async with cloud_endpoint(cloud) as endpoint, ClaudeCodeProvider(env=endpoint.env(), pool=1) as provider:
        result = await Agent(ClaudeCodeModel("claude-sonnet-5", provider=provider)).run("Hello.")
        assert (result.output, len(endpoint.paths)) == ("From the cloud.", 1)
        for status in STATUSES:
            for is_streamed in (False, True):
                endpoint.status = status
                response, calls = await asked(provider, endpoint, is_streamed=is_streamed)
                assert response.status_code == status
                assert 1 <= calls <= SEVERAL_CALLS.get((cloud, status), 1), status
                identity = response.headers["request-id"]
                assert identity == response.json()["request_id"]
                assert identity in {f"id-of-{cloud}-{number + 1}" for number in range(calls)}

                endpoint.status = 200
                response, calls = await asked(provider, endpoint, is_streamed=is_streamed)
                assert (response.status_code, calls) == (200, 1)
                assert response.headers["request-id"] == endpoint.last_id
        assert provider.transport.stats().starts == 1


async def test_an_exception_in_bedrocks_stream_has_the_apis_name_and_status(nothing_is_left: None) -> None:
    """MSG-184: so clients repeat throttled requests, and no invalid ones."""
    async with cloud_endpoint("bedrock") as endpoint, ClaudeCodeProvider(env=endpoint.env(), pool=1) as provider:
        for endpoint.exception, (status, name) in EXCEPTIONS.items():
            for endpoint.exception_at, is_streamed in (0, True), (0, False), (3, True), (3, False):
                response, calls = await asked(provider, endpoint, is_streamed=is_streamed)
                has_begun = endpoint.exception_at > 0 and is_streamed
                assert (response.status_code, calls) == (200 if has_begun else status, 1), endpoint.exception
                error = json.loads(response.text.rpartition("data: ")[2])
                assert error["error"] == {"type": name, "message": "Not today"}
                assert error["request_id"] == response.headers["request-id"] == endpoint.last_id
        endpoint.exception = ""
        response, calls = await asked(provider, endpoint, is_streamed=False)
        assert (response.status_code, calls) == (200, 1)
        assert provider.transport.stats().starts == 1
