"""The API on Vertex AI and on Amazon Bedrock, as their clients ask it."""

import json
from typing import Any

import httpx2
import pytest
from anthropic.lib.vertex import AnthropicVertex

from cc_loopback import LoopbackServer

from .conftest import PROMPT, Serve

BODY: dict[str, Any] = {"max_tokens": 9, "messages": PROMPT}
ON_VERTEX = "/v1/projects/p/locations/us-east5/publishers/anthropic/models"
ON_BEDROCK = "/model/us.anthropic.m-v1:0"


def vertex(server: LoopbackServer) -> AnthropicVertex:
    return AnthropicVertex(
        region="us-east5", project_id="p", access_token="t", base_url=f"{server.url}/v1", max_retries=0
    )


def test_the_official_client_of_vertex_gets_streamed_and_whole_answers(serve: Serve) -> None:
    """LOOP-18, LOOP-42."""
    server = serve(lambda body: f"I am {body['model']}.")
    with vertex(server) as client:
        message = client.messages.create(model="m", max_tokens=9, messages=PROMPT)
        assert str(getattr(message.content[0], "text", "")) == "I am m."
        with client.messages.stream(model="n", max_tokens=9, messages=PROMPT) as stream:
            assert stream.get_final_text() == "I am n."
        assert client.messages.count_tokens(model="n", messages=PROMPT).input_tokens > 0
    assert [body["model"] for body in server.requests] == ["m", "n"]
    [first, *_] = server.calls
    assert first.body is not None and "model" not in first.body


@pytest.mark.parametrize(
    ("path", "body", "complaint"),
    [
        (f"{ON_VERTEX}/m:rawPredict", {**BODY, "model": "m"}, "model: Extra inputs are not permitted"),
        (f"{ON_BEDROCK}/invoke", {**BODY, "stream": True}, "stream: Extra inputs are not permitted"),
        (f"{ON_BEDROCK}/invoke", {"messages": PROMPT}, "max_tokens: Field required"),
    ],
)
def test_a_field_of_the_path_is_refused_in_the_body(
    serve: Serve, path: str, body: dict[str, Any], complaint: str
) -> None:
    """LOOP-18, LOOP-19."""
    response = httpx2.post(f"{serve(None).url}{path}", json=body)
    assert response.status_code == 400
    assert complaint in json.dumps(response.json())


def test_bedrock_has_no_inference_profiles(serve: Serve) -> None:
    """LOOP-19."""
    response = httpx2.get(f"{serve(None).url}/inference-profiles?type=SYSTEM_DEFINED")
    assert response.json() == {"inferenceProfileSummaries": []}
