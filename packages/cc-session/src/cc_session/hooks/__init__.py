"""Hooks: functions and programs of the caller that the CLI waits for.

Includes matchers, deadlines and the answer format. Independent of processes, sessions and pools.
"""
