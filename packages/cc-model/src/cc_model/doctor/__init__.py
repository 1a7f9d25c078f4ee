"""`cc-model doctor`: whether Claude Code can answer on this machine, and what to do if not."""

from .checks import Check, Plan, examine

__all__ = ["Check", "Plan", "examine"]
