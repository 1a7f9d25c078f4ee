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
# model's id of the call is), and cancellation, the latter with mcp 2 only. Before it, messages were taken apart by hand.
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

    `"auto"` takes the bridge where there are Unix sockets. It is the faster one: it is ready before the CLI is, its calls
    take a tenth less time (`scripts/bench/ipc_transports.py` compares them), and it works with every SDK. Elsewhere it
    takes the in-process server, if the installed SDK loses nothing over it.

    Raises:
        TransportUnavailableError: There is none, or not the one that was asked for.
    """
    lacking = _lacking_for_sdk()
    if transport == "sdk":
        if _installed("claude-agent-sdk") is None:
            raise TransportUnavailableError(reason=f"{lacking}")
        return TransportChoice("sdk", "it was asked for" if lacking is None else f"it was asked for, though {lacking}")
    if hasattr(socket, "AF_UNIX"):
        reason = "it was asked for" if transport == "stdio" else "the bridge is faster, and works with every SDK"
        return TransportChoice("stdio", reason)
    if transport == "stdio" or lacking is not None:
        also = f", and {lacking}" if transport == "auto" else ""
        raise TransportUnavailableError(reason=f"the bridge needs Unix sockets, which this platform lacks{also}")
    return TransportChoice("sdk", "the bridge needs Unix sockets, which this platform lacks")


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
