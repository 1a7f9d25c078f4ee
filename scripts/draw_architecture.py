"""Write docs/architecture.md from the packages' imports and docstrings.

    uv run scripts/draw_architecture.py [--check]

A package, or a folder in it (a room), stands above all that it imports. The states of a turn come from the table in
`cc_session.session.sent_message`.
"""

import argparse
import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import grimp

from cc_session.session.sent_message import SESSION_STATES, TRANSITIONS, TurnEvent, TurnState
from workspace import ROOT, markdown_table

PAGE = ROOT / "docs" / "architecture.md"

_PAGE = """\
# Architecture

Packages in rows, with their folders (rooms) from the highest to the lowest:

{picture}

A package imports only packages in rows below, and a room only rooms after a `>`; `|` separates rooms that do not import
each other. All on this page is made from imports and docstrings by `scripts/draw_architecture.py`; a test
compares them.

## Rooms

{rooms}

## The life of a turn

A session has one turn at a time. The table has the next state for each event; an empty cell leaves the state as it is.
The last column is `Session.state` meanwhile; a session whose process has ended is `dead`.

{states}

{meanings}
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A package or a room, by dotted name."""

    name: str
    imports: frozenset[str]
    """Siblings that it imports, directly or not."""
    text: str
    """First paragraph in the docstring."""


def levels(parts: Iterable[Part]) -> list[list[Part]]:
    """Return rows of parts, the highest first. Each part stands in the lowest row that is above all its imports.

    Raises:
        CycleError: Some parts import each other.
    """
    named = {part.name: part for part in parts}
    sorter = TopologicalSorter({name: part.imports for name, part in named.items()})
    sorter.prepare()
    rows: list[list[Part]] = []
    while names := sorter.get_ready():
        rows.insert(0, [named[name] for name in sorted(names)])
        sorter.done(*names)
    return rows


def read_parts() -> tuple[list[Part], Mapping[str, list[Part]]]:
    """Return the packages, and the rooms by package."""
    folders = {path.name: path for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").is_file()}
    graph = grimp.build_graph(*sorted(folders), cache_dir=None)

    def read_part(name: str, siblings: set[str], folder: Path) -> Part:
        others = siblings - {name}
        imports = (
            other for other in others if graph.direct_import_exists(importer=name, imported=other, as_packages=True)
        )
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
        return Part(name, frozenset(imports), " ".join(text.partition("\n\n")[0].split()))

    rooms: dict[str, list[Part]] = {}
    for package, folder in folders.items():
        names = {child for child in graph.find_children(package) if graph.find_children(child)}
        rooms[package] = [read_part(name, names, folder / name.rpartition(".")[2]) for name in sorted(names)]
    return [read_part(name, {*folders}, folder) for name, folder in folders.items()], rooms


def draw(packages: Iterable[Part], rooms: Mapping[str, list[Part]]) -> str:
    """Return the picture as indented text: a line for each package, with an empty line between rows."""
    lines: list[str] = []
    for row in levels(packages):
        for part in row:
            inside = (" | ".join(room.name.rpartition(".")[2] for room in line) for line in levels(rooms[part.name]))
            lines.append(f"    {part.name:16}{' > '.join(inside)}".rstrip())
        lines.append("")
    return "\n".join(lines[:-1])


def page(packages: Iterable[Part], rooms: Mapping[str, list[Part]]) -> str:
    contents: list[str] = []
    for part in chain.from_iterable(levels(packages)):
        contents.append(f"- **{part.name}**: {part.text}")
        below = chain.from_iterable(levels(rooms[part.name]))
        contents += [f"- `{room.name.replace('.', '/')}`: {room.text}" for room in below]
    states: list[Sequence[str]] = []
    for state in TurnState:
        following = (TRANSITIONS.get((state, event)) for event in TurnEvent)
        cells = (after.value if after else "" for after in following)
        states.append((f"**{state.value}**", *cells, f"`{SESSION_STATES[state]}`"))
    return _PAGE.format(
        picture=draw(packages, rooms),
        rooms="\n".join(contents),
        states="\n".join(markdown_table(("State", *(event.value for event in TurnEvent), "`Session.state`"), *states)),
        meanings="\n".join(_meanings()),
    )


def _meanings() -> Iterable[str]:
    """Yield the docstrings of states and events, which follow the values in the source."""
    module = sys.modules[TurnState.__module__]
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    enums = {TurnState.__name__, TurnEvent.__name__}
    for enum in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in enums):
        for value, text in zip(enum.body[1::2], enum.body[2::2], strict=True):
            assert isinstance(value, ast.Assign) and isinstance(text, ast.Expr)  # noqa: S101
            yield f"- *{ast.literal_eval(value.value)}*: {' '.join(ast.literal_eval(text.value).split())}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with `--check` return 1 if it differs from the code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page is out of date")
    options = parser.parse_args(arguments)
    text = page(*read_parts())
    if PAGE.is_file() and PAGE.read_text("utf-8") == text:
        return 0
    if options.check:
        print(f"{PAGE.relative_to(ROOT)} is out of date: run scripts/draw_architecture.py")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
