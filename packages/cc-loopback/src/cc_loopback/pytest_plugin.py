"""The `loopback` fixture.

pytest loads this module in every run of an environment with the package, so the server is imported in the fixture only.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .server import LoopbackServer


@pytest.fixture
def loopback() -> "Iterator[LoopbackServer]":
    """A running `LoopbackServer` for one test, sync or async; set its `respond` to script it.

    The test fails at teardown if `errors` is not empty: otherwise an error of the responder could stay unnoticed, or
    look like an injected fault. A test that expects such errors clears the list.
    """
    from .server import LoopbackServer

    with LoopbackServer() as server:
        yield server
    if server.errors:
        problems = "\n".join(f"  {type(error).__name__}: {error}" for error in server.errors)
        pytest.fail(f"the loopback server's responder failed:\n{problems}", pytrace=False)
