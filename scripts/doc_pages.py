"""Blocks in a documentation page, and functions to run them as a reader would.

A page is Markdown. The Python blocks run first, each as a separate program. All shell blocks run in a common shell, in
a folder where each block with a title is a file with that name. A `text` block directly below is the expected output,
where `…` matches anything.

A comment before a block marks an exception: `<!-- not run: REASON -->`, or `<!-- needs: NAME -->`, a module or a
command that the block requires.
"""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prepared_python import commands, python
from workspace import ROOT

# Ports in pages; a free port replaces each, so that several pages can run at once.
_PORTS = ("8000", "8400", "8401", "8402", "8403")

# Seconds for a Python block, and for all shell blocks in a page; detects a hang. Each takes a few on a busy machine.
_SECONDS = 100.0

_END = "--- end of block ---"

_BLOCK = re.compile(
    r"(?:^<!-- (?:not run: (?P<not_run>[^\n]+)|needs: (?P<needs>[^\n]+)) -->\n+)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"\n]+)\")?\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    name: str
    """Location: the page and the line."""
    language: str
    code: str
    title: str | None
    """File name, if it has a title."""
    output: str | None
    """Expected output, if the page shows it."""
    not_run: str | None
    """Reason why it is not run, if any."""
    needs: str | None
    """Module or command that it needs in addition to the workspace's, if any."""


def missing(page: Sequence[Block]) -> list[str]:
    """Return the blocks' requirements that are not installed here; such blocks do not run."""
    needed = {block.needs for block in page if block.needs}
    return sorted(name for name in needed if shutil.which(name) is None and importlib.util.find_spec(name) is None)


def read_page(path: Path) -> list[Block]:
    """Read the blocks in a page, in order.

    Raises:
        ValueError: A fence is indented, or begins with another line than described above, so that it would not run.
    """
    text, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
    blocks = [*_BLOCK.finditer(text)]
    fences = sum(2 if match["output"] is None else 4 for match in blocks)
    if fences != len(re.findall(r"^\s*(?:```|~~~)", text, flags=re.MULTILINE)):
        raise ValueError(f"{name} has a fence that is indented or has an unknown first line")
    lines = [text.count("\n", 0, match.start("language")) + 1 for match in blocks]
    return [Block(f"{name}:{line}", **match.groupdict()) for line, match in zip(lines, blocks, strict=True)]


def run_page(page: Sequence[Block], folder: Path, env: Mapping[str, str]) -> None:
    """Write a page's files into an empty folder, and run the blocks there; `env` adds to this process's variables.

    Raises:
        AssertionError: A block failed, gave other output than the page shows, or is Python and gave a warning.
        subprocess.TimeoutExpired: They took too long.
    """
    ports = {port: str(free_port()) for port in _PORTS}
    for block in page:
        if block.title is not None:
            (folder / block.title).write_text(_with_ports(block.code, ports), encoding="utf-8")
    absent = missing(page)
    blocks = [block for block in page if not (block.title or block.not_run or block.needs in absent)]
    for block in blocks:
        if block.language == "python":
            _run([python(), "-c", f"{block.code}print({_END!r})"], [block], folder, env)
    if shell := [block for block in blocks if block.language == "sh"]:
        script = "".join(f"{_with_ports(block.code, ports)}echo '{_END}'\n" for block in shell)
        # A process left running would keep the output open until the time limit: hence the wait.
        _run(["bash", "-ec", f"{script}wait\n"], shell, folder, env)


def _run(command: list[str], blocks: Sequence[Block], folder: Path, env: Mapping[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": _path(), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=_SECONDS,
        check=False,
    )
    printed = done.stdout.split(f"{_END}\n")
    finished = len(printed) - 1
    if finished < len(blocks) or done.returncode:
        raise AssertionError(f"{blocks[min(finished, len(blocks) - 1)].name} failed:\n{done.stdout}\n{done.stderr}")
    # Commands print progress to stderr; Python blocks print only warnings there.
    if blocks[0].language == "python" and done.stderr:
        raise AssertionError(f"{blocks[0].name} complained:\n{done.stderr}")
    for block, text in zip(blocks, printed, strict=False):
        output = "…" if block.output is None else block.output.strip()
        pattern = ".*".join(re.escape(piece) for piece in output.split("…"))
        if re.fullmatch(pattern, text.strip(), flags=re.DOTALL) is None:
            raise AssertionError(f"{block.name} printed:\n{text}")


def _with_ports(code: str, ports: Mapping[str, str]) -> str:
    for port, free in ports.items():
        code = re.sub(rf"\b{port}\b", free, code)
    return code


def free_port() -> int:
    """Return a port on which no program listens at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _path() -> str:
    """Return a PATH with this environment's commands, and claude-agent-sdk's CLI, before all others."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    folders = spec.submodule_search_locations if spec is not None else None
    bundled = [str(Path(folder, "_bundled")) for folder in folders or ()]
    return os.pathsep.join([str(commands()), str(Path(sys.executable).parent), *bundled, os.environ["PATH"]])
