"""OpenCode, with its own tools."""

from abilities import MODEL, TOKEN, URL
from coding_agent import report_opencode

MODELS = {MODEL: {"name": "Sonnet", "attachment": True, "tool_call": True}}
report_opencode("anthropic", {"options": {"baseURL": f"{URL}/v1", "apiKey": TOKEN}, "models": MODELS})
