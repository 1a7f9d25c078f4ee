"""OpenCode with a provider of OpenAI's form, and its own tools."""

from abilities import MODEL, TOKEN, URL
from coding_agent import report_opencode

OPTIONS = {"baseURL": f"{URL}/v1", "apiKey": TOKEN}
MODELS = {MODEL: {"name": "Sonnet", "tool_call": True}}
report_opencode("claude-code", {"npm": "@ai-sdk/openai-compatible", "options": OPTIONS, "models": MODELS})
