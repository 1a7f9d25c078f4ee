"""MCP servers of a session: definitions, state in a running CLI, and tools of this process.

The one module that uses internals of the SDK's servers is `sdk_servers`. Turns and pools are unknown here.
"""
