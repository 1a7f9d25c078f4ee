"""Run work without garbage collections."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Generator[None]:
    """Rows form no cycles, and a garbage collection among hundreds of thousands takes as long as reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
