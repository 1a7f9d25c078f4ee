"""Write docs/architecture.md from the packages' imports and docstrings.

    uv run scripts/draw_architecture.py [--check]

A package, or a folder in it (a room), stands above all that it imports. The states of a turn come from the table in
`cc_session.session.sent_message`.
"""

import argparse
import ast
import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grimp

from cc_session.session.sent_message import SESSION_STATES, TRANSITIONS, TurnEvent, TurnState
from workspace import ROOT

PAGE = ROOT / "docs" / "architecture.md"

_PAGE = """\
# Architecture

Packages in rows, with their folders (rooms) from the highest to the lowest:

{picture}

A package imports only packages in rows below, and a room only rooms to the right, or beside it (`|`). The picture and
the tables are made from imports and docstrings by `scripts/draw_architecture.py`; a test compares them.

## Rooms

| Room | Contents | Imports the rooms |
| --- | --- | --- |
{rooms}

## The life of a turn

A session has one turn at a time. The table has the next state for each event; an empty cell leaves the state as it is.
The last column is `Session.state` meanwhile; a session whose process has ended is `dead`.

| State | {events} | `Session.state` |
| --- | {lines} | --- |
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

    Parts that import each other stand in the same row.
    """
    remaining = {part.name: part for part in parts}
    below = {name: {*part.imports} for name, part in remaining.items()}
    for middle, name in itertools.product(below, below):
        below[name] |= below[middle] if middle in below[name] else set()
    rows: list[list[Part]] = []
    while remaining:
        # A part may stand here if each remaining part below it also stands above it.
        names = [
            name for name in sorted(remaining) if all(name in below[other] for other in below[name] & remaining.keys())
        ]
        rows.insert(0, [remaining.pop(name) for name in names])
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
    lines: list[str] = []
    for row in levels(packages):
        for part in row:
            lines.append(f"| **{part.name}** | {part.text} | |")
            for room in (room for line in levels(rooms[part.name]) for room in line):
                below = ", ".join(sorted(f"`{name.rpartition('.')[2]}`" for name in room.imports))
                lines.append(f"| `{room.name.replace('.', '/')}` | {room.text} | {below} |")
    states = [
        f"| **{state.value}** | "
        + " | ".join(TRANSITIONS[state, event].value if (state, event) in TRANSITIONS else "" for event in TurnEvent)
        + f" | `{SESSION_STATES[state]}` |"
        for state in TurnState
    ]
    return _PAGE.format(
        picture=draw(packages, rooms),
        rooms="\n".join(lines),
        events=" | ".join(event.value for event in TurnEvent),
        lines=" | ".join("---" for _ in TurnEvent),
        states="\n".join(states),
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
