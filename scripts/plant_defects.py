"""Plant each defect of `scripts/defects` into a copy of the workspace, and check that its test fails there.

A row names a fault, the file, a text that is in it once, the text in its place, and the cheapest test that notices.
"""

import argparse
import asyncio
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from commands import CheckError, finish, run, temporary_folder
from workspace import ROOT, find_uv, read_toml


@dataclass(frozen=True)
class Defect:
    """A fault to plant, and the test that has to fail."""

    name: str
    file: str
    old: str
    new: str
    test: str

    def plant_in(self, root: Path) -> str:
        """Change the file below `root`; return its former text.

        Raises:
            CheckError: `old` is not in the file exactly once.
        """
        path = root / self.file
        source = path.read_text("utf-8")
        if (number := source.count(self.old)) != 1:
            raise CheckError(f"{self.name}: {self.file} has the text {number} times, and not once: {self.old!r}")
        path.write_text(source.replace(self.old, self.new), encoding="utf-8")
        return source


def read_defects() -> list[Defect]:
    """Return all defects of all tables, in the order of their names' files."""
    tables = [read_toml(path) for path in sorted((ROOT / "scripts" / "defects").glob("*.toml"))]
    return [Defect(**row) for table in tables for row in table["defect"]]


async def check(defects: list[Defect]) -> list[str]:
    """Run the tests in a copy of the workspace, without and with their defect; return what went wrong."""
    missed: list[str] = []
    with temporary_folder() as name:
        copy = Path(name) / "copy"
        without = shutil.ignore_patterns(".venv", "__pycache__", ".*_cache")
        await asyncio.to_thread(shutil.copytree, ROOT, copy, ignore=without, symlinks=True)
        await run([*find_uv(), "sync", "--quiet"], copy)
        pytest = [*find_uv(), "run", "--no-sync", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider"]
        await run([*pytest, *sorted({defect.test for defect in defects})], copy)
        for number, defect in enumerate(defects, 1):
            source = defect.plant_in(copy)
            try:
                await run([*pytest, "-n", "0", defect.test], copy)
            except CheckError as failure:
                print(f"{number:3}/{len(defects)} caught  {defect.name}", flush=True)
                if " failed" not in str(failure) and " error" not in str(failure):
                    missed.append(f"{defect.name}: the test did not run\n{failure}")
            else:
                print(f"{number:3}/{len(defects)} MISSED  {defect.name}", flush=True)
                missed.append(f"{defect.name}: {defect.test} passes with the defect in {defect.file}")
            finally:
                (copy / defect.file).write_text(source, encoding="utf-8")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only defects whose name or file contains one of these")
    parser.add_argument("--sample", type=int, metavar="N", help="only N of them, taken at random")
    parser.add_argument("--seed", type=int, default=0, help="seed for --sample; %(default)s if not given")
    arguments = parser.parse_args()
    words: list[str] = arguments.words
    defects = [each for each in read_defects() if not words or any(word in each.name + each.file for word in words)]
    if arguments.sample is not None:
        defects = random.Random(arguments.seed).sample(defects, min(arguments.sample, len(defects)))
    return finish(check(defects))


if __name__ == "__main__":
    sys.exit(main())
