import asyncio

import httpx2
from anthropic import AsyncAnthropic

from cc_messages import ClaudeCodeTransport


async def main() -> None:
    async with httpx2.AsyncClient(transport=ClaudeCodeTransport()) as http:
        client = AsyncAnthropic(api_key="the login is Claude Code's", http_client=http)
        async with client.messages.stream(
            model="claude-sonnet-5", max_tokens=99, messages=[{"role": "user", "content": "Hello!"}]
        ) as stream:
            async for text in stream.text_stream:
                print(text, end="", flush=True)


asyncio.run(main())
