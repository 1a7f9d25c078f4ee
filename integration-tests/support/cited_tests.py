"""Look up tests that a document cites as `path/test_module.py::test_name`, without running them."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"`([\w/.-]+\.py::\w+)`")

Function = ast.FunctionDef | ast.AsyncFunctionDef

_FOLDERS = [ROOT, ROOT / "integration-tests", ROOT / "integration-tests" / "support"]


@cache
def functions(path: Path) -> dict[str, Function]:
    """Return a module's functions by name."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in ast.walk(module) if isinstance(node, Function)}


def cited(name: str) -> Function:
    """Return the test or the scenario with a cited name."""
    path, _, function = name.partition("::")
    [file] = [folder / path for folder in _FOLDERS if (folder / path).exists()]
    return functions(file)[function]
