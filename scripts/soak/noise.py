"""Errors that no caller received: errors in the event loop, exceptions in finalizers, unclosed resources."""

import logging
import sys
import warnings
from typing import Any

# The event loop cannot accept connections while no file can be opened; it logs this and retries a second later, also
# with a socket that was closed meanwhile.
_OF_DESCRIPTORS = ("out of system resource", "BaseSelectorEventLoop._start_serving")


class Noise(logging.Handler):
    """Collects these errors until `take()`. All other log records are dropped."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._lines: list[str] = []

    def listen(self) -> None:
        """Start collecting; never stop."""

        def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            if issubclass(category, ResourceWarning):
                self._lines.append(f"{category.__name__}: {message}"[:400])

        def unraisable(raised: Any) -> None:
            self._lines.append(f"{raised.err_msg or 'Ignored'} in {raised.object!r}: {raised.exc_value!r}"[:400])

        # The SDK logs each process that exits early, which is expected here.
        logging.getLogger().addHandler(logging.NullHandler())
        logging.getLogger("asyncio").addHandler(self)
        warnings.simplefilter("always", ResourceWarning)
        warnings.showwarning = warn
        sys.unraisablehook = unraisable

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not any(words in message for words in _OF_DESCRIPTORS):
            error = record.exc_info[1] if record.exc_info else None
            self._lines.append(f"{message[:400]} {error!r}")
