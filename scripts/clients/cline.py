"""Cline's command line, with its own tools."""

import json
from pathlib import Path

import abilities
from coding_agent import new_folder, npm_command, run

# `cline auth` takes an address for OpenAI-style providers alone, but Cline reads it from its file for Anthropic too.
SETTINGS = {
    "provider": "anthropic",
    "apiKey": abilities.TOKEN,
    "model": abilities.MODEL,
    "baseUrl": f"{abilities.URL}/v1",
}
PROVIDER = {"settings": SETTINGS, "updatedAt": "2026-01-01T00:00:00.000Z"}
PROVIDERS = {"version": 1, "lastUsedProvider": "anthropic", "providers": {"anthropic": PROVIDER}}


def ask(prompt: str) -> str:
    folder = new_folder()
    (path := Path(folder, "settings", "providers.json")).parent.mkdir()
    path.write_text(json.dumps(PROVIDERS), "utf-8")
    command = [npm_command("cline"), "--json", "--data-dir", folder, "--provider", "anthropic", prompt]
    return json.loads(run(command).splitlines()[-1])["text"]


abilities.report(
    ask,
    versions={"cline": run([npm_command("cline"), "--version"]).strip()},
    tools=lambda: ask(abilities.WEATHER),
    errors=None,
)
