"""Run the page "Model ids in pydantic-ai" with the packages around pydantic-ai, in an environment of their own.

    python3 scripts/check_pydantic_ai_tools.py

They require an older pydantic-ai exactly, so its version is overridden; the page says so. All else is as pinned by the
workspace. Needs uv and an index.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from commands import finish, run
from workspace import ROOT, find_uv, read_members, read_toml

PAGE = "model-ids"
PINS = ("clai==2.62.0", "pydantic-evals==2.62.0", "pydantic-ai-harness[coder]==0.62.0")
OVERRIDES = ("pydantic-ai-slim[anthropic,cli,mcp]==2.68.0", "pydantic-evals==2.62.0")


async def check(folder: Path) -> list[str]:
    """Create the environment, and run the page in it."""
    settings = read_toml(ROOT / "pyproject.toml")
    python = str(folder / "venv" / "bin" / "python")
    files = {
        "constraints.txt": settings["tool"]["uv"]["constraint-dependencies"],
        "build.txt": settings["tool"]["uv"]["build-constraint-dependencies"],
        "overrides.txt": OVERRIDES,
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    await run([*find_uv(), "venv", "--quiet", "--no-project", f"--python={sys.executable}", "venv"], folder)
    limits = ["--constraints=constraints.txt", "--build-constraints=build.txt", "--overrides=overrides.txt"]
    members = [word for path in read_members() for word in ("--editable", str(path))]
    tools = [one for one in settings["dependency-groups"]["test"] if not one.startswith(("cc-", "pydantic-ai"))]
    server = ["starlette", "uvicorn"]
    await run([*find_uv(), "pip", "install", f"--python={python}", *limits, *members, *tools, *server, *PINS], folder)
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-q", "-m", "", "-rs", "-k", PAGE]
    output = await run([*command, "scripts/tests/test_docs.py"], ROOT)
    print(output.rstrip().rpartition("\n")[2])
    return [] if "1 passed" in output else [f"a part of the page was left out:\n{output}"]


def main() -> int:
    """Run the check; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        return finish(check(Path(name).resolve()))


if __name__ == "__main__":
    sys.exit(main())
