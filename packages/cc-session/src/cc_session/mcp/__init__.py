"""MCP servers of a session: definitions, names, state in a running CLI, and tools in this process.

Only `sdk_servers` uses internals of the SDK's servers. Independent of turns and pools.
"""
