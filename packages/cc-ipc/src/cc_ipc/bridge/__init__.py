"""The bridge process: an MCP server on stdin and stdout that has its tools run by another process.

`python -m cc_ipc.bridge SOCKET SCHEMA` lists the tools of the schema file and relays their calls over the socket. An
MCP host waits for it at each start, so it loads the standard library alone, and of that neither asyncio nor anything
as heavy: one thread reads, and each call that runs has one more.
"""
