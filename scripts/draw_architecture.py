"""Write docs/architecture.md and its picture docs/rooms.svg from the imports and docstrings of the packages.

    uv run scripts/draw_architecture.py [--check]

A package, or a folder in it (a room), stands above all that it imports. The states of a turn come from the table in
`cc_session.session.sent_message`.
"""

import argparse
import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

from cc_session.session.sent_message import SESSION_STATES, TRANSITIONS, TurnEvent, TurnState
from workspace import ROOT

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "rooms.svg"

# Narrow, so that a phone shows it in a readable size.
_WIDTH = 420
_BOX, _GAP, _MARGIN, _HEADER = 26, 6, 10, 24

_STYLE = """\
    .package { fill: #fdf3ec; stroke: #d97757; stroke-width: 1.5; }
    .room { fill: #ffffff; stroke: #c9c4ba; }
    .h { font-size: 14px; font-weight: 600; fill: #23211d; }
    .p { font-size: 13px; fill: #55514a; text-anchor: middle; }
    @media (prefers-color-scheme: dark) {
      .package { fill: #33241c; } .room { fill: #22211f; stroke: #57534b; }
      .h { fill: #f2efe8; } .p { fill: #bdb7ab; }
    }
"""

_PAGE = """\
# Architecture

![The packages and their rooms; each stands above all that it imports](rooms.svg){{ width="{width}" }}

A package imports only packages below it, and a folder in it (a room) only rooms below it or in its row. The picture
and the tables are made from imports and docstrings by `scripts/draw_architecture.py`; a test compares them.

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
    """A package or a room, by its dotted name."""

    name: str
    imports: frozenset[str]
    """Siblings that it imports, directly or not."""
    text: str
    """First paragraph of its docstring."""

    @property
    def short(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


def levels(parts: Iterable[Part]) -> list[list[Part]]:
    """Return rows of parts, the highest first. Each part stands in the lowest row that is above all its imports.

    Parts that import each other stand in one row.
    """
    left = {part.name: part for part in parts}
    rows: list[list[Part]] = []
    while left:
        below = {name: _reached(name, left) for name in left}
        row = [left[name] for name in sorted(left) if all(name in below[other] for other in below[name])]
        rows.insert(0, row)
        for part in row:
            del left[part.name]
    return rows


def _reached(name: str, parts: Mapping[str, Part]) -> set[str]:
    """Return the parts that one of them imports, directly or through others."""
    reached: set[str] = set()
    new = {name}
    while new:
        new = {other for one in new for other in parts[one].imports if other in parts} - reached
        reached |= new
    return reached - {name}


def read_parts() -> tuple[list[Part], Mapping[str, list[Part]]]:
    """Return the packages, and the rooms of each."""
    folders = {path.name: path for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").is_file()}
    graph = grimp.build_graph(*sorted(folders), cache_dir=None)
    rooms = {
        package: [
            Part(name, _imported(graph, name, siblings), _first_paragraph(folder / name.rpartition(".")[2]))
            for name in sorted(siblings)
        ]
        for package, folder in folders.items()
        if (siblings := {child for child in graph.find_children(package) if graph.find_children(child)})
    }
    packages = [
        Part(name, _imported(graph, name, {*folders}), _first_paragraph(folder)) for name, folder in folders.items()
    ]
    return packages, rooms


def _imported(graph: grimp.ImportGraph, name: str, siblings: set[str]) -> frozenset[str]:
    return frozenset(
        other
        for other in siblings - {name}
        if graph.direct_import_exists(importer=name, imported=other, as_packages=True)
    )


def _first_paragraph(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def draw(packages: Iterable[Part], rooms: Mapping[str, list[Part]]) -> str:
    """Return the picture as SVG."""
    shapes: list[str] = []
    top = _MARGIN
    for row in levels(packages):
        heights = [_HEADER + len(levels(rooms.get(part.name, ()))) * (_BOX + _GAP) + _GAP for part in row]
        width = (_WIDTH - _MARGIN * (len(row) + 1)) / len(row)
        for number, part in enumerate(row):
            left = _MARGIN + number * (width + _MARGIN)
            shapes.append(_box("package", left, top, width, max(heights)))
            shapes.append(f'<text class="h" x="{left + 8:g}" y="{top + 17:g}">{escape(part.name)}</text>')
            shapes += _rooms_of(rooms.get(part.name, ()), left + _GAP, top + _HEADER, width - 2 * _GAP)
        top += max(heights) + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top:g}" role="img" aria-labelledby="t" '
        'font-family="system-ui, sans-serif">\n'
        '  <title id="t">Packages and their rooms, each above all that it imports</title>\n'
        f"  <style>\n{_STYLE}  </style>\n" + "".join(f"  {shape}\n" for shape in shapes) + "</svg>\n"
    )


def _rooms_of(rooms: Iterable[Part], left: float, top: float, width: float) -> list[str]:
    shapes: list[str] = []
    for row in levels(rooms):
        each = (width - _GAP * (len(row) - 1)) / len(row)
        for number, part in enumerate(row):
            x = left + number * (each + _GAP)
            shapes.append(_box("room", x, top, each, _BOX))
            shapes.append(f'<text class="p" x="{x + each / 2:g}" y="{top + 17:g}">{escape(part.short)}</text>')
        top += _BOX + _GAP
    return shapes


def _box(kind: str, left: float, top: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="5"/>'


def page(packages: Iterable[Part], rooms: Mapping[str, list[Part]]) -> str:
    """Return the page in Markdown."""
    lines: list[str] = []
    for row in levels(packages):
        for part in row:
            lines.append(f"| **{part.name}** | {part.text} | |")
            for room in (room for line in levels(rooms.get(part.name, ())) for room in line):
                below = ", ".join(sorted(f"`{name.rpartition('.')[2]}`" for name in room.imports))
                lines.append(f"| `{room.name.replace('.', '/')}` | {room.text} | {below} |")
    states = [
        f"| **{state.value}** | "
        + " | ".join(TRANSITIONS[state, event].value if (state, event) in TRANSITIONS else "" for event in TurnEvent)
        + f" | `{SESSION_STATES[state]}` |"
        for state in TurnState
    ]
    return _PAGE.format(
        width=_WIDTH,
        rooms="\n".join(lines),
        events=" | ".join(event.value for event in TurnEvent),
        lines=" | ".join("---" for _ in TurnEvent),
        states="\n".join(states),
        meanings="\n".join(_meanings()),
    )


def _meanings() -> Iterable[str]:
    """The docstrings of the states and events, which follow their values in the source."""
    module = sys.modules[TurnState.__module__]
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    enums = {TurnState.__name__, TurnEvent.__name__}
    for enum in (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in enums):
        for value, text in zip(enum.body[1::2], enum.body[2::2], strict=True):
            assert isinstance(value, ast.Assign) and isinstance(text, ast.Expr)  # noqa: S101  # the shape of the enums
            yield f"- *{ast.literal_eval(value.value)}*: {' '.join(ast.literal_eval(text.value).split())}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with `--check` return 1 if they differ from the code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    options = parser.parse_args(arguments)
    packages, rooms = read_parts()
    texts = {PAGE: page(packages, rooms), PICTURE: draw(packages, rooms)}
    old = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf-8") != text]
    for path in old:
        if options.check:
            print(f"{path.relative_to(ROOT)} is out of date: run scripts/draw_architecture.py")
        else:
            path.write_text(texts[path], encoding="utf-8")
    return 1 if options.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
