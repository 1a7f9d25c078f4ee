import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.worlds

README = Path(__file__).parents[1] / "README.md"
CHECK = Path(__file__).parents[3] / "scripts" / "compat_matrix.py"


def rows() -> list[list[str]]:
    lines = [line for line in README.read_text("utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def run(*arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, check=True, text=True).stdout


def test_the_example_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)

    assert run("-c", example).startswith("True An unknown type ")


def test_the_table_is_correct_for_five_versions() -> None:
    """SDK-ADD-11, SDK-ADD-12: from the oldest to the newest version; the script wrote the table."""
    header, _, *versions = rows()
    table = [dict(zip(header, version, strict=True)) for version in versions]

    assert len(table) == 5
    assert table[0]["SDK"] == "0.0.23"
    assert {row["shield"] for row in table} == {"applied"}
    assert all(row["query()"].startswith("Sunny.") for row in table)
    assert {row["malformed message"] for row in table} == {"MessageParseError"}
    assert {row["200 at once"] for row in table} == {"200 results, 200 warnings"}


def test_the_last_row_is_correct_for_the_installed_sdk() -> None:
    """SDK-ADD-12"""
    pytest.importorskip("cc_convert")
    if not CHECK.exists():
        pytest.skip("the package is tested outside the repository")
    header, *_, newest = rows()

    versions = json.loads(run(str(CHECK), "--installed"))

    unversioned = [name for name in header if name not in ("SDK", "mcp")]
    row = dict(zip(header, newest, strict=True))
    assert [str(versions[name]) for name in unversioned] == [row[name] for name in unversioned]
