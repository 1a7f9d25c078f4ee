"""MCP servers of a session: definitions, names, state in a running CLI, and tools in this process.

Independent of turns and pools.
"""
