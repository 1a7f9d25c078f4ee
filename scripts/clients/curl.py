"""The `curl` command: each request as a user would write it in a shell."""

import json
import subprocess
from typing import Any

from abilities import (
    CITY,
    CITY_SCHEMA,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG_BASE64,
    REFUSE,
    TOKEN,
    URL,
    WEATHER,
    WEATHER_SCHEMA,
    WRONG_TOKEN,
    report,
    say,
    weather,
)


def curl(body: dict[str, Any], token: str = TOKEN, *options: str) -> str:
    """Return the body of a response."""
    headers = [
        "-H",
        f"x-api-key: {token}",
        "-H",
        "content-type: application/json",
        "-H",
        "anthropic-version: 2023-06-01",
    ]
    command = ["curl", "-sS", *options, f"{URL}/v1/messages", *headers, "--data-binary", "@-"]
    body = {"model": MODEL, "max_tokens": 100, **body}
    return subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, check=True).stdout


def send(content: Any, token: str = TOKEN, *options: str, **fields: Any) -> dict[str, Any]:
    """Return the message, or the error, in a response."""
    return json.loads(curl({"messages": [{"role": "user", "content": content}], **fields}, token, *options))


def ask(content: Any, *options: str) -> str:
    """Return the text of an answer."""
    return send(content, TOKEN, *options)["content"][0]["text"]


def stream() -> list[str]:
    """Return the pieces of an answer."""
    lines = curl({"messages": [{"role": "user", "content": HELLO}], "stream": True}, TOKEN, "-N").splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    return [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]


def tools() -> str:
    """Return the answer after a call of a tool."""
    offered = [{"name": "weather", "input_schema": WEATHER_SCHEMA}]
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": WEATHER}], "tools": offered}
    content = json.loads(curl(asked))["content"]
    [call] = [block for block in content if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": weather(**call["input"])}
    asked["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    return json.loads(curl(asked))["content"][0]["text"]


def structured() -> object:
    """Return an answer with a schema."""
    answer = send(CITY, output_config={"format": {"type": "json_schema", "schema": CITY_SCHEMA}})
    return json.loads(answer["content"][0]["text"])


def images() -> str:
    """Ask about an image."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    return ask([{"type": "image", "source": source}, {"type": "text", "text": LOOK}])


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE)
    refused = json.dumps(send(HELLO)["error"])
    stranger = json.dumps(send(HELLO, WRONG_TOKEN)["error"])
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO, "--retry", "2", "--retry-all-errors", "--fail")]


version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
say("versions", value={"curl": version})
report(text=lambda: ask(HELLO), stream=stream, tools=tools, structured=structured, images=images, errors=errors)
