"""Class of the background loop: asyncio's standard loop, whatever event loop policy the program has.

A policy such as uvloop's may be installed at any time. Before Python 3.14 asyncio asks the policy for the watcher that
notices the end of a child process. uvloop's policy has none, so that processes could not be started any more.
"""

import asyncio
import sys
import warnings
from typing import Any

__all__ = ["BackgroundLoop"]

if sys.platform == "win32":
    BackgroundLoop = asyncio.ProactorEventLoop
elif sys.version_info >= (3, 14):
    BackgroundLoop = asyncio.SelectorEventLoop
else:
    _unix: Any = asyncio.unix_events

    class BackgroundLoop(asyncio.SelectorEventLoop):
        """asyncio's loop with a private child watcher, the default kind in this Python version.

        The override replaces the only method that asks the policy. `tests/test_background.py` notices when it changes;
        with a plain `SelectorEventLoop`, processes start under policies that have a watcher.
        """

        def __init__(self) -> None:
            super().__init__()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self._watcher = asyncio.DefaultEventLoopPolicy().get_child_watcher()

        async def _make_subprocess_transport(
            self, protocol: Any, args: Any, shell: Any, stdin: Any, stdout: Any, stderr: Any, bufsize: Any, **more: Any
        ) -> Any:
            loop: Any = self
            ready = self.create_future()
            transport = _unix._UnixSubprocessTransport(
                self, protocol, args, shell, stdin, stdout, stderr, bufsize, waiter=ready, **more
            )
            self._watcher.add_child_handler(transport.get_pid(), loop._child_watcher_callback, transport)
            try:
                await ready
            except BaseException:
                transport.close()
                await transport._wait()
                raise
            return transport
