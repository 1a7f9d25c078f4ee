"""The access log: a line for each request, without prompts and tokens."""

import logging
from urllib.parse import quote

from .request_record import RequestRecord

__all__ = ["ACCESS_LOGGER", "log_request"]

ACCESS_LOGGER = "cc_messages.access"

logger = logging.getLogger(ACCESS_LOGGER)

_SHOWN_CHARACTERS = 200


def log_request(record: RequestRecord) -> None:
    """Log a finished request: client, method, path, model, status, input and output tokens, milliseconds."""
    usage = record.usage
    logger.info(
        "%s %s %s %s %d input=%d output=%d %.0fms",
        record.client or "-",
        record.method,
        _shown(record.path),
        _shown(record.model) or "-",
        record.status,
        usage.all_input,
        usage.output,
        record.seconds * 1000,
    )


def _shown(text: str) -> str:
    """Return a client's text without line breaks and blanks, which would allow it to invent log lines."""
    return quote(text[:_SHOWN_CHARACTERS], safe="/:@[]")
