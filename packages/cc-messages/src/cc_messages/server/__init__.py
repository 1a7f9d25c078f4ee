"""The HTTP server over a transport, and its command line.

Tokens, limits, pings and connections. This folder does not know processes.
"""
