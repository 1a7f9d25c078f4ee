"""Answer recorded requests in a new interpreter: JSON on standard input, JSON on standard output.

    python answer_recorded.py < requests.json > responses.json

The input has the CLI's environment and requests, each with model name, messages, settings and
parameters, all serialized; the output has the responses.
"""

import asyncio
import json
import sys
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import ModelRequestParameters

from cc_model import ClaudeCodeModel, ClaudeCodeProvider

PARAMETERS = TypeAdapter(ModelRequestParameters)


async def main() -> None:
    work: dict[str, Any] = json.load(sys.stdin)
    responses: list[Any] = []
    async with ClaudeCodeProvider(env=work["env"], pool=1, max_retries=0) as provider:
        for request in work["requests"]:
            response = await ClaudeCodeModel(request["model"], provider=provider).request(
                ModelMessagesTypeAdapter.validate_python(request["messages"]),
                request["settings"],
                PARAMETERS.validate_python(request["parameters"]),
            )
            responses += ModelMessagesTypeAdapter.dump_python([response], mode="json")
            # No state from the previous request may remain.
            await provider.aclose()
    json.dump(responses, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
