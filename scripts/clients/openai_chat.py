"""OpenAI's client, chat completions, through LiteLLM's proxy."""

from typing import Any

from abilities import MODEL, TOKEN
from chat_completions import report
from litellm_proxy import client


def complete(messages: list[Any], token: str = TOKEN, **options: Any) -> Any:
    completions = client(token).chat.completions
    make = completions.parse if "response_format" in options else completions.create
    return make(model=MODEL, messages=messages, **options)


report(complete, "litellm", "openai")
