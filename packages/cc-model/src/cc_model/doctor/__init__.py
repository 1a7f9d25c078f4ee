"""Checks whether Claude Code can answer on this machine, with advice if not: `cc-model doctor`."""

from .checks import Check, Plan, examine

__all__ = ["Check", "Plan", "examine"]
