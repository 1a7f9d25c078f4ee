"""Check prose for readers: docstrings and comments in Python files, and Markdown pages; and names in the code.

    python3 scripts/check_prose.py [PATH …]

Prints for each part how often some words stand in 1,000 words, and how many names in 10,000 lines of code are
participles such as `found`, which hide the noun that a reader needs. A part fails above the limits. No docstring may
begin with "what", "who", "whoever", "nobody", "somebody" or "those that", and no comment with "they", "those", "which"
or "otherwise". Both say "is not a …" and not "is no …".
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from workspace import ROOT

# The most in 1,000 words; genitive chains and pronouns take the place of plain nouns.
WORDS = {"of": 26.0, "its": 10.0, "one": 8.0}
# The most in 10,000 lines.
NAMES = 40.0
PARTICIPLES = frozenset({"asked", "found", "given", "heard", "held", "kept", "known", "left", "said", "seen", "told"})
_SOURCES = "packages/*/src"
# Each package's source has to pass alone, and all files that match a pattern together.
_PATTERNS = (
    _SOURCES, "packages/*/tests", "scripts", "examples", "integration-tests", "docs", "specs", "*.md", "packages/*/*.md"
)  # fmt: skip
_BAD_BEGINNINGS = {
    "docstring": re.compile(r"(what|who|whoever|whom|whose|nobody|somebody|those (that|who|which))\b", re.IGNORECASE),
    "comment": re.compile(r"#:? *(they|those|which|otherwise)\b", re.IGNORECASE),
}
_IS_NO = re.compile(r"(?<!there )\b(is|are) no (?!longer|more|less|faster|better)\w+", re.IGNORECASE)
_WORD = re.compile(r"[a-z][a-z'-]*")
# Parts of a page that are not prose.
_CODE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders (default: the project)")
    parts = {str(path): [path] for path in parser.parse_args(arguments).paths} or default_parts()
    problems: list[str] = []
    for name, paths in parts.items():
        words, names, lines = Counter[str](), 0, 0
        for file in (file for path in paths for file in files_of(path)):
            text = file.read_text("utf-8")
            tree = ast.parse(text) if file.suffix == ".py" else None
            for kind, line, prose in texts_of(text, tree):
                words.update(_WORD.findall(prose.lower()))
                problems += [f"{file}:{line}: {problem}" for problem in problems_of(kind, prose)]
            if tree is not None:
                lines += text.count("\n")
                names += sum(used.strip("_") in PARTICIPLES for used in names_of(tree))
        rates = {word: 1_000 * words[word] / max(1, words.total()) for word in WORDS}
        figures = {**rates, "participles": 10_000 * names / max(1, lines)}
        print(
            "  ".join(f"{word} {figure:5.1f}" for word, figure in figures.items()), f"{words.total():7,} words ", name
        )
        problems += [
            f"{name}: {figures[word]:.1f} is too often for {word!r}, at most {most:g} is allowed: use nouns"
            for word, most in {**WORDS, "participles": NAMES}.items()
            if figures[word] > most
        ]
    print(*problems, sep="\n")
    return 1 if problems else 0


def default_parts() -> dict[str, list[Path]]:
    """Return the project's parts by name: the source of each package, and the files for each pattern."""
    sources = {str(path.relative_to(ROOT)): [path] for path in sorted(ROOT.glob(_SOURCES))}
    return {**sources, **{pattern: [*ROOT.glob(pattern)] for pattern in _PATTERNS}}


def files_of(part: Path) -> list[Path]:
    """Return the Python files and pages in a folder, or the path itself if it is a file."""
    if part.is_file():
        return [part]
    return sorted(path for path in part.rglob("*") if path.suffix in (".py", ".md") and ".venv" not in path.parts)


def problems_of(kind: str, prose: str) -> Iterator[str]:
    """Yield the wrong words in a docstring or in a block of comments."""
    if kind in _BAD_BEGINNINGS and (match := _BAD_BEGINNINGS[kind].match(prose)):
        yield f"a {kind} begins with {match[0].lstrip('#: ')!r}"
    if kind != "page" and (match := _IS_NO.search(re.sub(r"\s+#?\s*", " ", prose))):
        yield f"write '{match[1]} not …' instead of {match[0]!r}"


def texts_of(text: str, tree: ast.AST | None) -> Iterator[tuple[str, int, str]]:
    """Yield the texts in a file, each with kind and line: docstrings and blocks of comments, or the page."""
    if tree is None:
        yield "page", 1, _CODE.sub(" ", text)
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield "docstring", node.lineno, node.value.value.strip()
    blocks: list[tuple[int, list[str]]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line, alone = token.start[0], token.line.lstrip().startswith("#")
            if not (alone and blocks and blocks[-1][0] + len(blocks[-1][1]) == line):
                blocks.append((line, []))
            blocks[-1][1].append(token.string)
    yield from (("comment", line, "\n".join(block)) for line, block in blocks)


def names_of(tree: ast.AST) -> Iterator[str]:
    """Yield each use of a variable, an attribute or a parameter."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=str(name)) | ast.Attribute(attr=str(name)) | ast.arg(arg=str(name)):
                yield name
            case _:
                pass


if __name__ == "__main__":
    sys.exit(main())
