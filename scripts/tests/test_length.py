"""Every long file gives a reason for the length."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("packages", "scripts", "examples", "integration-tests")
MOST = 400
REASON = "Over 400 lines"


def test_a_long_file_gives_a_reason_at_its_head() -> None:
    texts = {path: path.read_text("utf-8") for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    long = {path: text for path, text in texts.items() if text.count("\n") > MOST}

    assert [str(path) for path, text in long.items() if REASON not in text[:MOST]] == []
