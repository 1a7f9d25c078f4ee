"""OpenAI's client, chat completions."""

from typing import Any

from abilities import MODEL, TOKEN, URL
from chat_completions import report
from openai import OpenAI


def complete(messages: list[Any], token: str = TOKEN, **options: Any) -> Any:
    completions = OpenAI(base_url=f"{URL}/v1", api_key=token).chat.completions
    make = completions.parse if "response_format" in options else completions.create
    return make(model=MODEL, messages=messages, **options)


report(complete, "openai")
