"""The CLI process: its options and login, its start, pipes, watchdog and end.

Control requests and frames belong here. Turns, pools, hooks and policies do not: this room must work without them.
"""
