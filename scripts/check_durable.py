#!/usr/bin/env python3
"""Run the agent under DBOS, Prefect and Temporal, on real servers of theirs.

These libraries bring a hundred others and three servers, so they stay out of the workspace's environment. Here a fresh
one is made outside the repository: the packages of the workspace as wheels, the engines in the versions that
`integration-tests/durable/engines.txt` pins, all else as the workspace pins it. In it run the tests in
`integration-tests/durable`, and the type checker over them and over `examples/durable`.

Where the engines cannot be had because no index can be reached, nothing is checked, and that is said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from check_packages import Bench, build, check_installed, install, list_installed
from commands import CheckError, clean_environment
from pin import Pins, read_pins
from workspace import ROOT, find_uv, read_members, siblings

TESTS = ROOT / "integration-tests" / "durable"
EXAMPLES = ROOT / "examples" / "durable"

# What the tests need besides the engines.
MEMBERS = ("cc-model", "cc-loopback")
TEST_TOOLS = ("anyio", "hypothesis", "psutil", "pyright[nodejs]", "pytest", "pytest-timeout", "pytest-xdist")

# How uv says that there is no way to an index; a version that an index does not have is another matter.
UNREACHABLE = re.compile(r"dns error|error sending request|tcp connect|timed out|network is unreachable", re.IGNORECASE)
