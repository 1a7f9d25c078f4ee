"""Sessions: a process, a conversation, one turn at a time.

A session adds turns, history and cost to a process, and hooks, a policy and MCP servers. Pools are unknown here.
"""
