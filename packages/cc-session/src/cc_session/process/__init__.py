"""The CLI process: its options and login, its start, pipes, watchdog and end.

Includes control requests and frames. Independent of turns, pools, hooks and policies.
"""
