"""The pages of the documentation do what they say: their blocks run, on the loopback API, with the real CLI."""

from pathlib import Path

import pytest

from cc_loopback import LoopbackServer
from doc_pages import ROOT, read_page, run_page

PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "SKILL.md"]
WITH_BLOCKS = [page for page in PAGES if "\n```" in page.read_text("utf-8")]
LANGUAGES = {"python", "sh", "text", "js", "dockerfile"}


@pytest.mark.timeout(210)
@pytest.mark.parametrize("path", WITH_BLOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(path: Path, loopback: LoopbackServer, tmp_path: Path) -> None:
    page = read_page(path)
    run_page(page, tmp_path, loopback.env())
    if missing := page.missing():
        pytest.skip(f"the page runs, but for what needs {', '.join(missing)}")


def test_every_block_is_of_a_known_kind() -> None:
    blocks = [block for page in WITH_BLOCKS for block in read_page(page).blocks]
    assert {block.language for block in blocks} <= LANGUAGES
    # A file that is not Python or a shell's is data that nothing would look at without a name.
    assert [block.name for block in blocks if block.not_run and block.title] == []


def test_a_block_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, "```python\nprint(1)\n```\n\n```python\nprint(nothing)\n```\n", monkeypatch)
    with pytest.raises(AssertionError, match=r"page\.md:5 failed"):
        run_page(read_page(page), tmp_path, {})


def test_a_block_that_prints_something_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, "```sh\necho one two\n```\n\n```text\none … three\n```\n", monkeypatch)
    with pytest.raises(AssertionError, match=r"page\.md:1 printed"):
        run_page(read_page(page), tmp_path, {})


def test_a_fence_that_would_not_be_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, "- a point\n\n    ```python\n    print(1)\n    ```\n", monkeypatch)
    with pytest.raises(ValueError, match="indented"):
        read_page(page)


def page_with(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("doc_pages.ROOT", folder)
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page
