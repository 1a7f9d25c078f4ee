"""House rules: tests run the real CLI, SDK, client and framework; every long file gives a reason for the length."""

import re

from plant_defects import read_defects
from workspace import ROOT

FOLDERS = ("packages/*/tests", "integration-tests", "scripts/tests", "examples")
# The first file is about test doubles for messages; the second undoes a change that the demo makes.
ALLOWED = {("test_mocks.py", "from unittest.mock import MagicMock"), ("test_failure.py", "setattr(pydantic_ai")}
LONG = 400
REASON = "Over 400 lines"
_DOUBLE = re.compile(
    r"from unittest\.mock import (?!ANY$).*|^import (?:unittest\.)?mock|\bmocker\b"
    r"|setattr\(\s*[\"']?(?:claude_agent_sdk|anthropic|pydantic_ai)\b",
    flags=re.MULTILINE,
)


def test_no_part_of_cli_sdk_client_or_framework_is_replaced() -> None:
    """ARCH-37"""
    paths = [
        path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py") if path.name != "test_house_rules.py"
    ]
    assert len(paths) > 100
    assert {(path.name, double) for path in paths for double in _DOUBLE.findall(path.read_text("utf-8"))} == ALLOWED


def test_a_long_file_gives_a_reason_at_its_head() -> None:
    folders = ("packages", "scripts", "examples", "integration-tests")
    texts = {path: path.read_text("utf-8") for folder in folders for path in (ROOT / folder).rglob("*.py")}
    assert [path for path, text in texts.items() if text.count("\n") > LONG and REASON not in text[:LONG]] == []


def test_each_planted_defect_has_its_place_and_its_test() -> None:
    for defect in read_defects():
        assert (ROOT / defect.file).read_text("utf-8").count(defect.old) == 1, defect.name
        file, _, name = defect.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text("utf-8"), defect.name


def test_each_fixture_stands_where_contributors_are_sent() -> None:
    rows = [row.split("|")[2:4] for row in (ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines() if "`" in row]
    all_fixtures = set[str]()
    for names, places in (row for row in rows if len(row) == 2 and re.search(r"\.py`", row[1])):
        text = "".join((ROOT / path).read_text("utf-8") for path in re.findall(r"`([\w./-]+\.py)`", places))
        fixtures = re.findall(r"`(\w+)[`(]", re.sub(r" \(.*?\)", "", names))
        assert [name for name in fixtures if not re.search(rf"def {name}\b", text)] == [], places
        all_fixtures |= {*fixtures}
    assert all_fixtures >= {"shared_api", "model", "several", "session", "serve", "fake_cli", "log"}


def test_a_command_names_no_private_function_to_its_user() -> None:
    """argparse shows the name of a function that raises a `ValueError`."""
    for path in ROOT.glob("packages/*/src/**/*.py"):
        text = path.read_text("utf-8")
        for function in re.findall(r"\btype=(_\w+)", text if "add_argument" in text or "argparse" in text else ""):
            body = text.partition(f"def {function}(")[2].partition("\n\n\n")[0]
            assert "ArgumentTypeError" in body, (path.name, function)
