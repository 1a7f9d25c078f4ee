"""Messages, their checks and their cost, for packages on top, such as cc-model.

Not public: names may change in any release.
"""

from .api.conversation import Block, HistoryMessage, as_blocks
from .api.cost import cost_of, usages_of
from .api.folding import unfolded_messages
from .api.response import WHITESPACE, says_nothing
from .loop.request import check_pairs, merged

__all__ = [
    "WHITESPACE", "Block", "HistoryMessage", "as_blocks", "check_pairs", "cost_of", "merged", "says_nothing",
    "unfolded_messages", "usages_of",
]  # fmt: skip
