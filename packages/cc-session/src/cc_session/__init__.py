"""Warm Claude Code processes: one session, one conversation, one turn at a time.

Built on claude-agent-sdk. Knows processes, frames and events; does not know the Messages API, agents or models.
"""

import cc_compat  # noqa: F401  # importing it patches the SDK's parser, before any session reads a message

from .background import on_background, portal
from .frames import Content
from .options import has_api_key, sealed_options
from .session import Session, SessionState
from .timeouts import Timeouts

__all__ = ["Content", "Session", "SessionState", "Timeouts", "has_api_key", "on_background", "portal", "sealed_options"]
