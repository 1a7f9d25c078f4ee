"""Choice of the transport by which tools reach the CLI: the bridge process, or the SDK's in-process server.

This module reads versions of installed packages and imports none.
"""

import re
import socket
from dataclasses import dataclass
from importlib import metadata
from typing import Final, Literal, TypeAlias

from .errors import TransportUnavailableError

TransportType: TypeAlias = Literal["auto", "stdio", "sdk"]
"""`"stdio"` is the bridge process, `"sdk"` the SDK's in-process server; `"auto"` chooses, see `resolve_transport`."""

DEFAULT_TRANSPORT: Final[TransportType] = "auto"
"""The default transport."""

# Since these versions the SDK's in-process server is lossless: it passes on every kind of content, the call's `_meta`
# (with the call id from the model), and cancellation. Earlier versions converted messages by hand.
_SDK_SINCE = (0, 2, 140)
_MCP_SINCE = (2,)


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A transport and the reason for the choice."""

    transport: Literal["stdio", "sdk"]
    """The transport to use."""
    reason: str
    """The reason, as a sentence without a full stop."""


def resolve_transport(transport: TransportType = DEFAULT_TRANSPORT) -> TransportChoice:
    """Return the transport to use here, and the reason.

    `"auto"` chooses the in-process server if it is lossless with the installed SDK: the CLI is ready sooner, because no
    process has to start, and calls take about as long (`scripts/bench --only tool` compares them). Otherwise it
    chooses the bridge, which is lossless with every SDK.

    Raises:
        TransportUnavailableError: No transport is available, or not the requested transport.
    """
    lacking = _lacking_for_sdk()
    if transport == "auto" and lacking is None:
        return TransportChoice("sdk", "the installed SDK loses nothing over its in-process server, which starts faster")
    if transport == "sdk":
        if _version("claude-agent-sdk") is None:
            raise TransportUnavailableError(reason=f"{lacking}")
        return TransportChoice("sdk", "it was asked for" if lacking is None else f"it was asked for, though {lacking}")
    if not hasattr(socket, "AF_UNIX"):
        also = "" if transport == "stdio" else f", and {lacking}"
        raise TransportUnavailableError(reason=f"the bridge needs Unix sockets, which this platform lacks{also}")
    return TransportChoice("stdio", "it was asked for" if transport == "stdio" else f"{lacking}")


def _lacking_for_sdk() -> str | None:
    """Return why the in-process server is missing or lossy, as part of a sentence, or `None` if it is neither."""
    for name, since in (("claude-agent-sdk", _SDK_SINCE), ("mcp", _MCP_SINCE)):
        version = _version(name)
        if version is None:
            return f"{name} is not installed, which an in-process server needs"
        if version < since:
            current, minimum = ".".join(map(str, version)), ".".join(map(str, since))
            return f"{name} {current} is installed, and an in-process server loses nothing from {minimum} on"
    return None


def _version(name: str) -> tuple[int, ...] | None:
    try:
        text = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:3])
