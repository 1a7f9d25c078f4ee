"""LiteLLM as a library: requests in OpenAI's form, mapped to the Messages API."""

from functools import partial
from typing import Any

import litellm
from abilities import MODEL, TOKEN, URL
from chat_completions import report


def complete(messages: list[Any], token: str = TOKEN, **options: Any) -> Any:
    return litellm.completion(f"anthropic/{MODEL}", messages, api_base=URL, api_key=token, max_tokens=100, **options)


report(complete, "litellm", retried=partial(complete, num_retries=2))
