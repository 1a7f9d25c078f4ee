"""The pure parts of scripts/check_packages.py and scripts/workspace.py."""

from __future__ import annotations

import asyncio
import time
import tomllib
import zipfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from check_packages import (
    Bench,
    Installed,
    Result,
    check_installed,
    check_wheel,
    parse_arguments,
    strict_settings,
    summary,
    table,
)
from commands import CheckError, run
from pin import Pins
from workspace import ROOT, Member, normalized, read_members, required_name, siblings


def member(name: str, *requires: str) -> Member:
    return Member(name, Path("packages", name), requires, (), ())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    members = {"cc-a": member("cc-a"), "cc-b": member("cc-b", "cc-a>=0.1")}
    made = Bench(tmp_path, members, Pins(["dep==1"], []), "python3", asyncio.Semaphore(1), uv=["uv"])
    made.dist.mkdir()
    (made.dist / "cc_a-0.1.0-py3-none-any.whl").touch()
    return made


def wheel_with(folder: Path, *names: str) -> Path:
    path = folder / "cc_a-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("cc-types>=0.1,<0.2", "cc-types"), ("Pydantic_AI.slim[anthropic]>=2", "pydantic-ai-slim"), ("a ; x == '1'", "a")],
)
def test_requirement_names_its_distribution(requirement: str, name: str) -> None:
    assert required_name(requirement) == name == normalized(name)


def test_siblings_are_followed_through_one_another() -> None:
    members = {"a": member("a", "b", "other"), "b": member("b", "c>1"), "c": member("c", "a"), "d": member("d")}

    assert siblings(members, ("a[extra]>=1", "numpy")) == {"a", "b", "c"}
    assert siblings(members, ("numpy",)) == set()


def test_every_package_of_the_workspace_is_a_source_of_its_own() -> None:
    members = read_members()

    sources = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["sources"]
    assert set(members) == set(sources)
    assert all(one.path.name == name for name, one in members.items())


def test_wheel_with_types_and_license_is_accepted(tmp_path: Path) -> None:
    check_wheel(wheel_with(tmp_path, "cc_a/py.typed", "cc_a-0.1.0.dist-info/licenses/LICENSE"), "cc_a")


@pytest.mark.parametrize(
    ("names", "missing"),
    [(["cc_a-0.1.0.dist-info/licenses/LICENSE"], "py.typed"), (["cc_a/py.typed", "cc_a/LICENSE"], "LICENSE")],
)
def test_wheel_without_types_or_license_is_refused(tmp_path: Path, names: list[str], missing: str) -> None:
    with pytest.raises(CheckError, match=f"has no {missing}"):
        check_wheel(wheel_with(tmp_path, *names), "cc_a")


def test_built_siblings_and_pinned_distributions_are_accepted(bench: Bench) -> None:
    origin = {"url": bench.wheel("cc-a").as_uri()}

    check_installed([Installed("cc-a", "0.1.0", origin), Installed("dep", "1", None)], bench)


@pytest.mark.parametrize(
    ("installed", "problem"),
    [
        (Installed("cc-a", "0.1.0", None), "an index"),
        (Installed("cc-a", "0.1.0", {"url": "file:///repo/cc-a", "dir_info": {"editable": True}}), "file:///repo/cc-a"),
        (Installed("dep", "1", {"url": "file:///dep.whl"}), "not from an index"),
        (Installed("stray", "2", None), "has no pin"),
        (Installed("banned", "2", None), "was installed too"),
    ],
)
def test_what_was_neither_built_nor_pinned_is_refused(bench: Bench, installed: Installed, problem: str) -> None:
    with pytest.raises(CheckError, match=problem):
        check_installed([installed], bench, without=["banned"])


def test_package_without_a_wheel_is_an_error_that_names_it(bench: Bench) -> None:
    with pytest.raises(CheckError, match="cc-b has 0 wheels"):
        bench.wheel("cc-b")


def test_alone_settings_are_as_strict_as_the_root_and_run_in_one_process() -> None:
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]

    alone = tomllib.loads(strict_settings(ROOT))["pytest"]

    assert alone.pop("addopts") == ["--import-mode=importlib"]
    assert {"strict", "filterwarnings", "timeout", "anyio_mode"} <= set(alone)
    assert alone == {key: root[key] for key in alone}
    assert "testpaths" not in alone


@pytest.mark.parametrize(
    ("attributes", "words"),
    [('tests="3" skipped="0"', "3 passed"), ('tests="3" skipped="1"', "2 passed, 1 skipped")],
)
def test_report_is_counted(attributes: str, words: str) -> None:
    assert summary(f"<testsuites><testsuite {attributes}/></testsuites>") == words


def test_table_has_a_line_for_each_package_in_columns() -> None:
    lines = table([Result("cc-a", 12_300, 4, "7 passed", 2.04), Result("cc-long-name", error="no")]).splitlines()

    assert [line.split() for line in lines[1:]] == [
        ["cc-a", "12", "kB", "4", "7", "passed", "2.0"],
        ["cc-long-name", "0", "kB", "0", "FAILED", "0.0"],
    ]
    assert lines[1].index("7 passed") == lines[2].index("FAILED")


def test_unknown_package_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["cc-a"], ["cc-a", "cc-z"])

    assert "no such package: cc-z" in capsys.readouterr().err


async def test_failed_command_shows_its_output(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match=r"(?s)exit code 3.*told you"):
        await run(["sh", "-c", "echo told you >&2; exit 3"], tmp_path)


async def test_command_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    for turns in (*range(12), None):
        started = tmp_path / f"started-{turns}"
        command = f"sleep 61 >/dev/null 2>&1 & echo $! >{started}.part; mv {started}.part {started}; wait"
        work = asyncio.create_task(run(["sh", "-c", command], tmp_path))
        await get_on(started, turns)

        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

        if started.exists():
            async with asyncio.timeout(5):  # it was killed, which takes its moment
                while is_running(int(started.read_text())):  # noqa: ASYNC110  # there is no event for it
                    await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # for which init has not waited yet
    return False


async def get_on(started: Path, turns: int | None) -> None:
    """Let so many turns of the loop pass, and the command get on in the last; or wait until its child is there."""
    if turns is None:
        async with asyncio.timeout(10):
            while not started.exists():  # noqa: ASYNC110, ASYNC240  # there is no event for it
                await asyncio.sleep(0.01)
        return
    for _ in range(turns):
        await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251  # the command gets on, and the loop does not
