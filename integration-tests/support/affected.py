"""A pytest plugin: `--affected` runs only the tests whose imports reach a module that git shows as changed.

A test that reads a file or starts a program does not import it, so this choice is for a developer's next minute; the
whole run decides.
"""

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = {path.name: path for path in _ROOT.glob("packages/*/src/*") if (path / "__init__.py").exists()}
_SUPPORT = ("integration-tests/support", "scripts")  # on `pythonpath`
_FOR_ALL = ("conftest.py", "pyproject.toml")  # at the root


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--affected",
        nargs="?",
        const="HEAD",
        metavar="COMMIT",
        help="run only the tests whose imports reach a module changed since the commit (HEAD)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    commit: str | None = config.getoption("affected")
    if commit is None:
        return
    changed = _changed_since(commit)
    if changed.intersection(_FOR_ALL):
        return
    modules = _reaching(changed)
    kept = [item for item in items if _is_affected(item.path, changed, frozenset(modules))]
    config.hook.pytest_deselected(items=[item for item in items if item not in {*kept}])
    items[:] = kept


def _changed_since(commit: str) -> set[str]:
    """Return the files changed since a commit or not in git, as paths from the root."""
    commands = ["git diff --name-only --relative", commit], ["git ls-files --others --exclude-standard"]
    return {
        line
        for words, *rest in commands
        for line in subprocess.run(
            [*words.split(), *rest], cwd=_ROOT, check=True, capture_output=True, text=True
        ).stdout.splitlines()
    }


def _reaching(changed: Iterable[str]) -> set[str]:
    """Return the changed modules of our packages, and the modules whose imports reach them."""
    import grimp  # only this option needs it

    graph = grimp.build_graph(*_SOURCES)
    found: set[str] = set()
    for path in changed:
        parts = Path(path).parts
        if parts[0] == "packages" and parts[2] == "src" and path.endswith(".py"):
            module = ".".join(parts[3:]).removesuffix(".py").removesuffix(".__init__")
            found.add(module)
            if module in graph.modules:  # and not deleted
                found |= graph.find_downstream_modules(module)
    return found


@cache
def _imports(path: Path) -> frozenset[str]:
    """Return the names that a file imports: modules, and what may be modules."""
    return frozenset(_imported(ast.parse(path.read_bytes())))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass


@cache
def _files_of(test: Path) -> frozenset[Path]:
    """Return a test's file, the conftest files above it, and the support files that these import, also indirectly."""
    found: set[Path] = set()
    waiting = [test, *(path for folder in test.parents for path in folder.glob("conftest.py") if _ROOT in path.parents)]
    while waiting:
        if (path := waiting.pop()) not in found:
            found.add(path)
            folders = [path.parent, *(_ROOT / name for name in _SUPPORT)]
            names = (name.replace(".", "/") for name in _imports(path))
            waiting += [file for name in names for folder in folders if (file := folder / f"{name}.py").exists()]
    return frozenset(found)


def _is_affected(test: Path, changed: set[str], modules: frozenset[str]) -> bool:
    files = _files_of(test)
    return any(str(file.relative_to(_ROOT)) in changed or _imports(file) & modules for file in files)
