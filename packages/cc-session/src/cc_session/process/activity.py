"""Detection of a silent CLI that has work to do.

Silence is normal while a tool runs, and while the CLI waits for our answer: to a hook, to a permission request, or from
an MCP server in this process. All these messages pass through the transport, which records them.
"""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, cast

__all__ = ["Activity", "is_response"]

_RESPONSE = '{"type": "control_response"'

# The id comes before the answer itself, which can take megabytes.
_RESPONSE_ID = re.compile(r'"request_id": "([^"\\]+)"')
_HEAD = 300


class Activity:
    """Tools and requests the CLI waits for, and its last activity."""

    def __init__(self) -> None:
        self._alive_at = time.monotonic()
        self._tools: set[str] = set()
        self._requests: set[str] = set()

    def silent_for(self) -> float:
        """Return the seconds of silence; 0 while the CLI waits for a tool or an answer."""
        if self._tools or self._requests:
            return 0.0
        return time.monotonic() - self._alive_at

    def received(self, message: Mapping[str, Any]) -> None:
        """Record a message from the CLI."""
        self._alive_at = time.monotonic()
        match message:
            case {"type": "assistant", "message": {"content": [*blocks]}}:
                self._tools.update(_ids(blocks, "tool_use", "id"))
            case {"type": "user", "message": {"content": [*blocks]}}:
                self._tools.difference_update(_ids(blocks, "tool_result", "tool_use_id"))
            case {"type": "control_request", "request_id": str(request_id)}:
                self._requests.add(request_id)
            case {"type": "control_cancel_request", "request_id": str(request_id)}:
                self._requests.discard(request_id)
            case {"type": "result"}:
                self._tools.clear()
            case _:
                pass

    def sent(self, line: str) -> None:
        """Record a line that was written to the CLI, which now has work to do."""
        self._alive_at = time.monotonic()
        if is_response(line):
            self._requests.discard(_response_id(line))


def is_response(line: str) -> bool:
    """Return True if a line written to the CLI answers one of its control requests."""
    return line.startswith(_RESPONSE)


def _ids(blocks: list[object], kind: str, name: str) -> set[str]:
    objects = [cast("Mapping[str, object]", block) for block in blocks if isinstance(block, Mapping)]
    return {str(block.get(name)) for block in objects if block.get("type") == kind}


def _response_id(line: str) -> str:
    if (found := _RESPONSE_ID.search(line, 0, _HEAD)) is not None:
        return found[1]
    return str(json.loads(line).get("response", {}).get("request_id"))
