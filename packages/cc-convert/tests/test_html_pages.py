"""HTML reports for a reader: rendered Markdown, headings that tell calls apart, several pages, costs by project."""

import io
import json
import os
import re
import stat
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote

import pytest

from cc_convert.html import page as page_module
from cc_convert.html.page import write_html
from cc_convert.html.texts import answer_html
from cc_convert.logs import read_logs

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]

rendered = pytest.mark.skipif(find_spec("markdown_it") is None, reason="needs the extra")
ANSWER = """# Done

**21 degrees**, see [the page](https://example.com/a?b=1&c=2) and `code`.

| city | degrees |
| --- | ---: |
| Paris | 21 |

1. one
2. two

```py
print("<b>")
```
"""


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def page_of(path: Path, **options: Any) -> str:
    logs = read_logs(path)
    file = io.StringIO()
    write_html(file, logs.priced(), logs, **options)
    return file.getvalue()


# --- Markdown


@rendered
def test_an_answer_is_rendered() -> None:
    """LOG-90"""
    html = answer_html(ANSWER)

    for part in (
        "<h1>Done</h1>",
        "<strong>21 degrees</strong>",
        '<td class="n">21</td>',
        "<li>two</li>",
        "<code>code</code>",
    ):
        assert part in html
    assert '<a href="https://example.com/a?b=1&amp;c=2" rel="noreferrer">the page</a>' in html
    assert "print(&quot;&lt;b&gt;&quot;)" in html
    assert "style=" not in html


@rendered
@pytest.mark.parametrize(
    "attack",
    [
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](java&#115;cript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "[x](vbscript:x) [x](file:///etc/passwd) [x](//example.com) [x](#overview) [x](x.html)",
        "<javascript:alert(1)>",
        "![x](https://example.com/x.png)",
        "![x](data:image/svg+xml;base64,AAAA)",
        "![<img src=x onerror=alert(1)>](https://example.com/x.png)",
        '[x](https://example.com "\\" onmouseover=alert(1) x=\\"")',
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> *b*",
        "<!-- --> <b onclick=alert(1)>*x*</b>",
        '```py" onclick="alert(1)\nx\n```',
        "| a |\n|:-:|\n| <svg onload=alert(1)> |",
        "[x]: javascript:alert(1)\n\n[x]",
        "*\u202egnp.exe* &#x202e; &#0; \x1b[2J",
        "> " * 300 + "x",
        "*" * 3000 + "[" * 3000,
    ],
)
def test_no_markdown_runs_or_loads_anything(attack: str) -> None:
    """LOG-52, LOG-90: links lead to pages and mailboxes only, and images are links."""
    html = answer_html(attack)

    allowed = set("div p a em strong code pre h1 h2 ul ol li blockquote table thead tbody tr th td hr br s".split())
    for tag, attributes in Elements(html).elements:
        assert tag in allowed
        assert set(attributes) <= {"href", "rel", "title", "class", "start"}
        assert (attributes.get("href") or "https://").startswith(("http://", "https://", "mailto:"))
    assert not set(html) & set("\u202e\x00\x1b")


def test_without_the_extra_answers_are_plain_text(log: Any, run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    """LOG-90, LOG-48: the command says what to install."""
    monkeypatch.setattr("cc_convert.html.texts.renders_markdown", lambda: False)
    log.answer(content=[{"type": "text", "text": "# Done <b>"}])

    done = run("convert", log.write(), "-o", tmp_path / "report.html")

    assert (done.code, 'pip install "cc-convert[html]"' in done.err) == (0, True)
    assert "<pre># Done &lt;b&gt;</pre>" in (tmp_path / "report.html").read_text("utf-8")


# --- headings


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"description": "Look", "command": "git status\n&& ls"}, "<code>git status &amp;&amp; ls</code>"),
        ({"content": "long", "file_path": "/home/user/x.py"}, "<code>/home/user/x.py</code>"),
        ({"number": 3, "city": "Paris"}, "<code>Paris</code>"),
        ({"command": "x" * 500}, f"<code>{'x' * 119}…</code>"),
        ({"command": "<script>"}, "<code>&lt;script&gt;</code>"),
        ({"number": 3}, "Bash · 2026"),
    ],
)
def test_the_folded_line_of_a_call_says_what_was_called(log: Any, call: dict[str, object], shown: str) -> None:
    """LOG-91"""
    log.answer(content=[{"type": "tool_use", "id": "t1", "name": "Bash", "input": call}])
    log.user([{"type": "tool_result", "tool_use_id": "t1", "content": "fine"}])

    heads = re.findall(r"<summary>(.*?)</summary>", page_of(log.write()))

    assert "Tool call · Bash · " in heads[0]
    assert shown in heads[0]
    assert heads[1].startswith("Tool result · Bash · ")


# --- costs


def test_costs_are_shown_by_project_and_models_without_a_price_are_marked(maker: Maker, tmp_path: Path) -> None:
    """LOG-92: with `*` wherever a cost lacks something."""
    for project, model in (("shop", "claude-sonnet-5"), ("shop", "claude-opus-5"), ("blog", "claude-of-2030")):
        log = maker(model, project=f"/home/user/{project}")
        log.answer(model=model)
        log.write(tmp_path / f"{model}.jsonl")

    page = page_of(tmp_path)

    [projects] = re.findall(r'<table class="projects">.*?</table>', page, flags=re.DOTALL)
    costs = re.findall(r'</span>(\w+)</td>.*?<td class="n">(\$[^<]+)</td></tr>', projects)
    assert [project for project, _ in costs] == ["shop", "blog"]
    assert costs[1] == ("blog", "$0.00*")
    [sessions] = re.findall(r'<tbody id="sessions">.*?</tbody>', page, flags=re.DOTALL)
    assert sorted(re.findall(r"\$[\d.]+\*?(?=</td></tr>)", sessions)) == ["$0.00*", *sorted(["$0.0015", "$0.0037"])]
    assert "* without models that have no price: claude-of-2030 (1,420 tokens)" in page


# --- several pages


@pytest.fixture
def many_sessions(maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return logs that need several pages; one session needs more than a page."""
    monkeypatch.setattr(page_module, "_PAGE", 30_000)
    monkeypatch.setattr(page_module, "_PART", 15_000)
    for number in range(12):
        log = maker(f"s{number}", start=f"2026-11-{number + 1:02}T10:00:00Z")
        log.user(f"Question {number}")
        for answer in range(60 if number == 5 else 8):
            log.answer(content=[{"type": "text", "text": f"Answer {number}.{answer} " + "word " * 200}])
        log.write(tmp_path / "logs" / f"{number}.jsonl")
    return tmp_path / "logs"


def test_pages_are_split_and_every_link_leads_somewhere(run: Run, many_sessions: Path, tmp_path: Path) -> None:
    """LOG-93"""
    report = tmp_path / "a report's #1.html"

    done = run("convert", many_sessions, "-o", report)

    folder = tmp_path / "a report's #1-pages"
    pages = {path: path.read_text("utf-8") for path in (report, *folder.iterdir())}
    assert (done.code, f"{len(pages) - 1} more pages in {folder}" in done.err) == (0, True)
    assert len(pages) > 5
    assert all(len(page.encode()) < 30_000 + 50_000 for page in pages.values())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in pages)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path, page in pages.items():
        for link in re.findall(r'<a href="([^"]+)"', page):
            name, _, place = link.partition("#")
            target = pages[path.parent.joinpath(unquote(name)).resolve()] if name else page
            assert f'id="{place}"' in target
    whole = "".join(pages.values())
    assert all(whole.count(f"Answer {number}.{answer} ") >= 1 for number in range(12) for answer in range(8))
    assert whole.count("Answer 5.59 ") == 1
    listed = re.findall(r'<td class="id"><a href="([^"]+)">', pages[report])
    assert len(listed) == len(set(listed)) == 12


def test_sessions_that_are_not_listed_are_on_linked_pages(
    run: Run, many_sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-93: a list of all sessions could be too large."""
    monkeypatch.setattr(page_module, "_MOST_LISTED", 3)
    run("convert", many_sessions, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.count('<td class="id">') == 3
    assert "9 older sessions are on the last pages: " in page
    assert set(re.findall(r'href="(report-pages/\d+.html)#overview"', page)) == {
        f"report-pages/{path.name}" for path in (tmp_path / "report-pages").iterdir()
    }


def test_a_report_to_a_pipe_is_a_single_page(run: Run, many_sessions: Path) -> None:
    """LOG-93"""
    page = run("convert", many_sessions, "--format", "html").out
    assert page.count('class="session"') > 12
    assert all(link.startswith("#") for link in re.findall(r'<a href="([^"]+)"', page))


def test_pages_of_an_earlier_report_are_replaced_only_if_asked_for(
    run: Run, many_sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-93, LOG-44"""
    report, folder = tmp_path / "report.html", tmp_path / "report-pages"
    run("convert", many_sessions, "-o", report)
    report.unlink()
    first = {path.name: path.read_text("utf-8") for path in folder.iterdir()}

    refused = run("convert", many_sessions, "-o", report)
    assert (refused.code, "--force" in refused.err, report.exists()) == (2, True, False)
    (folder / "mine.txt").touch()
    assert run("convert", many_sessions, "-o", report, "--force").code == 2
    assert (folder / "mine.txt").exists()
    (folder / "mine.txt").unlink()

    monkeypatch.setattr(page_module, "_PAGE", 10**9)
    assert run("convert", many_sessions, "-o", report, "--force").code == 0
    assert (len(first) > 4, folder.exists()) == (True, False)
    assert sorted(os.listdir(tmp_path)) == ["cache", "logs", "report.html"]


def test_a_report_of_sums_has_no_further_pages(run: Run, many_sessions: Path, tmp_path: Path) -> None:
    """LOG-93"""
    assert run("report", many_sessions, "--format", "html", "-o", tmp_path / "sums.html").code == 0
    assert not (tmp_path / "sums-pages").exists()
    assert json.dumps("Question 1")[1:-1] not in (tmp_path / "sums.html").read_text("utf-8")
