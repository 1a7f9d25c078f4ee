"""Command `cc-demo` as a user runs it: a separate process, the real CLI, and only invented credentials."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import pytest

from prepared_python import python

_DEMO = ["-m", "cc_demo"]
# Limit that detects a hang: imports alone take many seconds on a busy machine.
_RUN_TIMEOUT = 100
_END_TIMEOUT = 10
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_WARM = re.compile(r"A warm request waited .* ([\d.]+)× faster \(the fastest ([\d.]+)×\)")
_USAGE = r"usage   [\d,]+ tokens in, \d+ out; (\d) requests, \d successful tool calls?; cost: \$"
_FOREIGN = re.compile(r"ANTHROPIC_|CLAUDE_|FORCE_COLOR|NO_COLOR|COLUMNS")


@dataclass(frozen=True)
class Box:
    """Environment in which a command finds no login, and a folder that keeps temporary files."""

    env: dict[str, str]
    tmp: Path

    def run(self, *options: str, start: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [start or python(), *_DEMO, *options],
            env={**self.env, **env},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=_RUN_TIMEOUT,
        )

    @contextmanager
    def running(self, *options: str) -> Generator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, *_DEMO, *options],
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()


def make_box(folder: Path) -> Box:
    for name in ("home", "config", "tmp"):
        (folder / name).mkdir()
    own = {
        "HOME": str(folder / "home"),
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONUTF8": "1",
        "COLUMNS": "100",
    }
    inherited = {name: value for name, value in os.environ.items() if not _FOREIGN.match(name)}
    return Box({**inherited, **own}, folder / "tmp")


@pytest.fixture
def box() -> Generator[Box]:
    # Not `tmp_path`: that is too long for a socket's path.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    yield make_box(folder)
    shutil.rmtree(folder)


@pytest.mark.worlds
def test_an_offline_run_shows_all_events(box: Box) -> None:
    """ARCH-05, ARCH-33, ARCH-34: also the time saved by a warm process. The API key that is set must not be used."""
    run = box.run(
        "--offline", start=sys.executable, ANTHROPIC_API_KEY="unused", ANTHROPIC_BASE_URL="http://127.0.0.1:9"
    )
    offline = run.stdout
    assert (run.returncode, run.stderr) == (0, "")
    assert list(box.tmp.iterdir()) == []
    assert "scripted loopback model, not Claude" in offline
    assert "--offline was given" in offline
    # Plain output has no control codes and no trailing spaces.
    assert "\x1b" not in offline
    assert "\r" not in offline
    assert [line for line in offline.splitlines() if line != line.rstrip()] == []
    # Tool calls show arguments, results and times.
    assert "call    weather(city='Bergen')" in offline
    assert re.search(r"result  weather in \d+\.\d+ ms: Weather\(city='Bergen', sky='rain', degrees=7\)", offline)
    assert "call    price(city='Lisbon', nights=2, travellers=1)" in offline
    assert re.search(r"result  price in \d+\.\d+ ms: Price\(city='Lisbon', .*total_eur=310\)", offline)
    # The tool that fails is called again.
    call = "call    weather(city='Lisbon')"
    before, retry, after = offline.partition("retry   weather in ")
    assert retry
    assert "asleep" in after
    assert (before.count(call), after.count(call)) == (1, 1)
    assert "Weather(city='Lisbon', sky='sunny', degrees=19)" in after
    # Both turns have a text and a typed output; the second continues the conversation.
    first, second = offline.split("Turn 2")
    assert "model   Lisbon: sunny, 19 degrees, for 310 euros, within your 400." in first
    assert "model   Lisbon: sunny, 19 degrees, for 535 euros, which is more than your 400." in second
    for turn, fits in ((first, True), (second, False)):
        assert "output: TripPlan" in turn
        assert f"within_budget={fits}" in turn
    assert "The weather in Lisbon I know already" in second
    assert "call    weather" not in second
    assert "call    price(city='Lisbon', nights=3, travellers=2)" in second
    assert re.findall(_USAGE, offline) == ["3", "2"]
    # The process was started once, which took most time in the first request.
    processes = re.findall(r"│ (\d) │ (\w+) +│ +([\d.,]+) ms │ +[\d.,]+ ms │ +[\d.,]+ ms │", offline)
    assert [number for number, _, _ in processes] == ["1", "2", "3", "4", "5"]
    assert [state for _, state, _ in processes] == ["started", *["warm"] * 4]
    assert re.search(r"Claude Code was started once, in \d[\d,]* ms\.", offline)
    stated = _WARM.search(" ".join(offline.split()))
    assert stated
    # The ratios are those of the table. How large they are depends on what else the machine does.
    start, *waits = (float(wait.replace(",", "")) for _, _, wait in processes)
    ratios = [start / median(waits), start / min(waits)]
    assert list(map(float, stated.groups())) == pytest.approx(ratios, rel=0.1)  # both are rounded


@pytest.mark.slow
def test_without_a_login_the_demo_runs_offline_and_says_why(box: Box) -> None:
    """ARCH-34."""
    run = box.run("--prompt", "A week in Tokyo [bold]please[/bold]", COLUMNS="40", FORCE_COLOR="1")
    assert (run.returncode, run.stderr) == (0, "")
    assert "\x1b[" in run.stdout
    shown = _ESCAPE.sub("", run.stdout)
    assert max(map(len, shown.splitlines())) <= 40
    text = " ".join(shown.replace("│", " ").split())
    assert "scripted loopback model, not Claude" in text
    assert "no API key and no login of Claude Code were found. Set ANTHROPIC_API_KEY, or run" in text
    assert "[bold]please[/bold]" in text
    assert "your question is not in it" in text
    assert "The scripted model writes slowly here" in text


def interrupt(process: subprocess.Popen[str]) -> None:
    """Ctrl-C as in a terminal."""
    assert sys.platform != "win32"
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.deaths
@pytest.mark.parametrize(
    ("last_line", "stop", "exit_code"),
    [
        ("call ", interrupt, 130),
        pytest.param("start ", subprocess.Popen[str].terminate, 143, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_demo_and_leaves_nothing(
    box: Box, last_line: str, stop: Callable[[subprocess.Popen[str]], None], exit_code: int
) -> None:
    """ARCH-35."""
    with box.running("--offline") as process:
        assert process.stdout is not None
        assert any(line.startswith(last_line) for line in process.stdout)
        children = first_children(process)
        stop(process)
        _, errors = process.communicate(timeout=_END_TIMEOUT)
    assert (process.returncode, errors) == (exit_code, "Stopped.\n")
    _, alive = psutil.wait_procs(children, timeout=_END_TIMEOUT)
    assert alive == []
    assert list(box.tmp.iterdir()) == []


def first_children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the started processes, as soon as there are any; the test's own timeout is the limit."""
    parent = psutil.Process(process.pid)
    while not (children := parent.children(recursive=True)):
        assert process.poll() is None
    return children
