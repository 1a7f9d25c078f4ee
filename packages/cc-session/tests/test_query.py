"""One-shot queries, through a caller's pool and through the shared pool."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer
from cc_session import PoolLimits, SessionPool, query
from cc_types import CLINotFoundError

from .conftest import all_raise


async def test_the_prompt_is_data_and_on_no_command_line(
    server: LoopbackServer, shared_pool: SessionPool, tmp_path: Path
) -> None:
    """SES-02, SES-11."""
    file = tmp_path / "file"
    file.write_text("s3cret")
    command_lines: list[str] = []

    def look(body: JsonObject) -> str:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):  # another program that ends
                command_lines.append(str(process.cmdline()))
        return body["messages"][-1]["content"][-1]["text"]

    server.respond = look
    for prompt in (f"@{file}", "/clear", "/model haiku"):
        assert (await query(prompt, pool=shared_pool)).text == prompt
        assert prompt not in str(command_lines)
    assert "s3cret" not in str(server.requests)


async def test_a_query_says_why_no_process_can_be_started(tmp_path: Path) -> None:
    """SES-96: through the shared pool, which stays usable."""
    options = ClaudeAgentOptions(cli_path=tmp_path / "no-such-claude")
    await all_raise(CLINotFoundError, query("Hello.", options), query("Hello.", options))


SCRIPT = """
import asyncio, json, os, sys, threading
import psutil
from cc_session import query, sealed_options

options = sealed_options(env=json.loads(sys.argv[1]), cwd=sys.prefix)

def pids():
    return sorted(child.pid for child in psutil.Process().children() if child.name() != "sh")

async def ask(text):
    return (await query(text, options)).text

answers = [asyncio.run(ask(f"One {number}.")) for number in range(2)]
options.cwd = os.sep  # for warm processes
threads = [threading.Thread(target=lambda: answers.append(asyncio.run(ask("Two.")))) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all(answer.startswith("You said") for answer in answers) and len(answers) == 6
print(pids())
"""


@pytest.mark.worlds
def test_queries_without_a_pool_share_processes_which_end_with_python(server: LoopbackServer) -> None:
    """SES-02, SES-76, SES-77."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "CLAUDE_"))}
    script = [sys.executable, "-W", "error", "-c", SCRIPT, json.dumps(server.env())]
    done = subprocess.run(script, capture_output=True, text=True, timeout=40, check=False, env=env)

    assert (done.returncode, done.stderr) == (0, "")
    pids: list[int] = json.loads(done.stdout)
    assert 1 <= len(pids) <= 4  # six queries, at most four at a time
    deadline = time.monotonic() + 20
    while any(psutil.pid_exists(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.worlds
async def test_the_login_of_this_process_decides_which_process_answers(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-61: a process with an old key serves no caller with a new key."""
    for name, value in server.env().items():
        monkeypatch.setenv(name, value)
    async with SessionPool(limits=PoolLimits(size=2, prewarm=0)) as pool:
        for key in ("one", "two", "one"):
            monkeypatch.setenv("ANTHROPIC_API_KEY", key)
            await pool.run("Hello.")
        assert pool.stats().starts == 2

    keys = [call.headers["x-api-key"] for call in server.calls if call.path == "/v1/messages"]
    assert keys == ["one", "two", "one"]
