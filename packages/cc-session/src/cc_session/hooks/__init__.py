"""Hooks: functions and programs of the caller that the CLI waits for.

Matchers, deadlines and the form of the answers belong here. Processes, sessions and pools are unknown here.
"""
