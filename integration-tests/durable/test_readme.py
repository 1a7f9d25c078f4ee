"""The commands in examples/durable/README, run unchanged and in order."""

import os
import re
import shlex
import subprocess
import sys

from cc_loopback import LoopbackServer

from . import servers
from .engines import EXAMPLES, Engine
from .test_killed_workers import one_tool_after_the_other, rounds

README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
TITLES = {
    "dbos": "DBOS",
    "temporal": "Temporal",
    "prefect": "Prefect",
}
SERVERS = ([servers.TEMPORAL], [servers.PREFECT])
# Some commands wait for five minutes before they fail.
COMMAND_SECONDS = 350.0


def blocks(title: str) -> list[list[str]]:
    """Return a section's commands, by block."""
    section = README.split(f"\n### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return [block.splitlines() for block in re.findall(r"```sh\n(.*?)\n```", section, flags=re.DOTALL)]


def test_readme_commands_lead_to_the_answer_after_a_dead_worker(engine: Engine, loopback: LoopbackServer) -> None:
    loopback.respond = one_tool_after_the_other
    printed: list[str] = []
    for block in blocks(TITLES[engine.name]):
        if block in SERVERS:
            continue  # a fixture has run this command
        if "_worker.py" in block[0]:
            for worker in engine.workers:
                worker.kill()
            [line] = block
            engine.run_worker(f"worker-{len(engine.workers)}", command(line))
        else:
            printed += [run(engine, line) for line in block]
    assert len(engine.workers) == 2
    assert printed[-1] == "Done. Order 17 is paid back."
    assert rounds(loopback) == [1, 2, 3]
    engine.workers[-1].stop()


def command(line: str) -> list[str]:
    program, *words = shlex.split(line)
    assert program == "python"
    return [sys.executable, *words]


def run(engine: Engine, line: str) -> str:
    """Run a command; return the output."""
    env = {**os.environ, **engine.env}
    process = subprocess.run(
        command(line), env=env, cwd=EXAMPLES, capture_output=True, text=True, timeout=COMMAND_SECONDS
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_every_block_of_commands_is_in_a_tested_section() -> None:
    run_blocks = [block for title in TITLES.values() for block in blocks(title)]
    assert len(run_blocks) == README.count("\n```sh\n")
    assert all(block in run_blocks for block in SERVERS)


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)
    assert links
    assert [link for link in links if not (EXAMPLES / link).exists()] == []
