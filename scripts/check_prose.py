"""Check the prose for readers: docstrings and comments of Python files, and pages in Markdown.

    python3 scripts/check_prose.py [--counts] [PATH …]

"what" as a subject hides the noun that a reader needs, so it may stand at most four times in 1,000 words of a package.
No docstring may begin with it, nor with "who", "whoever", "nobody", "somebody" or "those that".
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

ROOT = Path(__file__).parent.parent
MOST_PER_1000 = 4.0
_BAD_BEGINNING = re.compile(r"(what|who|whoever|whom|whose|nobody|somebody|those (that|who|which))\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
# Parts of a page that are not prose.
_CODE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->", re.DOTALL)
_PAGES = ("README.md", "SKILL.md", "docs", "specs")
_CODE_FOLDERS = ("packages/*", "scripts", "examples", "integration-tests")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check, and return 1 if a text fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--counts", action="store_true", help="print the figures of all parts")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders (default: the project)")
    options = parser.parse_args(arguments)
    problems: list[str] = []
    for part in options.paths or default_parts():
        words, whats = Counter[str](), 0
        for file in files_of(part):
            for line, text in texts_of(file):
                words["all"] += len(_WORD.findall(text))
                whats += len(_WHAT.findall(text))
                if file.suffix == ".py" and line > 0 and _BAD_BEGINNING.match(text):
                    problems.append(f"{file}:{line}: a docstring begins with {text.split()[0]!r}")
        rate = 1000 * whats / max(1, words["all"])
        if rate > MOST_PER_1000:
            problems.append(
                f"{part}: {rate:.1f} times 'what' in 1,000 words, at most {MOST_PER_1000:g} are allowed: use nouns"
            )
        if options.counts:
            sys.stdout.write(f"{rate:5.1f}  {words['all']:7,} words  {part}\n")
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


def default_parts() -> list[Path]:
    """Return the packages, the other folders with code, and the pages, each of which has to pass alone."""
    code = [path for pattern in _CODE_FOLDERS for path in sorted(ROOT.glob(pattern)) if path.is_dir()]
    return [*code, *(ROOT / name for name in _PAGES)]


def files_of(part: Path) -> list[Path]:
    """Return the Python files and pages of a folder, or the path itself if it is a file."""
    if part.is_file():
        return [part]
    return sorted(path for path in part.rglob("*") if path.suffix in (".py", ".md") and ".venv" not in path.parts)


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file: docstrings with their line numbers, all other texts with 0."""
    text = file.read_text("utf-8")
    if file.suffix == ".md":
        yield 0, _CODE.sub(" ", text)
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield node.lineno, docstring.strip()
            case _:
                pass
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield 0, " ".join(token.string for token in tokens if token.type == tokenize.COMMENT)


if __name__ == "__main__":
    sys.exit(main())
