"""The blocks of a page of the documentation, and how to run them as a reader would.

A page is Markdown. Its Python blocks run first, each as a program of its own. Its shell blocks run in one shell, in
a folder where each block with a title has been written as a file of that name. A block of `text` right below is what
the block prints, where `…` stands for anything.

A comment before a block says what is special about it: `<!-- not run: REASON -->`, or `<!-- needs: NAME -->`, a module
or a command without which it cannot be run.
"""

from __future__ import annotations

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

__all__ = ["ROOT", "Block", "Page", "read_page", "run_page"]

ROOT = Path(__file__).resolve().parent.parent

# Ports that pages name; each becomes a free one, so that several pages can run at once.
_PORTS = ("8000", "8400")

# For a Python block, and for all shell blocks of a page. It tells a hang: each takes a few seconds on a busy machine.
_SECONDS = 100.0

_END = "--- end of block ---"

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>not run|needs): (?P<about>[^\n]+) -->\n+)?"
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"\n]+)\")?\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    name: str
    """Where it stands: the page and the line."""
    language: str
    code: str
    title: str | None
    """The file that it is, if it is one."""
    output: str | None
    """What it prints, if the page says so."""
    not_run: str | None
    """Why it is not run, if it is not."""
    needs: str | None
    """The module or command that it needs beside the workspace's, if there is one."""


@dataclass(frozen=True)
class Page:
    """A page and its blocks, in order."""

    name: str
    blocks: Sequence[Block]

    def missing(self) -> list[str]:
        """What blocks need and this computer does not have; those are left out."""
        return sorted({block.needs for block in self.blocks if block.needs and not _is_here(block.needs)})


def read_page(path: Path) -> Page:
    """Read a page.

    Raises:
        ValueError: A fence is indented, or its first line is not as described above, so that it would not be run.
    """
    text, name = path.read_text("utf-8"), str(path.relative_to(ROOT))
    found = [*_BLOCK.finditer(text)]
    fences = sum(2 if match["output"] is None else 4 for match in found)
    if fences != len(re.findall(r"^\s*(?:```|~~~)", text, flags=re.MULTILINE)):
        raise ValueError(f"{name} has a fence that is indented or not understood")
    return Page(name, [_block(match, name, text) for match in found])


def _block(match: re.Match[str], page: str, text: str) -> Block:
    note, about = match["note"], match["about"]
    return Block(
        name=f"{page}:{text.count(chr(10), 0, match.start('language')) + 1}",
        language=match["language"],
        code=match["code"],
        title=match["title"],
        output=match["output"],
        not_run=about if note == "not run" else None,
        needs=about if note == "needs" else None,
    )


def _is_here(name: str) -> bool:
    return shutil.which(name) is not None or importlib.util.find_spec(name) is not None


def run_page(page: Page, folder: Path, env: Mapping[str, str]) -> None:
    """Write the files of a page into an empty folder, and run its blocks there.

    Args:
        page: The page.
        folder: An empty folder.
        env: Variables, on top of those of this process.

    Raises:
        AssertionError: A block failed, printed something else than the page says, or is Python and gave a warning.
        subprocess.TimeoutExpired: They took too long.
    """
    ports = {port: str(_free_port()) for port in _PORTS}
    for block in page.blocks:
        if block.title is not None:
            (folder / block.title).write_text(_with_ports(block.code, ports), encoding="utf-8")
    missing = page.missing()
    blocks = [block for block in page.blocks if not (block.title or block.not_run or block.needs in missing)]
    for block in blocks:
        if block.language == "python":
            _run([python(), "-c", f"{block.code}print({_END!r})"], [block], folder, env)
    if shell := [block for block in blocks if block.language == "sh"]:
        script = "".join(f"{_with_ports(block.code, ports)}echo '{_END}'\n" for block in shell)
        # What a page left running would keep its output open, and be found by the bound: hence the wait.
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
    # Commands tell on standard error how far they are; Python blocks have nothing to say there but warnings.
    if blocks[0].language == "python" and done.stderr:
        raise AssertionError(f"{blocks[0].name} complained:\n{done.stderr}")
    for block, text in zip(blocks, printed, strict=False):
        if block.output is not None and not _agrees(text, block.output):
            raise AssertionError(f"{block.name} printed:\n{text}")


def _agrees(printed: str, promised: str) -> bool:
    pattern = ".*".join(re.escape(piece) for piece in promised.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


def _with_ports(code: str, ports: Mapping[str, str]) -> str:
    for port, free in ports.items():
        code = re.sub(rf"\b{port}\b", free, code)
    return code


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _path() -> str:
    """The commands of this environment, and the CLI that claude-agent-sdk brings, before all others."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    folders = spec.submodule_search_locations if spec is not None else None
    bundled = [str(Path(folder, "_bundled")) for folder in folders or ()]
    return os.pathsep.join([str(commands()), str(Path(sys.executable).parent), *bundled, os.environ["PATH"]])
