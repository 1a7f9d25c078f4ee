"""The HTTP server over a transport, and its command line.

Clients with their tokens, limits and budgets, metrics, pings and connections. This folder does not know processes.
"""
