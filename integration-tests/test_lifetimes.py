"""Processes start with the first request and end with the owner, or with the interpreter."""

import subprocess
import sys

import pytest
from anyio import to_thread

pytestmark = pytest.mark.worlds

# A new interpreter imports everything; on a busy machine that takes many seconds.
_SUBPROCESS_SECONDS = 100


async def python(program: str, *arguments: str) -> str:
    """Run a program in a new interpreter; return the output."""
    process = await to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=_SUBPROCESS_SECONDS
        )
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


# After the first import, starting a process, opening a socket, and writing or removing a file fail.
DOES_NOTHING = """
import os, sys

FORBIDDEN = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
             "socket.connect", "socket.bind", "os.mkdir", "os.remove", "os.rename", "shutil.rmtree", "tempfile.mkdtemp"}

def watch(event, arguments):
    flags = arguments[2] if event == "open" else 0
    written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if event in FORBIDDEN or (written and str(arguments[0]) != os.devnull):
        raise RuntimeError(f"{event} {arguments[0]}")

sys.dont_write_bytecode = True
sys.addaudithook(watch)

import threading
from pydantic_ai import Agent, NativeOutput, ToolDefinition
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code

for name in ("sonnet", "opus[1m]", "claude-haiku-4-5"):
    model = ClaudeCodeModel(name, provider=ClaudeCodeProvider(), settings={"max_tokens": 9})
    assert model.profile and model.context_window
    parameters = ModelRequestParameters(function_tools=[ToolDefinition(name="look")])
    model.prepare_messages([ModelRequest.user_text_prompt("Hello.")], parameters)
    model.prepare_request({"temperature": 0.5}, parameters)
    Agent(model, output_type=NativeOutput(int))
    repr(model)
ClaudeCodeModel()
Agent("claude-code:opus", capabilities=[claude_code()])
assert threading.active_count() == 1
# Not rich: other libraries import it where they find it.
assert not {"cc_loopback", "cc_demo"} & {*sys.modules}
print("nothing", end="")
"""


async def test_importing_constructing_and_preparing_starts_and_writes_nothing() -> None:
    """MODEL-69: a workflow's sandbox allows all of this. The demo is not imported either."""
    assert await python(DOES_NOTHING) == "nothing"
