"""OpenCode, with its own tools."""

import json

import abilities
from abilities import TOKEN, URL
from coding_agent import npm_command, run

CONFIG = {
    "autoupdate": False,
    "model": f"anthropic/{abilities.MODEL}",
    "small_model": f"anthropic/{abilities.MODEL}",
    "provider": {
        "anthropic": {
            "options": {"baseURL": f"{URL}/v1", "apiKey": TOKEN},
            "models": {abilities.MODEL: {"name": "Sonnet", "attachment": True, "tool_call": True}},
        }
    },
}
ENV = {"OPENCODE_CONFIG_CONTENT": json.dumps(CONFIG), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def ask(prompt: str) -> str:
    lines = run([npm_command("opencode"), "run", "--format", "json", prompt], **ENV).splitlines()
    return [event["part"]["text"] for event in map(json.loads, lines) if event["type"] == "text"][-1]


abilities.report(
    ask,
    versions={"opencode-ai": run([npm_command("opencode"), "--version"]).strip()},
    tools=lambda: ask(abilities.WEATHER),
    errors=None,
)
