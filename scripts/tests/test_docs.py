"""The pages of the documentation do what they say: their blocks run, on the loopback API, with the real CLI."""

from pathlib import Path

import pytest

from cc_loopback import LoopbackServer
from doc_pages import ROOT, Page, read_page, run_python, run_shell

PATHS = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "SKILL.md"]
LANGUAGES = {"python", "sh", "js", "dockerfile"}


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    return {path: read_page(path) for path in PATHS}


@pytest.mark.timeout(210)
@pytest.mark.parametrize("are_how_tos", [True, False], ids=["how-to", "others"])
def test_the_python_of_the_pages_runs(
    are_how_tos: bool, pages: dict[Path, Page], loopback: LoopbackServer, tmp_path: Path
) -> None:
    chosen = [page for path, page in pages.items() if (path.parent.name == "how-to") is are_how_tos]
    run_python(chosen, tmp_path, loopback.env())


@pytest.mark.timeout(210)
@pytest.mark.parametrize(
    "path", [path for path in PATHS if "\n```sh\n" in path.read_text("utf-8")], ids=lambda path: path.stem
)
def test_the_commands_of_a_page_run(
    path: Path, pages: dict[Path, Page], loopback: LoopbackServer, tmp_path: Path
) -> None:
    run_shell(pages[path], tmp_path, loopback.env())
    if missing := pages[path].missing():
        pytest.skip(f"the page runs, but for what needs {', '.join(missing)}")


def test_every_block_is_run_or_says_why_not(pages: dict[Path, Page]) -> None:
    blocks = [block for page in pages.values() for block in page.blocks]
    assert {block.language for block in blocks} <= LANGUAGES
    unexplained = [block for block in blocks if block.language not in ("python", "sh") and not block.not_run]
    assert [block.name for block in unexplained] == []


def test_a_block_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, "```python\nprint(1)\n```\n\n```python\nprint(nothing)\n```\n", monkeypatch)
    with pytest.raises(AssertionError, match=r"page\.md:5 failed"):
        run_python([page], tmp_path, {})


def test_a_block_that_prints_something_else_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, "```sh\necho one two\n```\n\n```text\none … three\n```\n", monkeypatch)
    with pytest.raises(AssertionError, match=r"page\.md:1 printed"):
        run_shell(page, tmp_path, {})


def test_a_command_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_with(tmp_path, "```sh\ntrue\n```\n\n```sh\nfalse\ntrue\n```\n", monkeypatch)
    with pytest.raises(AssertionError, match=r"page\.md:5 failed"):
        run_shell(page, tmp_path, {})


def test_a_fence_that_would_not_be_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="indented"):
        page_with(tmp_path, "- a point\n\n    ```python\n    print(1)\n    ```\n", monkeypatch)


def page_with(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> Page:
    monkeypatch.setattr("doc_pages.ROOT", folder)
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return read_page(path)
