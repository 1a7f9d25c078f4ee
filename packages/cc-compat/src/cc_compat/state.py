"""What the patch found in the SDK, and what it did about it."""

from dataclasses import dataclass

__all__ = ["Status"]


@dataclass(frozen=True, slots=True)
class Status:
    """What happened when `cc_compat` was imported."""

    applied: bool
    """Whether the wrapper is in place. If not, the SDK is exactly as it was installed."""
    reason: str
    """Why it is, or why not, in a sentence."""
    sdk_version: str | None = None
    """The version of the SDK, as it tells it."""
    sdk_skips_unknown: bool | None = None
    """Whether this SDK skips unknown messages without our help; `None` if that could not be found out."""
    patched: tuple[str, ...] = ()
    """Where references to the parser were replaced, as dotted names."""
