"""Paths of the API below any base URL."""

import re

# A client's base URL can have a path of its own, as a gateway's has.
_API_PATH = re.compile(r"/.*(/v1/(?:messages(?:/count_tokens)?|models(?:/.*)?|limits|usage))")


def api_path(path: str) -> str:
    """Return the path in the API for the path of an address below any base URL; other paths unchanged."""
    match = _API_PATH.fullmatch(path)
    return match[1] if match else path
