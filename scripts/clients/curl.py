"""The `curl` command: each request as a user would write it in a shell."""

import json
import subprocess
from typing import Any

import abilities
from abilities import HELLO, TOKEN

HEADERS = ["-H", "content-type: application/json", "-H", "anthropic-version: 2023-06-01"]


def curl(content: Any, token: str = TOKEN, *options: str, **fields: Any) -> str:
    command = ["curl", "-sS", *options, f"{abilities.URL}/v1/messages", *HEADERS, "-H", f"x-api-key: {token}", "-d@-"]
    body = json.dumps({**abilities.request(content), **fields})
    return subprocess.run(command, input=body, capture_output=True, text=True, check=True).stdout


def ask(content: Any, token: str = TOKEN, *options: str, **fields: Any) -> str:
    message = json.loads(curl(content, token, *options, **fields))
    if message["type"] == "error":
        raise RuntimeError(message["error"])
    return message["content"][0]["text"]


def stream() -> list[str]:
    lines = curl(HELLO, TOKEN, "-N", stream=True).splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    return [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]


def tools() -> str:
    offered = [{"name": "weather", "input_schema": abilities.WEATHER_SCHEMA}]
    content = json.loads(curl(abilities.WEATHER, tools=offered))["content"]
    [call] = [block for block in content if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": abilities.weather(**call["input"])}
    messages = [("user", abilities.WEATHER), ("assistant", content), ("user", [result])]
    return ask("", tools=offered, messages=[{"role": role, "content": content} for role, content in messages])


FORMAT = {"format": {"type": "json_schema", "schema": abilities.CITY_SCHEMA}}
version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
abilities.report(
    ask,
    versions={"curl": version},
    retried=lambda prompt: ask(prompt, TOKEN, "--retry", "2", "--retry-all-errors", "--fail"),
    stream=stream,
    tools=tools,
    structured=lambda: json.loads(ask(abilities.CITY, output_config=FORMAT)),
    images=lambda: ask(abilities.IMAGE),
)
