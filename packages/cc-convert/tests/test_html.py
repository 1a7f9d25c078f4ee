"""The page: complete content, and no log text runs or loads."""

import io
import json
import re
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_convert.html.page import write_html
from cc_convert.html.svg import spell
from cc_convert.html.texts import text
from cc_convert.logs import read_logs

Maker: TypeAlias = Callable[..., Any]

# Elements and attributes that load or run something.
ACTIVE = set("script iframe object embed link base form img video audio image use foreignobject".split())
ATTACKS = [
    "<script>document.title='owned'</script>",
    "</pre></div></body><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "\"><svg onload=document.title='owned'>",
    "' onmouseover='document.title=1' x='",
    "</title></style><script>document.title='owned'</script>",
    "<a href=javascript:document.title='owned'>x</a>",
    "<iframe src=https://example.com></iframe><link rel=stylesheet href=//example.com/x.css>",
    "<meta http-equiv=refresh content=0;url=https://example.com>",
    "<style>*{background:url(//example.com/x)}</style>",
    "\u202egnp.exe\x00\x1b[2J\ud800",
    "]]><!--",
]
# A browser on a busy machine.
PATIENCE = 50.0


class Tags(HTMLParser):
    """Collects tags with their attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(path: Path, **options: Any) -> str:
    logs = read_logs(path)
    file = io.StringIO()
    write_html(file, logs.priced(), logs, zone=ZoneInfo("UTC"), **options)
    return file.getvalue()


def attacked(maker: Maker, path: Path) -> Path:
    """Return a log with an attack in every place."""
    for number, attack in enumerate(ATTACKS):
        log = maker(f"{number}{attack}", project=attack)
        log.user(attack)
        call = {"type": "tool_use", "id": f"t{number}{attack}", "name": attack, "input": {attack: attack}}
        content = [{"type": "text", "text": attack}, {"type": "thinking", "thinking": attack}, call]
        log.answer(model=attack, content=content)
        result = {"type": "tool_result", "tool_use_id": f"t{number}{attack}", "content": attack, "is_error": True}
        log.user([result], agentId=attack)
        log.answer(agentId=attack, attributionAgent=attack)
        log.write(path / f"{number}.jsonl")
    return path


@pytest.fixture
def session(maker: Maker, tmp_path: Path) -> Path:
    """A session with a sub-agent, tools, a pause, an error and a compaction."""
    log, agent = maker("s1"), maker("s1", start="2026-11-20T10:01:30+00:00")
    log.user("Find the needle.")
    log.answer("msg_1", content=[{"type": "tool_use", "id": "t1", "name": "Agent", "input": {"prompt": "look"}}])
    agent.answer("msg_2", agentId="a1", content=[{"type": "tool_use", "id": "t2", "name": "Read", "input": {}}])
    agent.user([{"type": "tool_result", "tool_use_id": "t2", "content": "hay", "is_error": True}], agentId="a1")
    log.user([{"type": "tool_result", "tool_use_id": "t1", "content": "found"}])
    log.compaction(9000)
    log.answer("msg_3", timestamp="2026-11-21T10:00:00Z")
    log.answer("msg_4", timestamp="2026-11-21T10:01:00Z", model="<synthetic>", isApiErrorMessage=True)
    log.write(tmp_path / "logs" / "s1.jsonl")
    agent.write(tmp_path / "logs" / "s1" / "subagents" / "agent-a1.jsonl")
    return tmp_path / "logs"


def test_all_that_is_promised_stands_on_the_page(session: Path) -> None:
    """LOG-51"""
    page = page_of(session)

    pictures = re.findall(r'<svg [^>]*aria-label="([^"]+)"', page)
    assert pictures == [
        "Cost by project",
        "Cost by session",
        "Cost per day by model",
        "Share of input from the cache per day",
        "Tokens by weekday and hour",
        "Cost of each five-hour block",
        "Timeline with sub-agents and tools",
        "Tokens in the context at each answer",
    ]
    assert 'class="compaction"' in page
    assert "Read: 60.00 s" in page
    assert "Find the needle." in page
    assert 'href="#s0"' in page and 'id="s0"' in page
    assert json.dumps({"parentUuid": None})[1:-1] not in page
    without_transcripts = page_of(session, transcripts=False)
    assert "needle" not in without_transcripts
    assert 'class="event' not in without_transcripts
    assert "<svg" in without_transcripts


def test_the_page_loads_nothing_and_lets_in_only_itself(session: Path) -> None:
    """LOG-50, LOG-52: the policy allows one style and one script by their hashes, and the page has these two."""
    page = page_of(session)
    tags = Tags(page)

    [policy] = [attrs["content"] for _, attrs in tags.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    for name in ("style", "script"):
        [content] = re.findall(rf"<{name}>(.*?)</{name}>", page, flags=re.DOTALL)
        assert f"{name}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in (policy or "")
    assert (policy or "").startswith("default-src 'none'")
    assert not [tag for tag, attrs in tags.tags if "src" in attrs or "style" in attrs]
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in tags.tags)


def test_nothing_of_a_log_becomes_a_part_of_the_page(maker: Maker, tmp_path: Path) -> None:
    """LOG-52"""
    tags = Tags(page_of(attacked(maker, tmp_path / "logs")))

    assert [tag for tag, _ in tags.tags if tag in ACTIVE] == ["script"]
    assert not [name for _, attrs in tags.tags for name in attrs if name.startswith("on")]
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in tags.tags)
    assert ATTACKS[0] in tags.text


def test_line_ends_of_windows_are_line_ends() -> None:
    """LOG-31"""
    assert text("a\r\nb\rc") == "a\nb\nc"


@given(st.text(max_size=60))
def test_any_text_is_harmless(value: str) -> None:
    """LOG-52"""
    tags = Tags(f'<p title="{text(value)}">{text(value)}</p>')

    assert [tag for tag, _ in tags.tags] == ["p"]
    assert tags.text == tags.tags[0][1]["title"]
    tags.text.encode()


def test_a_long_text_is_cut_and_says_so(log: Any) -> None:
    log.user("x" * 30_000)
    log.answer()
    assert "10,000 more characters are in the log" in page_of(log.write())


@pytest.mark.parametrize("days", [1, 2, 60, 400, 20_000])
def test_any_span_of_time_makes_a_page(log: Any, days: int) -> None:
    log.answer(timestamp="1970-01-02T00:00:00Z" if days > 1000 else "2025-01-01T00:00:00Z")
    log.answer(timestamp=time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime(1735689600 + days * 86400)))

    assert len(page_of(log.write())) < 300_000


def test_the_dates_of_a_week_do_not_touch_on_a_phone(log: Any) -> None:
    """LOG-53: there, a date takes about 50 picture units."""
    for day in range(10, 17):
        log.answer(timestamp=f"2026-11-{day}T10:00:00Z")

    [cost] = re.findall(r'aria-label="Cost per day by model".*?</svg>', page_of(log.write()))

    places = [float(place) for place in re.findall(r'x="([\d.]+)" y="[\d.]+" text-anchor="middle"', cost)]
    assert len(places) == 4
    assert min(after - before for before, after in pairwise(places)) > 60


def test_an_empty_log_makes_a_page(log: Any) -> None:
    page = page_of(log.write())
    assert "$0.00" in page and "Where the cost went" not in page


def test_the_first_picture_has_each_projects_share_of_the_cost(maker: Maker, tmp_path: Path) -> None:
    """LOG-51: six projects, and the others together; the shares make up the whole."""
    for number in range(9):
        log = maker(session=f"s{number}", project=f"/home/user/project-{number}")
        for _ in range(number + 1):
            log.answer()
        log.write(tmp_path / "logs" / f"s{number}.jsonl")
    page = page_of(tmp_path / "logs")
    [first, *_] = re.findall(r'aria-label="Cost by project".*?</svg>', page)
    names = re.findall(r">([^<]*\d[^<]*)</text>", first)
    assert names[::2] == [*(f"project-{number}" for number in range(8, 2, -1)), "3 others"]
    assert [name.rpartition(" ")[2] for name in names[1::2]] == ["20%", "18%", "16%", "13%", "11%", "9%", "13%"]
    assert "/home/user/project-8: $" in first


# --- in a browser


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


def in_a_browser(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.browser(pytest.mark.skipif(BROWSER is None, reason="no Chromium here")(test))


def in_browser(page: Path, folder: Path, *options: str) -> str:
    """Return the page after all scripts ran."""
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions"]
    command += ["--virtual-time-budget=2000", "--enable-logging=stderr", f"--user-data-dir={folder / 'browser'}"]
    command += [*options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE)
    (folder / "browser.log").write_bytes(done.stderr)
    return done.stdout.decode(errors="replace")


@in_a_browser
def test_a_malicious_log_runs_nothing_in_a_browser(maker: Maker, tmp_path: Path) -> None:
    """LOG-52: even if our escaping failed, the policy would stop it; both are tried."""
    page = tmp_path / "page.html"
    page.write_text(page_of(attacked(maker, tmp_path / "logs")), encoding="utf-8")
    unescaped = tmp_path / "unescaped.html"
    unescaped.write_text(page.read_text("utf-8").replace("<main>", f"<main>{''.join(ATTACKS[:8])}"), "utf-8", "replace")

    for one in (page, unescaped):
        shown = in_browser(one, tmp_path, "--dump-dom")
        assert "<title>Claude Code usage</title>" in shown
        assert 'class="scripted"' in shown or one is unescaped
    assert (
        "Refused to" in (tmp_path / "browser.log").read_text() or "violates" in (tmp_path / "browser.log").read_text()
    )


@pytest.mark.parametrize(("value", "spelled"), [(999, "999"), (1000, "1k"), (1e6, "1M"), (2.5e9, "2.5G")])
def test_values_beside_an_axis_are_short(value: float, spelled: str) -> None:
    assert spell(value) == spelled
