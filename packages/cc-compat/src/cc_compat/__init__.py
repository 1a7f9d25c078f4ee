"""One isolated patch of the message parser in claude-agent-sdk. Importing this package applies it.

Afterwards a message of a type that the installed SDK does not know gives a warning and no longer ends the stream.
`cc_compat.patch` says which upstream issue this is about, which versions need it, and when to delete it.
"""

from .patch import apply
from .state import Status

__all__ = ["Status", "status"]

_status = apply()


def status() -> Status:
    """What was found in the SDK when this package was imported, and whether the patch is in place."""
    return _status
