"""Parts for packages on top: private files, counts of tokens in an answer, prices.

Not public: names may change in any release.
"""

from .log_files.fields import checked_record, checked_usage
from .log_files.model_names import canonical_model
from .log_files.private_files import open_private, write_private
from .log_files.usage import MessageUsage, counts_in, message_usage, samplings_in
from .prices import Prices

__all__ = [
    "MessageUsage", "Prices", "canonical_model", "checked_record", "checked_usage", "counts_in", "message_usage",
    "open_private", "samplings_in", "write_private",
]  # fmt: skip
