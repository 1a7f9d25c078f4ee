"""No file is long without saying why."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("packages", "scripts", "examples", "integration-tests")
MOST = 400
REASON = "Over 400 lines"


def test_a_long_file_says_at_its_head_why_it_is_one() -> None:
    texts = {path: path.read_text("utf-8") for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    long = {path: text for path, text in texts.items() if text.count("\n") > MOST}

    assert [str(path) for path, text in long.items() if REASON not in text[:MOST]] == []
