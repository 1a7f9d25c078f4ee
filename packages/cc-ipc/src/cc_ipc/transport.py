"""Which way tools reach the CLI: over the bridge process, or over the SDK's in-process server.

It looks at what is installed and imports none of it.
"""

import re
import socket
from dataclasses import dataclass
from importlib import metadata
from typing import Final, Literal, TypeAlias

from .errors import TransportUnavailableError

__all__ = ["DEFAULT_TRANSPORT", "TransportChoice", "TransportType", "resolve_transport"]

TransportType: TypeAlias = Literal["auto", "stdio", "sdk"]
"""`"stdio"` is the bridge process, `"sdk"` the SDK's in-process server, `"auto"` the better one of what there is."""

DEFAULT_TRANSPORT: Final[TransportType] = "auto"
"""The transport when none is named."""

# The first SDK whose in-process server loses nothing: it hands every kind of content on, the call's `_meta` (where the
# model's id of the call is), and cancellation, the latter with mcp 2 only. Earlier ones took messages apart by hand.
_SDK_SINCE = (0, 2, 140)
_MCP_SINCE = (2,)


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A transport and why it is the one."""

    transport: Literal["stdio", "sdk"]
    """What to use."""
    reason: str
    """Why, as a sentence without a full stop."""


def resolve_transport(transport: TransportType = DEFAULT_TRANSPORT) -> TransportChoice:
    """Return which transport to use here, and why.

    `"auto"` takes the in-process server where the installed SDK loses nothing over it: the CLI is ready sooner, for
    there is no process to start, and calls take about as long (`scripts/bench/ipc_transports.py` compares them).
    Otherwise it takes the bridge, which carries everything whatever the SDK.

    Raises:
        TransportUnavailableError: There is none, or not the one that was asked for.
    """
    lacking = _lacking_for_sdk()
    if transport == "auto" and lacking is None:
        return TransportChoice("sdk", "the installed SDK loses nothing over its in-process server, which starts faster")
    if transport == "sdk":
        if _installed("claude-agent-sdk") is None:
            raise TransportUnavailableError(reason=f"{lacking}")
        return TransportChoice("sdk", "it was asked for" if lacking is None else f"it was asked for, though {lacking}")
    if not hasattr(socket, "AF_UNIX"):
        also = "" if transport == "stdio" else f", and {lacking}"
        raise TransportUnavailableError(reason=f"the bridge needs Unix sockets, which this platform lacks{also}")
    return TransportChoice("stdio", "it was asked for" if transport == "stdio" else f"{lacking}")


def _lacking_for_sdk() -> str | None:
    """Return why the in-process server would lose something, as part of a sentence, or `None`."""
    for name, since in (("claude-agent-sdk", _SDK_SINCE), ("mcp", _MCP_SINCE)):
        installed = _installed(name)
        if installed is None:
            return f"{name} is not installed, which an in-process server needs"
        if installed < since:
            wanted, found = ".".join(map(str, since)), ".".join(map(str, installed))
            return f"{name} {found} is installed, and an in-process server loses nothing from {wanted} on"
    return None


def _installed(name: str) -> tuple[int, ...] | None:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
