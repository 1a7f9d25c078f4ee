"""Prints a table of what holds for five versions of claude-agent-sdk, from the oldest that runs to the newest.

    python scripts/compat_matrix.py [VERSION ...]

Each version gets an environment of its own in a temporary folder, from its source distribution, which carries no CLI;
a wheel is 157 MB. Needs `uv` and an index. The table in the README of cc-compat is the output of this script.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parents[1]
CHECK = Path(__file__).with_name("compat_matrix_check.py")
PACKAGES = [str(ROOT / "packages" / name) for name in ("cc-types", "cc-convert", "cc-compat")]
# The oldest of all, the last with the defect that is still published, the first without it, and the first of the next
# series; then whatever is newest.
VERSIONS = ["0.0.23", "0.1.37", "0.1.44", "0.2.82", "newest"]


def run(*command: str, folder: Path) -> str:
    """Run a command, outside the repository since its pins would apply there; show what it wrote if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(version: str, folder: Path) -> dict[str, object]:
    """What holds for one version."""
    environment = folder / version
    python = str(environment / "bin" / "python")
    sdk = "claude-agent-sdk" if version == "newest" else f"claude-agent-sdk=={version}"
    run("uv", "venv", "--quiet", "--python", sys.executable, str(environment), folder=folder)
    install = ["uv", "pip", "install", "--quiet", "--python", python, "--no-binary", "claude-agent-sdk"]
    run(*install, sdk, *PACKAGES, folder=folder)
    return cast("dict[str, object]", json.loads(run(python, str(CHECK), folder=folder)))


def table(rows: list[dict[str, object]]) -> str:
    """The rows as Markdown."""
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Check the versions that were asked for, or the usual ones."""
    with tempfile.TemporaryDirectory(prefix="compat-matrix-") as folder:
        print(table([check(version, Path(folder)) for version in sys.argv[1:] or VERSIONS]))


if __name__ == "__main__":
    main()
