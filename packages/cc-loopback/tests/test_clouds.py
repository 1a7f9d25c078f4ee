"""The API on Vertex AI and on Amazon Bedrock."""

import json
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.lib.vertex import AnthropicVertex

from cc_loopback import LoopbackServer
from cc_loopback.api.routes import COUNT_TOKENS, MESSAGES, route_of

from .conftest import PROMPT, Serve

BODY: dict[str, Any] = {"max_tokens": 9, "messages": PROMPT}
ON_VERTEX = "/v1/projects/p/locations/us-east5/publishers/anthropic/models"
ON_BEDROCK = "/model/us.anthropic.m-v1:0"


def vertex(server: LoopbackServer) -> AnthropicVertex:
    return AnthropicVertex(
        region="us-east5", project_id="p", access_token="t", base_url=f"{server.url}/v1", max_retries=0
    )


@pytest.mark.parametrize(
    ("path", "meaning", "fields"),
    [
        (f"{ON_VERTEX}/m@20260101:rawPredict", MESSAGES, {"model": "m@20260101"}),
        (f"{ON_VERTEX}/m:streamRawPredict", MESSAGES, {"model": "m"}),
        (f"{ON_VERTEX}/count-tokens:rawPredict", COUNT_TOKENS, {}),
        (f"{ON_BEDROCK}/invoke", MESSAGES, {"model": "us.anthropic.m-v1:0", "stream": False}),
        (
            "/model/arn:aws:bedrock:x:1:application-inference-profile/ab/invoke-with-response-stream",
            MESSAGES,
            {"model": "arn:aws:bedrock:x:1:application-inference-profile/ab", "stream": True},
        ),
        (MESSAGES, MESSAGES, {}),
        (f"{ON_VERTEX}/m:predict", f"{ON_VERTEX}/m:predict", {}),
        ("/model/m/converse", "/model/m/converse", {}),
    ],
)
def test_a_path_gives_the_request_and_the_model(path: str, meaning: str, fields: dict[str, Any]) -> None:
    """LOOP-18, LOOP-19."""
    route = route_of(path)
    assert (route.path, route.fields) == (meaning, fields)


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


def test_faults_of_messages_apply_on_vertex(serve: Serve) -> None:
    """LOOP-34."""
    server = serve(lambda body: "one two three")
    with vertex(server) as client:
        server.fail_next(status=429, headers={"retry-after": "3"})
        with pytest.raises(anthropic.RateLimitError) as caught:
            client.messages.create(model="m", max_tokens=9, messages=PROMPT)
        assert caught.value.response.headers["retry-after"] == "3"
        server.fail_next(status=529, after_events=3)
        with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            with client.messages.stream(model="m", max_tokens=9, messages=PROMPT) as stream:
                stream.get_final_message()


def test_bedrock_answers_with_a_message_or_a_stream_of_frames(serve: Serve) -> None:
    """LOOP-19."""
    server = serve(lambda body: "Hello!")
    whole = httpx2.post(f"{server.url}{ON_BEDROCK}/invoke", json=BODY)
    assert (whole.json()["content"], whole.json()["model"]) == (
        [{"type": "text", "text": "Hello!"}],
        "m",
    )
    streamed = httpx2.post(f"{server.url}{ON_BEDROCK}/invoke-with-response-stream", json=BODY)
    assert streamed.headers["content-type"] == "application/vnd.amazon.eventstream"
    assert int.from_bytes(streamed.content[:4]) < len(streamed.content)
    assert whole.headers["x-amzn-requestid"] != streamed.headers["x-amzn-requestid"]
    assert server.requests == [
        {**BODY, "model": "us.anthropic.m-v1:0", "stream": False},
        {**BODY, "model": "us.anthropic.m-v1:0", "stream": True},
    ]


def test_faults_of_messages_apply_on_bedrock(serve: Serve) -> None:
    """LOOP-34."""
    server = serve(lambda body: "Hello!")
    url = f"{server.url}{ON_BEDROCK}/invoke-with-response-stream"
    server.fail_next(status=529, message="Busy", headers={"x-odd": "1"})
    refused = httpx2.post(url, json=BODY)
    assert (refused.status_code, refused.json()) == (529, {"message": "Busy"})
    assert refused.headers["x-amzn-errortype"] == "ServiceUnavailableException"
    assert refused.headers["x-odd"] == "1"
    server.fail_next(status=429, after_events=1)
    broken = httpx2.post(url, json=BODY)
    assert broken.status_code == 200
    assert b"throttlingException" in broken.content
    server.fail_next(after_events=1)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.post(url, json=BODY)
    assert b"message_stop" not in broken.content
    assert httpx2.post(url, json=BODY).status_code == 200


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
