"""The requirements on logs and the tests that cite them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = [*(ROOT / "packages" / "cc-convert" / "tests").glob("test_*.py"), *Path(__file__).parent.glob("test_logs_*.py")]
ID = re.compile(r"LOG-\d\d")


def test_every_requirement_on_logs_is_named_by_a_test() -> None:
    """Also, no test cites an unknown requirement."""
    stated = re.findall(
        r"^\| \*\*(LOG-\d\d)\*\*", (ROOT / "specs" / "010-logs.md").read_text("utf-8"), flags=re.MULTILINE
    )
    named = {one for path in TESTS for one in ID.findall(path.read_text("utf-8"))}

    assert len(stated) == len(set(stated)) > 40
    assert sorted(named) == sorted(stated)
