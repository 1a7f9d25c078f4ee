"""The CLI loop: requests with tools that Claude Code calls by itself.

Here the conversation must be in the process history: it is written before the answer and removed after it.
Knows tools, approvals and MCP servers; does not know HTTP.
"""
