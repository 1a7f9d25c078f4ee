"""An MCP server over stdio, with the standard library alone, so that it starts fast. Run by tests.

The tool `touch` makes a file, `pid` returns the process id, and `environment` fails with the variables. With `UNTIL`
set, it makes `$UNTIL.waits`, and answers nothing before that file exists. With `NAME` set, that is the name of the only
tool, which returns `SECRET`. With `STUBBORN` set, neither the end of stdin nor a signal ends it.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path


def main() -> None:
    if until := os.environ.get("UNTIL"):
        Path(f"{until}.waits").touch()
        while not Path(until).exists():
            time.sleep(0.01)
    if "STUBBORN" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}), flush=True)
    if "STUBBORN" in os.environ:
        time.sleep(600)


def answer(message: dict[str, object]) -> Mapping[str, object]:
    params = message.get("params")
    match message["method"], params:
        case "initialize", {"protocolVersion": str(version)}:
            server = {"name": "test", "version": "1"}
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
        case "tools/list", _:
            names = [os.environ["NAME"]] if "NAME" in os.environ else ["touch", "pid", "environment"]
            return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}}
        case "tools/call", {"name": "touch", "arguments": {"file": str(file)}}:
            Path(file).touch()
            return text("touched")
        case "tools/call", {"name": "pid"}:
            return text(str(os.getpid()))
        case "tools/call", {"name": "environment"}:
            failure = text("".join(f"{name}={value};" for name, value in os.environ.items()))
            return {"result": {**failure["result"], "isError": True}}
        case "tools/call", _:
            return text(os.environ.get("SECRET", "called"))
        case _:
            return {"error": {"code": -32601, "message": "unknown"}}


def text(words: str) -> dict[str, dict[str, object]]:
    return {"result": {"content": [{"type": "text", "text": words}]}}


main()
