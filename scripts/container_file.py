"""The steps of a container file, executed without a container engine.

Each stage is an overlay over the files of this machine, which stay as they are, in namespaces of its own. This machine,
with the running interpreter as its Python, takes the place of the image that `FROM` names: the steps are real, the base
image is not. Needs root, and the network where a step does.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Stage", "Step", "build", "missing", "parse"]

_STEP_SECONDS = 300.0
_USED = frozenset({"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "HEALTHCHECK", "ENTRYPOINT", "CMD"})
_WITHOUT_EFFECT = frozenset({"VOLUME", "EXPOSE"})
# Settings of this machine without which packages cannot be downloaded.
_PASSED_ON = re.compile(r"(PIP_|UV_|SSL_CERT_)\w+|(https?|no)_proxy", re.IGNORECASE)
_PROGRAMS = ("unshare", "chroot", "mount")


@dataclass(frozen=True)
class Step:
    """An instruction, and the rest of its line."""

    instruction: str
    rest: str

    @property
    def words(self) -> list[str]:
        """The parts of a list in JSON."""
        return json.loads(self.rest)


def parse(text: str) -> Iterator[Step]:
    """Yield the steps of a container file.

    Raises:
        ValueError: It has an instruction that is not known here.
    """
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    for line in filter(None, map(str.strip, lines.splitlines())):
        instruction, _, rest = line.partition(" ")
        if instruction in _USED:
            yield Step(instruction, rest.strip())
        elif instruction not in _WITHOUT_EFFECT:
            raise ValueError(f"unknown instruction: {line}")


def missing() -> str | None:
    """Return the reason why steps cannot be executed here, or None."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux can mount an overlay"
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"these programs are missing: {', '.join(absent)}" if absent else None


@dataclass
class Stage:
    """The files and settings of a stage."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    user: str = "root"
    work: str = "/"
    health: list[str] = field(default_factory=list[str])
    entrypoint: list[str] = field(default_factory=list[str])
    arguments: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        for name in ("files", "work", "root"):
            (self.folder / name).mkdir(parents=True)
        python = Path(sys.base_prefix).resolve()
        self.environment["PATH"] = f"{python}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        # In an image other users can reach the interpreter.
        self.outside("".join(f"chmod o+x '{{root}}{folder}' && " for folder in python.parents) + "true")

    @property
    def files(self) -> Path:
        """The changed files."""
        return self.folder / "files"

    def command(self, words: Sequence[str], extra: dict[str, str] | None = None) -> list[str]:
        """Return the command line that runs a command in the stage, as its user; the command is process 1."""
        settings = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        variables = {**settings, "HOME": self._home(), **self.environment, **(extra or {})}
        inner = [
            *("chroot", f"--userspec={self.user}", str(self.folder / "root")),
            *("env", "-i", "-C", self.work, *(f"{name}={value}" for name, value in variables.items()), *words),
        ]
        return self._in_namespaces(f"exec {shlex.join(inner)}")

    def outside(self, script: str) -> None:
        """Run a shell script on this machine, in which `{root}` is the root folder of the stage.

        Raises:
            RuntimeError: It failed.
        """
        _run(self._in_namespaces(script.replace("{root}", str(self.folder / "root"))))

    def _in_namespaces(self, script: str) -> list[str]:
        root = shlex.quote(str(self.folder / "root"))
        mounts = (
            f"mount -t overlay overlay -o lowerdir=/,upperdir={self.files},workdir={self.folder}/work {root} && "
            f"mount --rbind /dev {root}/dev && mount -t proc proc {root}/proc && "
        )
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mounts + script]

    def _home(self) -> str:
        users = self.files / "etc/passwd"
        lines = (users if users.exists() else Path("/etc/passwd")).read_text("utf-8").splitlines()
        return next(line.split(":")[5] for line in lines if line.startswith(f"{self.user}:"))


def build(text: str, context: Path, folder: Path) -> Stage:
    """Execute a container file, and return its last stage.

    Args:
        text: The container file; it begins with `FROM`.
        context: The folder that `COPY` copies from.
        folder: An empty folder for the files of all stages, at a place that supports overlays.

    Raises:
        RuntimeError: A step failed; the message has its output.
        ValueError: The file has an instruction that is not known here.
    """
    first, *steps = parse(text)
    stages = {name_of(first): (stage := Stage(folder / name_of(first)))}
    for step in steps:
        match step.instruction:
            case "FROM":
                stages[name_of(step)] = stage = Stage(folder / name_of(step))
            case "RUN":
                _run(stage.command(["sh", "-c", step.rest]))
            case "COPY":
                _copy(stage, step.rest.split(), stages, context)
            case "ENV":
                stage.environment |= dict(setting.split("=", 1) for setting in step.rest.split())
            case "USER":
                stage.user = step.rest
            case "WORKDIR":
                stage.work = step.rest
                stage.outside(f"mkdir -p '{{root}}{step.rest}'")
            case "HEALTHCHECK":
                stage.health = json.loads(step.rest.partition(" CMD ")[2])
            case "ENTRYPOINT":
                stage.entrypoint = step.words
            case _:
                stage.arguments = step.words
    return stage


def name_of(step: Step) -> str:
    """Return the name of the stage that a step begins."""
    return step.rest.partition(" AS ")[2] or "last"


def _copy(stage: Stage, words: list[str], stages: dict[str, Stage], context: Path) -> None:
    origin = context
    if words[0].startswith("--from="):
        # The source was made by the steps, so it is among the changed files.
        origin = stages[words.pop(0).removeprefix("--from=")].files
    source, target = words
    path = origin / source.lstrip("/")
    inside = f"{{root}}{target}{path.name if target.endswith('/') else ''}"
    stage.outside(f"mkdir -p \"$(dirname '{inside}')\" && cp -a --no-preserve=ownership '{path}' '{inside}'")


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_STEP_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command[-1]}\nfailed with {done.returncode}:\n{done.stdout}{done.stderr}")
