"""What nobody was told: errors that only the event loop saw, exceptions in finalizers, what was never closed."""

import logging
import sys
import warnings
from typing import Any

# The event loop cannot take connections while no file can be opened, says so, and tries again a second later, also with
# a socket that was closed meanwhile.
_OF_DESCRIPTORS = ("out of system resource", "BaseSelectorEventLoop._start_serving")


class Noise(logging.Handler):
    """Hears it all, and keeps it until it is taken. Everything else that is logged is dropped."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._heard: list[str] = []

    def listen(self) -> None:
        """Begin; for the rest of the process."""
        # The SDK tells of each process that dies, which is what happens here.
        logging.getLogger().addHandler(logging.NullHandler())
        logging.getLogger("asyncio").addHandler(self)
        warnings.simplefilter("always", ResourceWarning)
        warnings.showwarning = self._warned
        sys.unraisablehook = self._raised

    def take(self) -> list[str]:
        """Return what was heard since the last time."""
        heard, self._heard = self._heard, []
        return heard

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what the event loop says."""
        message = record.getMessage()
        if not any(words in message for words in _OF_DESCRIPTORS):
            error = record.exc_info[1] if record.exc_info else None
            self._heard.append(f"{message[:400]} {error!r}")

    def _warned(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, ResourceWarning):
            self._heard.append(f"{category.__name__}: {message}"[:400])

    def _raised(self, raised: Any) -> None:
        self._heard.append(f"{raised.err_msg or 'Ignored'} in {raised.object!r}: {raised.exc_value!r}"[:400])
