"""Status of the patch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Status:
    """Result of applying the patch when `cc_compat` was imported."""

    applied: bool
    """True if the wrapper is installed. If not, the SDK is unchanged."""
    reason: str
    """Reason for `applied`, as a sentence."""
    sdk_version: str | None = None
    """The SDK version, from `__version__`."""
    sdk_skips_unknown: bool | None = None
    """True if this SDK skips unknown messages without the patch; `None` if unknown."""
    patched: tuple[str, ...] = ()
    """Dotted names of the replaced references to the parser."""
