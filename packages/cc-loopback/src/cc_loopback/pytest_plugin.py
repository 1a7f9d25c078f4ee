"""The `loopback` fixture.

pytest loads this module in every run of an environment that has the package, so it imports the server in the fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .server import LoopbackServer


@pytest.fixture
def loopback() -> "Iterator[LoopbackServer]":
    """A running `LoopbackServer` for one test, sync or async; script it through its `respond`.

    The test fails at teardown where `errors` is not empty: a responder that raised may have been retried, or taken for
    a fault. A test that wants such errors clears the list.
    """
    from .server import LoopbackServer

    with LoopbackServer() as server:
        yield server
    if server.errors:
        problems = "\n".join(f"  {type(error).__name__}: {error}" for error in server.errors)
        pytest.fail(f"the loopback server's responder went wrong:\n{problems}", pytrace=False)
