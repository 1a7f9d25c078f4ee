"""An MCP server over stdio, with the standard library alone, whose tool `order` asks the user. Run by tests.

The tool's result is the answer as JSON. With `ADDRESS` set, it asks to open that address, and otherwise for a size.
"""

import json
import os
import sys


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def question() -> dict[str, object]:
    if "ADDRESS" in os.environ:
        return {"mode": "url", "message": "Log in.", "url": os.environ["ADDRESS"], "elicitationId": "1"}
    fields = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    return {"message": "Which size?", "requestedSchema": fields}


def main() -> None:
    call: object = None
    for line in sys.stdin:
        message = json.loads(line)
        match message:
            case {"result": answer}:
                send(id=call, result={"content": [{"type": "text", "text": json.dumps(answer)}]})
            case {"id": request, "method": "initialize", "params": {"protocolVersion": version}}:
                server = {"name": "form", "version": "1"}
                abilities: dict[str, object] = {"tools": {}}
                send(id=request, result={"protocolVersion": version, "capabilities": abilities, "serverInfo": server})
            case {"id": request, "method": "tools/list"}:
                send(id=request, result={"tools": [{"name": "order", "inputSchema": {"type": "object"}}]})
            case {"id": call, "method": "tools/call"}:
                send(id="question", method="elicitation/create", params=question())
            case {"id": request}:
                send(id=request, error={"code": -32601, "message": "unknown"})
            case _:
                pass


main()
