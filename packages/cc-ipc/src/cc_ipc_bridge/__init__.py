"""The bridge process: an MCP server on stdin and stdout whose tools run in another process.

`python -m cc_ipc_bridge SOCKET SCHEMA` lists the tools of the schema file and relays their calls over the socket. An
MCP host waits for it at each start, so it imports only the standard library, without asyncio and other heavy modules.
One thread reads, and each running call has one more. `cc_ipc` imports from here the modules that both sides need.
"""
