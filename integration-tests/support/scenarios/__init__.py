"""Scenarios for the comparison of `AnthropicModel` and `ClaudeCodeModel`, by theme."""

from .deferred import deferred
from .histories import histories
from .outputs import outputs
from .scenario import Scenario
from .streams import streams
from .tools import tools
from .toolsets import toolsets

SCENARIOS: list[Scenario] = [*outputs, *tools, *deferred, *toolsets, *streams, *histories]
