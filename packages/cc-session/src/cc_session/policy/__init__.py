"""Policies: rules that allow, ask about or deny tool calls, and the gate that applies them.

The gate is a hook and a permission callback. Independent of processes, sessions and pools.
"""
