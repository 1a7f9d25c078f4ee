"""A bound on the number of JSON values in a body, counted in its bytes: millions of them occupy a server for minutes.

Pure. It takes some 10 ms for a megabyte at most.
"""

from cc_types import APIError

__all__ = ["MAX_VALUES", "check_values"]

MAX_VALUES = 250_000
"""The maximum number for the body of a request. A conversation of 10,000 blocks has some 70,000."""


def check_values(body: bytes, limit: int = MAX_VALUES) -> None:
    """Check that a body has at most `limit` JSON values. An empty array or object counts twice.

    Args:
        body: UTF-8. If it is not valid JSON, this is true of the part before the error.
        limit: The maximum number.
    """
    if _separators(body) < limit:  # those in strings included
        return
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Every second piece is a string, and there are at most two for a value: its key and itself.
    pieces = body.split(b'"', 4 * limit)
    if len(pieces) > 4 * limit or _separators(b" ".join(pieces[::2])) >= limit:
        raise APIError(
            status=413, message=f"Request exceeds the maximum allowed number of JSON values, which is {limit}"
        )


def _separators(text: bytes) -> int:
    """Return the number of characters after which a value of an array or object can begin."""
    return sum(map(text.count, (b",", b"[", b"{")))
