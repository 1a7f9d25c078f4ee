"""The command `cc-convert` as a process: pipes, signals, a terminal, a status line, a shell."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.cli.plan_limits import store_uses, stored_uses
from cc_convert.report.forecast import WindowUse
from cc_types import CLIResponse

pytestmark = pytest.mark.worlds

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]
LOGS = Path(__file__).parent / "logs"
COMMAND = [sys.executable, "-m", "cc_convert"]
# No command takes a second; a busy machine may need many.
PATIENCE = 40.0


def test_a_response_comes_while_the_pipe_is_open() -> None:
    """LOG-45"""
    content = (LOGS / "tool_call.jsonl").read_bytes()
    with subprocess.Popen([*COMMAND, "responses", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdin and process.stdout
            for _ in range(2):
                process.stdin.write(content)
                process.stdin.flush()
                assert CLIResponse.model_validate_json(process.stdout.readline()).succeeded
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


# --- as a process


def process(*words: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *map(str, words)], input=stdin, capture_output=True, timeout=PATIENCE)


def test_a_pipe_is_read(short_log: Path) -> None:
    """LOG-02"""
    done = process("report", "-", "--format", "json", stdin=short_log.read_bytes())

    assert json.loads(done.stdout)["total"]["requests"] == 2


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_no_number_is_cut_where_a_terminal_is_narrow(maker: Maker, columns: int) -> None:
    """LOG-47"""
    made = maker("0123abcd-0123-0123-0123-0123456789ab", project="/home/user/a-long-way/down/project")
    made.answer(usage=made.usage(input_tokens=987_654_321))
    path = made.write()
    code = f"import os, pty; raise SystemExit(pty.spawn({[*COMMAND, 'report', 'session', str(path)]}) >> 8)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert ("987,654,321" if columns == 200 else "988M") in done.stdout
    assert "0123abcd" in done.stdout
    assert "$1,975.31" in done.stdout


def test_a_terminal_that_lacks_a_letter_is_no_crash(maker: Maker, monkeypatch: Any) -> None:
    """LOG-47"""
    made = maker(project="/home/user/\u00e4\u65e5")
    made.answer()
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    done = process("report", "project", made.write())

    assert (done.returncode, b"/home/user/??" in done.stdout) == (0, True)


def test_a_closed_pipe_is_no_crash(log: Any) -> None:
    """LOG-47"""
    log.answers(*(f"msg_{number}" for number in range(5000)))
    path = log.write()
    process = subprocess.Popen([*COMMAND, "convert", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()

    assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_an_interrupt_is_quiet() -> None:
    """LOG-47"""
    process = subprocess.Popen(
        [*COMMAND, "responses", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write((LOGS / "tool_call.jsonl").read_bytes())
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert (process.wait(PATIENCE), process.stderr.read()) == (130, b"")
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_watch_shows_what_came_in(maker: Maker, tmp_path: Path) -> None:
    """LOG-46"""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made, path = maker(), tmp_path / "log.jsonl"
    made.answer("msg_1", timestamp=now)
    made.write(path)
    command = [*COMMAND, "watch", path, "--interval", "0.2", "--tz", "UTC"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout and process.stderr
            assert any(line.startswith(b"today") and b"  1 " in line for line in iter(process.stdout.readline, b""))
            made.answer("msg_2", timestamp=now)
            made.write(path)
            assert any(line.startswith(b"today") and b"  2 " in line for line in iter(process.stdout.readline, b""))
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
            assert process.stderr.read() == b""
        finally:
            process.kill()


def test_the_status_line_is_one_line(log: Any, tmp_path: Path) -> None:
    """LOG-46: for any input."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    log.answer(timestamp=now)
    log.write(tmp_path / "claude" / "projects" / "p" / "s1.jsonl")
    payload: dict[str, object] = {
        "session_id": "s1", "transcript_path": "/home/user/s1.jsonl", "cwd": "/home/user/p", "version": "2.1.329",
        "model": {"id": "claude-sonnet-5", "display_name": "Sonnet\x1b[2J"}, "output_style": {"name": "default"},
        "workspace": {"current_dir": "/home/user/p", "project_dir": "/home/user/p", "added_dirs": []},
        "cost": {"total_cost_usd": 0.25, "total_duration_ms": 9000, "total_lines_added": 3},
        "context_window": {"context_window_size": 200_000, "used_percentage": 42, "remaining_percentage": 58},
        "rate_limits": {"five_hour": {"used_percentage": 7.4, "resets_at": 1795200000}}, "exceeds_200k_tokens": False,
    }  # fmt: skip

    lines = [
        process("statusline", stdin=content).stdout.decode()
        for content in (json.dumps(payload).encode(), b"odd", b"[3]")
    ]

    assert lines[0].startswith("Sonnet[2J | context 42% | session $0.25 | today $0.0015 | block $0.0015, ")
    assert lines[0].endswith(" left | limit 7%\n")
    assert all(line.count("\n") == 1 for line in lines)


def plan_input(**windows: tuple[float, float]) -> bytes:
    """Return a status line's input: windows by name, with the used share and the reset time."""
    limits = {kind: {"used_percentage": used, "resets_at": int(reset)} for kind, (used, reset) in windows.items()}
    return json.dumps({"rate_limits": limits}).encode()


def test_both_windows_of_the_plan_are_shown_and_watched(log: Any, tmp_path: Path) -> None:
    """LOG-59: by `watch` too, after the status line received them."""
    log.answer()
    log.write(tmp_path / "claude" / "projects" / "p" / "s1.jsonl")
    watch = ("watch", "--once", "--tz", "UTC")
    assert b"limit" not in process(*watch).stdout
    soon, later = time.time() + 7200, time.time() + 50 * 3600

    stdin = plan_input(five_hour=(7.4, soon), seven_day=(42, later))
    line = process("statusline", "--tz", "UTC", stdin=stdin).stdout.decode()

    shown = [
        time.strftime("limit 7%%, resets %H:%M", time.gmtime(soon)),
        time.strftime("week 42%%, resets %a %H:%M", time.gmtime(later)),
    ]
    assert line.endswith(f"| {' | '.join(shown)}\n")
    watched = process(*watch).stdout.decode()
    assert f"{' | '.join(shown)} (told to the status line 0 min ago)\n" in watched


def test_a_window_that_was_reset_is_not_watched_any_more(log: Any, tmp_path: Path) -> None:
    """LOG-59"""
    log.answer()
    log.write(tmp_path / "claude" / "projects" / "p" / "s1.jsonl")
    now = time.time()
    line = process("statusline", stdin=plan_input(five_hour=(90, now - 60), seven_day=(42, now + 9000))).stdout.decode()
    assert "limit 90% | week 42%, resets " in line
    watched = process("watch", "--once").stdout.decode()
    assert "week 42%" in watched
    assert "90%" not in watched


@pytest.mark.parametrize(
    "odd", [None, [], "much", {"five_hour": None}, {"five_hour": {"used_percentage": "7"}}, {"five_hour": 7}]
)
def test_odd_limits_are_none(odd: object) -> None:
    """LOG-59"""
    line = process("statusline", stdin=json.dumps({"rate_limits": odd}).encode()).stdout.decode()
    assert line == "today $0.00\n"


def test_a_growing_window_has_a_forecast_that_names_its_data(tmp_path: Path) -> None:
    """LOG-60: in the status line if it will be full before its reset, in `watch` also if not."""
    now = time.time()
    hour = [WindowUse("five_hour", now - 60 * minutes, 0.7 - minutes / 300, now + 9000) for minutes in (50, 40, 20)]
    week = [WindowUse("seven_day", now - 3600 * hours, 0.5 - hours / 100, now + 86400) for hours in (20, 10)]
    store_uses([*hour, *week], [])

    stdin = plan_input(five_hour=(70, now + 9000), seven_day=(50, now + 86400))
    line = process("statusline", "--tz", "UTC", stdin=stdin)

    # A third in 50 minutes, and as much longer as the process began later: 5,400 s * (3,000 s + delay) / 3,000 s.
    delays = range(int(time.time() - now) + 2)
    full = {time.strftime("%H:%M", time.gmtime(now + delay + 5400 * (1 + delay / 3000))) for delay in delays}
    forecasts = {f"at this pace full at {one}, from the last 50 min" for one in full}
    limit, of_week = line.stdout.decode().strip().split(" | ")[-2:]
    assert any(limit.endswith(f", {one}") for one in forecasts)
    assert "pace" not in of_week
    (tmp_path / "empty.jsonl").touch()
    watched = process("watch", "--once", "--tz", "UTC", tmp_path / "empty.jsonl").stdout.decode()
    assert any(f", {one} | week 50%, resets " in watched for one in forecasts)
    assert ", at this pace 74% at the reset, from the last 20 h (told to the status line 0 min ago)\n" in watched


def test_few_of_many_observations_are_stored_and_none_older_than_a_day() -> None:
    """LOG-60"""
    first, *more = [WindowUse("five_hour", float(seconds), seconds / 1e6, 1e6) for seconds in range(0, 90_001, 100)]
    store_uses([first], [])
    store_uses(more, stored_uses())

    times = [int(use.time) for use in stored_uses()]
    assert times[-1] == 90_000
    assert times[0] == 3_600 + 100
    assert len(times) <= 2 * 86_400 // 300
    assert max(after - before for before, after in pairwise(times)) <= 400


def test_windows_in_stream_json_are_watched(log: Any) -> None:
    """LOG-60: also those of a name that the terminal would obey."""
    now = int(time.time())
    for minutes, used in ((50, 0.1), (25, 0.2), (0, 0.3)):
        log.stream(f"msg_{minutes}", timestamp=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 60 * minutes)))
        windows = {"five_hour": {"utilization": used, "resetsAt": now + 7200}}
        info = {"status": "allowed", "unifiedWindows": windows, "other": [1]}
        log.lines.append({"type": "rate_limit_event", "rate_limit_info": info, "uuid": "u", "session_id": "s1"})
    odd = {"rateLimitType": "\x1b[2Jodd_one", "utilization": 0.1, "resetsAt": now + 7200}
    infos: tuple[object, ...] = (odd, [], "much", {"resetsAt": "x"})
    log.lines += [{"type": "rate_limit_event", "rate_limit_info": one} for one in infos]

    watched = process("watch", "--once", "--tz", "UTC", log.write()).stdout.decode()

    reset = time.strftime("%H:%M", time.gmtime(now + 7200))
    assert (
        f"\nlimit 30%, resets {reset}, at this pace 78% at the reset, from the last 50 min | [2Jodd one 10%" in watched
    )
    assert watched.endswith(" (logged 0 min ago)\n\n")


def test_completion_knows_the_commands(run: Run) -> None:
    """LOG-47"""
    for shell in ("bash", "zsh", "fish"):
        script = run("completion", shell).out
        assert all(word in script for word in ("report", "reconcile", "week-start", "tool"))
    for words, first in (("report mo", "month"), ("report --format j", "json"), ("search --role pro", "prompt")):
        tried = (
            f"COMP_WORDS=(cc-convert {words}); COMP_CWORD={words.count(' ') + 1}; _cc_convert; echo ${{COMPREPLY[@]}}"
        )
        checked = subprocess.run(
            ["bash", "-c", f"{run('completion', 'bash').out}\n{tried}"], capture_output=True, text=True, cwd="/"
        )
        assert checked.stdout.split()[0] == first


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_an_error_in_one_line(short_log: Path) -> None:
    """LOG-47"""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*COMMAND, "report", short_log], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "cc-convert: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX shell")
@pytest.mark.parametrize("words", ["report {log} >&-", "report - <&-", "statusline <&-", "report {log} 2>&-"])
def test_a_closed_stream_is_no_crash(short_log: Path, words: str) -> None:
    """LOG-47"""
    command = f"{shlex.join(COMMAND)} {words.format(log=shlex.quote(str(short_log)))}"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)

    assert (done.returncode, done.stderr) == (0, b"")


def test_watch_goes_on_while_its_folder_is_away(maker: Maker, tmp_path: Path) -> None:
    """LOG-46: and begins before the first session."""
    places = tmp_path / "claude" / "projects"
    with subprocess.Popen(
        [*COMMAND, "watch", "--interval", "0.2", "--tz", "UTC"], stdout=subprocess.PIPE, text=True
    ) as process:
        watchdog = threading.Timer(PATIENCE, process.kill)
        watchdog.start()
        try:
            assert process.stdout
            lines = iter(process.stdout)
            for _ in range(2):
                assert any("no folder with transcripts" in line for line in lines)
                log = maker("s1", start=datetime.now(UTC).isoformat())
                log.answer("msg_1")
                log.write(places / "p" / "s1.jsonl")
                assert any("claude-sonnet-5" in line for line in lines)
                places.rename(tmp_path / f"away{time.monotonic_ns()}")
        finally:
            process.kill()
            watchdog.cancel()
