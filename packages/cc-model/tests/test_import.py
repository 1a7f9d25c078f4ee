"""Side effects of the import and of the first request, each in a fresh interpreter."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.worlds

# Records the environment variables that are read, and the paths that are opened.
IMPORT = """
import os, sys
import logfire_api  # pydantic-ai imports it, and so Logfire where that is installed, which reads `LOGFIRE_API_KEY`

loaded_before, reads = {*sys.modules}, []  # coverage loads modules at the start
get = type(os.environ).__getitem__

def record(self, name):
    reads.append(str(name))
    return get(self, name)

type(os.environ).__getitem__ = record
sys.addaudithook(lambda event, arguments: reads.append(str(arguments[0])) if event == "open" else None)

import cc_model
from claude_agent_sdk._internal.message_parser import parse_message

LOGIN = ("API_KEY", "AUTH_TOKEN", "CLAUDE_CODE_", "CLAUDE_CONFIG_DIR", ".claude.json", ".credentials.json")
UNUSED = ("cc_compat", "cc_loopback", "cc_server", "sqlite3", "tomllib")
print([name for name in reads if any(part in name for part in LOGIN)])
print([name for name in UNUSED if name in sys.modules and name not in loaded_before])
print(hasattr(parse_message, "__wrapped__"))
"""
REQUEST = """
import os, sys, tempfile
from pydantic_ai import Agent
from pydantic_ai.exceptions import UserError
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

with tempfile.NamedTemporaryFile() as program:
    os.chmod(program.name, 0o700)
    program.write(b"#!")
    program.flush()
    agent = Agent(ClaudeCodeModel(provider=ClaudeCodeProvider(cli_path=program.name)))
print("cc_compat" in sys.modules)
try:
    agent.run_sync("Hello.")
except UserError:
    print(sys.modules["cc_compat"].status().applied)
"""


def output(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_import_patches_nothing_and_reads_no_login() -> None:
    """ARCH-12: neither does it load the HTTP server, or any module that only the server needs."""
    assert output(IMPORT) == ["[]", "[]", "False"]
