"""Request options outside the body: tools of the CLI's own loop, and callbacks of the caller.

Knows callers, their event loops and MCP tools; does not know processes, HTTP or the Messages API.
"""
