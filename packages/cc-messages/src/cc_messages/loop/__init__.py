"""The CLI's own loop: requests some of whose tools Claude Code calls by itself.

Here a process needs the conversation in its history, so it is written in before the answer, and forgotten after it.
Knows tools, approvals and MCP servers; does not know HTTP.
"""
