"""Run the page "Model ids in pydantic-ai" with the packages around pydantic-ai, in a separate environment.

    python3 scripts/check_pydantic_ai_tools.py

They require an older pydantic-ai exactly, so an override replaces that version; the page says so. All else is as pinned
by the workspace. Needs uv and an index.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from commands import create, finish, run
from workspace import ROOT, read_members, read_toml, workspace_pins

PAGE = "model-ids"
PINS = ("clai==2.62.0", "pydantic-evals==2.62.0", "pydantic-ai-harness[coder]==0.62.0")
OVERRIDES = ("pydantic-ai-slim[anthropic,cli,mcp]==2.68.0", "pydantic-evals==2.62.0")


async def check(folder: Path) -> list[str]:
    groups = read_toml(ROOT / "pyproject.toml")["dependency-groups"]
    members = [word for path in read_members() for word in ("--editable", str(path))]
    tools = [tool for tool in groups["test"] if not tool.startswith(("cc-", "pydantic-ai"))]
    python = await create(folder, [*members, *tools, "starlette", "uvicorn", *PINS], workspace_pins(), OVERRIDES)
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-q", "-m", "", "-rs", "-k", PAGE]
    output = await run([*command, "scripts/tests/test_docs.py"], ROOT)
    print(output.rstrip().rpartition("\n")[2])
    return [] if "1 passed" in output else [f"the page was not run completely:\n{output}"]


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        return finish(check(Path(name).resolve()))


if __name__ == "__main__":
    sys.exit(main())
