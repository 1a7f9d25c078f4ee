"""MCP servers of a session: definitions, state in a running CLI, and tools of this process.

Only `sdk_servers` uses internals of the SDK's servers. Independent of turns and pools.
"""
