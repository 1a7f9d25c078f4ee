"""Scenarios for the comparison of `AnthropicModel` and `ClaudeCodeModel`, by theme."""

from .outputs import outputs
from .scenario import Scenario

SCENARIOS: list[Scenario] = [*outputs]
