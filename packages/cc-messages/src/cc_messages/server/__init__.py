"""The HTTP server over a transport, and its command line.

Clients with their tokens, limits and budgets, metrics, pings and connections. Does not know processes.
"""

from .app import create_app

__all__ = ["create_app"]
