"""An isolated patch for the message parser in claude-agent-sdk. Importing this package applies it.

With the patch, a message type that the installed SDK does not know causes a warning and no longer ends the stream.
`cc_compat.patch` names the upstream issue, the versions that need the patch, and the condition for removing it.
"""

from .patch import apply
from .state import Status

__all__ = ["Status", "status"]

_status = apply()


def status() -> Status:
    """Return true if the patch was applied on import, and the reason."""
    return _status
