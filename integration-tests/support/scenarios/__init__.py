"""Scenarios that compare `AnthropicModel` and `ClaudeCodeModel`, by theme."""

from .content import content
from .deferred import deferred
from .histories import histories
from .native import native
from .outputs import outputs
from .responses import responses
from .scenario import Scenario
from .settings import settings
from .streams import streams
from .thinking import thinking
from .tools import tools
from .toolsets import toolsets
from .wrappers import wrappers

_ALL = [
    *outputs,
    *tools,
    *deferred,
    *toolsets,
    *native,
    *streams,
    *histories,
    *thinking,
    *content,
    *settings,
    *responses,
    *wrappers,
]

# Sorted by model, so that few processes have to be started.
SCENARIOS: list[Scenario] = sorted(_ALL, key=lambda scenario: scenario.model_name)
