"""Messages, their checks and their cost, for packages on top, such as cc-model and cc-server.

Not public: names may change in any release.
"""

from .api.conversation import Block, HistoryMessage, as_blocks
from .api.cost import cost_of, has_price, usages_of
from .api.folding import unfolded_messages
from .api.paths import api_path
from .api.request import run_on_body
from .api.response import (
    WHITESPACE,
    FinalError,
    MethodNotAllowedError,
    error_body,
    error_response,
    says_nothing,
    sse,
)
from .loop.request import check_pairs, merged

__all__ = [
    "WHITESPACE", "Block", "FinalError", "HistoryMessage", "MethodNotAllowedError", "api_path", "as_blocks",
    "check_pairs", "cost_of", "error_body", "error_response", "has_price", "merged", "run_on_body", "says_nothing",
    "sse", "unfolded_messages", "usages_of",
]  # fmt: skip
