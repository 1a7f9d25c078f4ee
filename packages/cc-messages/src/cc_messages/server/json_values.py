"""A bound on the number of JSON values in a body, counted in the bytes: millions of values occupy a server for minutes.

Pure. It takes at most some 10 ms for a megabyte.
"""

from cc_types import APIError

__all__ = ["MAX_VALUES", "check_values"]

MAX_VALUES = 250_000
"""The maximum number for a request body. A conversation with 10,000 blocks has some 70,000."""


def check_values(body: bytes, limit: int = MAX_VALUES) -> None:
    """Check that a body has at most `limit` JSON values. An empty array or object counts twice.

    Args:
        body: UTF-8. If it is not valid JSON, the check covers the part before the error.
        limit: The maximum number.
    """
    if _separators(body) < limit:  # separators in strings included
        return
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Every second piece is a string, and there are at most two for a value: the key and the value.
    pieces = body.split(b'"', 4 * limit)
    if len(pieces) > 4 * limit or _separators(b" ".join(pieces[::2])) >= limit:
        message = f"Request exceeds the maximum allowed number of JSON values, which is {limit}"
        raise APIError(status=413, message=message)


def _separators(text: bytes) -> int:
    """Count the characters after which a value of an array or object can begin."""
    return sum(map(text.count, (b",", b"[", b"{")))
