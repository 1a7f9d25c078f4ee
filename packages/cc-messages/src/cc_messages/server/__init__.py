"""The HTTP server over a transport, and its command line.

Tokens, limits, pings and connections belong here. Processes are unknown here.
"""
