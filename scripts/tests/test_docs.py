"""Tests for the documentation: the blocks in all pages run, on the loopback API, with the real CLI."""

from pathlib import Path

import pytest

from cc_loopback import LoopbackServer
from doc_pages import ROOT, Block, missing, read_page, run_page

PATHS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "SKILL.md"]
PAGES = {str(path.relative_to(ROOT)): blocks for path in PATHS if (blocks := read_page(path))}


# The limit only detects a hang; the first page in a test worker waits for the interpreter that all pages share.
@pytest.mark.slow
@pytest.mark.timeout(210)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_runs_with_the_output_that_it_shows(name: str, loopback: LoopbackServer, tmp_path: Path) -> None:
    run_page(PAGES[name], tmp_path, loopback.env())
    if absent := missing(PAGES[name]):
        pytest.skip(f"the page runs, except for blocks that need {', '.join(absent)}")


def test_every_block_runs_or_has_a_reason_not_to() -> None:
    blocks = [block for page in PAGES.values() for block in page]
    assert {block.language for block in blocks} <= {"python", "sh", "js", "ini", "toml", "yaml"}
    unexplained = [block for block in blocks if block.language not in ("python", "sh") and not block.not_run]
    assert [block.name for block in unexplained] == []


@pytest.mark.worlds
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```python\nprint(1)\n```\n\n```python\nprint(nothing)\n```\n", r"page\.md:5 failed"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```\n", r"page\.md:1 complained"),
        ("```sh\ntrue\n```\n\n```sh\nfalse\ntrue\n```\n", r"page\.md:5 failed"),
        ("```sh\necho one two\n```\n\n```text\none … three\n```\n", r"page\.md:1 printed"),
    ],
)
def test_a_block_with_other_output_is_named(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_with(tmp_path, text, monkeypatch)
    with pytest.raises(AssertionError, match=complaint):
        run_page(page, tmp_path, {})


def page_with(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> list[Block]:
    monkeypatch.setattr("doc_pages.ROOT", folder)
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path)
