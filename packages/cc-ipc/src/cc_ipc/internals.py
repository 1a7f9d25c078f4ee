"""Guard around a tool for packages on top, which run tools without a bridge.

Not public: names may change in any release.
"""

from .guard import ToolFailure, guarded

__all__ = ["ToolFailure", "guarded"]
