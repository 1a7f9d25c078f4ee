"""The Anthropic Messages API over HTTP, answered by the Claude Code CLI, for clients in any language.

`create_app()` is an ASGI application over cc-messages' transport, `cc-server` its command. Clients with their tokens,
limits and budgets, metrics, pings and connections. Does not know processes.
"""

from .app import create_app

__all__ = ["create_app"]
