"""Errors of the hand-over."""

__all__ = ["HandOverError", "SessionNotFoundError"]


class HandOverError(ValueError):
    """A conversation holds something that the other side cannot carry. Nothing was written."""


class SessionNotFoundError(LookupError):
    """There is no such session."""
