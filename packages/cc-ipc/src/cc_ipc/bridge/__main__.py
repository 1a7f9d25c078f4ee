"""`python -m cc_ipc.bridge SOCKET SCHEMA`."""

from __future__ import annotations

import os
import sys

from .main import main

# Not `sys.exit`: threads may wait for the parent, or for its lock, and nobody waits for them.
status: int = main(sys.argv[1:], os._exit)
sys.stderr.flush()
os._exit(status)
