"""The command `python -m cc_ipc_bridge SOCKET SCHEMA`."""

from __future__ import annotations

import os
import sys

from .main import main

# Not `sys.exit`: it would wait for threads that are blocked on the parent or on the lock.
status: int = main(sys.argv[1:], os._exit)
sys.stderr.flush()
os._exit(status)
