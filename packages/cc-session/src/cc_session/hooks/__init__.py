"""Hooks: the caller's functions and programs for which the CLI waits.

Includes matchers, hook timeouts and the answer format. Independent of processes, sessions and pools.
"""
