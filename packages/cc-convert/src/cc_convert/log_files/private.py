"""Write files that only this user can read."""

import os
from contextlib import suppress

__all__ = ["write_private"]


def write_private(path: str, content: bytes) -> None:
    """Write a file and its folder, readable by this user only."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # Written to a temporary file and renamed: there is never a partial entry.
    temporary = f"{path}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
