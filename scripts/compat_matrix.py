"""Print a table about the behaviour of five claude-agent-sdk versions, from the oldest that runs to the newest.

    python scripts/compat_matrix.py [VERSION ...]

Each version gets a separate environment from the source distribution, which has no CLI; a wheel is 157 MB. Needs `uv`
and an index. The table in cc-compat's README is the output. The SDK is real, only the transport is scripted: it answers
the handshake, and the prompt with an assistant message, a message with an unknown type, and a result.
"""

import argparse
import asyncio
import importlib.metadata
import inspect
import json
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from logging.handlers import QueueHandler
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias

from commands import finish, run
from workspace import ROOT, find_uv, markdown_table

sys.path.append(str(ROOT / "packages" / "cc-compat" / "tests"))

Frame: TypeAlias = dict[str, Any]

PACKAGES = ("cc-types", "cc-convert", "cc-compat")
# The oldest, the last published with the defect, the first without it, the first in the next series, the newest.
VERSIONS = ["0.0.23", "0.1.37", "0.1.44", "0.2.82", "newest"]

ASSISTANT: Frame = {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "Sunny."}]}}
UNKNOWN: Frame = {"type": "weather_event", "sky": "blue"}
MALFORMED: Frame = {"type": "assistant", "message": {}}
RESULT: Frame = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1, "duration_api_ms": 1, "num_turns": 1,
    "session_id": "s1", "result": "Sunny.", "total_cost_usd": 0.25, "usage": {"input_tokens": 3, "output_tokens": 4},
}  # fmt: skip
CONCURRENT = 200
SECONDS = 60


async def _prompt() -> AsyncIterator[Frame]:
    # Not a string, which old versions would pass on the CLI's command line.
    yield {"type": "user", "message": {"role": "user", "content": "What is the weather?"}}


async def outcome(*frames: Frame, use_client: bool = False) -> str:
    """Return the result or the error that a caller receives from `query()` or a client."""
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, query

    from cc_convert import convert_sdk_messages_to_cli_response
    from scripted_transport import ScriptedTransport

    transport: Any = ScriptedTransport(*frames)
    messages: list[Any] = []
    if use_client and "transport" not in inspect.signature(ClaudeSDKClient).parameters:
        return "no way in"
    try:
        async with asyncio.timeout(SECONDS):
            if use_client:
                async with ClaudeSDKClient(ClaudeAgentOptions(), transport=transport) as client:
                    await client.query("What is the weather?")
                    messages += [message async for message in client.receive_response()]
            else:
                messages += [message async for message in query(prompt=_prompt(), transport=transport)]
    except Exception as error:
        return type(error).__name__
    return f"{convert_sdk_messages_to_cli_response(messages).result}{' and None' if None in messages else ''}"


async def check_installed() -> dict[str, object]:
    """Return the row for the SDK in this environment: first as installed, then with the patch."""
    frames = (ASSISTANT, UNKNOWN, RESULT)
    unpatched = await outcome(*frames)

    import cc_compat

    records: SimpleQueue[object] = SimpleQueue()
    logging.getLogger("cc_compat").addHandler(QueueHandler(records))
    status, patched = cc_compat.status(), await outcome(*frames)
    row: dict[str, object] = {
        "SDK": importlib.metadata.version("claude-agent-sdk"),
        "mcp": importlib.metadata.version("mcp"),
        "unknown type, as installed": unpatched,
        "shield": "applied" if status.applied else f"not applied: {status.reason}",
        "places": len(status.patched),
        "query()": patched,
        "client": await outcome(*frames, use_client=True),
        "malformed message": await outcome(MALFORMED, RESULT),
    }
    warnings = records.qsize()
    many = await asyncio.gather(*(outcome(*frames) for _ in range(CONCURRENT)))
    return {**row, "200 at once": f"{many.count(patched)} results, {records.qsize() - warnings} warnings"}


async def check(version: str) -> dict[str, Any]:
    sdk = "claude-agent-sdk" if version == "newest" else f"claude-agent-sdk=={version}"
    isolated = [*find_uv(), "run", "--quiet", "--isolated", "--no-project", "--no-binary-package=claude-agent-sdk"]
    packages = [word for name in PACKAGES for word in (f"--with={ROOT}/packages/{name}", f"--refresh-package={name}")]
    command = [*isolated, f"--python={sys.executable}", f"--with={sdk}", *packages, "python", __file__, "--installed"]
    # Outside the repository, where the pins would apply.
    return json.loads((await run(command, Path(tempfile.gettempdir()))).splitlines()[-1])


async def work(versions: list[str]) -> list[str]:
    rows = [await check(version) for version in versions]
    print(*markdown_table(rows[0], *(row.values() for row in rows)), sep="\n")
    return []


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=VERSIONS, help="claude-agent-sdk versions")
    parser.add_argument("--installed", action="store_true", help="print the row for this environment as JSON")
    arguments = parser.parse_args()
    if arguments.installed:
        print(json.dumps(asyncio.run(check_installed())))
        return 0
    return finish(work(arguments.versions))


if __name__ == "__main__":
    sys.exit(main())
