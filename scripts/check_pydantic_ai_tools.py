"""Test cc-model with the packages around pydantic-ai, which require an older pydantic-ai exactly.

    python3 scripts/check_pydantic_ai_tools.py

Runs the tests of cc-model, and the page "Model ids in pydantic-ai", with clai, CLAI2, pydantic-evals and the harness,
in a separate environment; all else is as pinned by the workspace. Their pydantic-ai is the oldest that cc-model allows.
Needs uv and an index.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from commands import CheckError, check_each, create, finish, run, temporary_folder
from workspace import ROOT, read_members, read_toml, required_name, workspace_pins

TOOLS = (
    "clai==2.62.0", "pydantic-ai-slim[cli,mcp]", "pydantic-clai2==0.62.0", "pydantic-evals==2.62.0",
    "pydantic-ai-harness[coder]==0.62.0",
)  # fmt: skip
# clai requires all of pydantic-ai, whose libraries allow no newer tenacity.
UNPINNED = {"pydantic-ai-slim", "pydantic-graph", "tenacity"}


async def check(folder: Path) -> list[str]:
    groups = read_toml(ROOT / "pyproject.toml")["dependency-groups"]
    members = [word for path in read_members() for word in ("--editable", str(path))]
    others = [tool for tool in groups["test"] if not tool.startswith(("cc-", "pydantic-ai"))]
    pins = [pin for pin in workspace_pins() if required_name(pin) not in UNPINNED]
    python = await create(folder, [*members, *others, "starlette", "uvicorn", *TOOLS], pins, ())
    pytest = [python, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-q", "-rs"]
    commands = {
        "page": [*pytest, "-m", "", "-k", "model-ids", "scripts/tests/test_docs.py"],
        "cc-model": [*pytest, "packages/cc-model"],
    }
    return await check_each({name: partial(_run, command) for name, command in commands.items()})


async def _run(command: list[str]) -> str:
    output = await run(command, ROOT)
    # A skipped page was not tested; only one test needs a newer pydantic-ai.
    skipped = [line for line in output.splitlines() if line.startswith("SKIPPED") and "from 2.64 on" not in line]
    if skipped:
        raise CheckError(f"not run completely:\n{output}")
    return output


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    with temporary_folder() as name:
        return finish(check(Path(name).resolve()))


if __name__ == "__main__":
    sys.exit(main())
