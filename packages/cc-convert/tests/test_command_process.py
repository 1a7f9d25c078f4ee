"""The command `cc-convert` as a process: pipes, signals, a terminal, a status line, a shell."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

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
