"""The bridge process: an MCP server on stdin and stdout whose tools run in another process.

`python -m cc_ipc_bridge SOCKET SCHEMA` lists the tools in the schema file and relays calls over the socket. An MCP host
waits for it at each start, so it imports only the standard library, without asyncio and other heavy modules. A thread
reads, and each running call has a thread of its own. `cc_ipc` imports from here the modules that both sides need.
"""
