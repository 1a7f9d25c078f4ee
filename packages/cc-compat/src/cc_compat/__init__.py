"""One isolated patch of the message parser in claude-agent-sdk. Importing this package applies it.

With the patch, a message of a type that the installed SDK does not know causes a warning and no longer ends the stream.
`cc_compat.patch` names the upstream issue, the versions that need the patch, and the condition for its removal.
"""

from .patch import apply
from .state import Status

__all__ = ["Status", "status"]

_status = apply()


def status() -> Status:
    """Return whether the patch was applied on import, and the reason."""
    return _status
