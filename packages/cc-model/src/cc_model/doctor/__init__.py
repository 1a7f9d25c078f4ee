"""Checks whether Claude Code can answer on this machine, with advice if not: `cc-model doctor`."""

from .checks import Check, Plan, examine
from .live import LiveCheck, LivePlan

__all__ = ["Check", "LiveCheck", "LivePlan", "Plan", "examine"]
