"""OpenCode with a provider of OpenAI's form, and its own tools."""

import json

import abilities
from abilities import MODEL, TOKEN, URL
from coding_agent import npm_command, run

MODELS = {MODEL: {"name": "Sonnet", "tool_call": True}}
PROVIDER = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{URL}/v1", "apiKey": TOKEN}, "models": MODELS}
NAMES = {"model": f"claude-code/{MODEL}", "small_model": f"claude-code/{MODEL}"}
CONFIG = {"autoupdate": False, **NAMES, "provider": {"claude-code": PROVIDER}}
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
