"""The pure parts of scripts/check_packages.py and scripts/check_alone.py, and the commands of scripts/commands.py."""

from __future__ import annotations

import asyncio
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from check_packages import main, missing

from check_alone import strangers, undeclared
from commands import CheckError, run
from workspace import ROOT, read_members, read_toml


def test_every_package_is_named_like_its_folder_and_is_a_source_of_the_workspace() -> None:
    members = read_members()

    assert [path.name for path in members] == [table["project"]["name"] for table in members.values()]
    assert {path.name for path in members} == {*read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["sources"]}


def test_every_package_has_its_own_version_pages_tests_and_types() -> None:
    """ARCH-11"""
    for path, table in read_members().items():
        assert "version" not in table["project"].get("dynamic", []), path
        assert table["project"]["version"]
        wanted = ["README.md", "CHANGELOG.md", "tests", f"src/{path.name.replace('-', '_')}/py.typed"]
        assert [name for name in wanted if not (path / name).exists()] == [], path


@pytest.mark.parametrize(
    ("names", "lacks"),
    [
        (["cc_a/py.typed", "cc_a-0.1.0.dist-info/licenses/LICENSE"], []),
        (["cc_a-0.1.0.dist-info/licenses/LICENSE"], ["cc_a/py.typed"]),
        (["cc_a/py.typed", "cc_a/LICENSE"], [".dist-info/licenses/LICENSE"]),
    ],
)
def test_wheel_has_its_types_and_its_license(tmp_path: Path, names: list[str], lacks: list[str]) -> None:
    """ARCH-11"""
    wheel = tmp_path / "cc_a-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "")

    assert missing(tmp_path) == [f"{wheel.name} has no {one}" for one in lacks]


def test_only_members_and_pinned_versions_may_be_installed_and_the_sdk_only_where_it_is_needed() -> None:
    """ARCH-09"""
    pins, sdk = ["dep==1", "fork==2 ; os_name == 'nt'", "claude-agent-sdk==3"], {"claude-agent-sdk": "3"}

    assert strangers("cc-types", {"cc-types": "0.1.0", "dep": "1", "fork": "2"}, pins, ["cc-types"]) == []
    assert strangers("cc-types", {"dep": "2", "stray": "2"}, pins, []) == ["dep 2 has no pin", "stray 2 has no pin"]
    assert strangers("cc-types", sdk, pins, []) == ["claude-agent-sdk was installed too"]
    assert strangers("cc-session", sdk, pins, []) == []


def test_an_undeclared_import_is_found_anywhere(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.py").write_text("import json\nfrom . import b\nimport pytest, extra.part", "utf-8")
    (tmp_path / "inner" / "b.py").write_text("def f():\n    from not_there.deep import x", "utf-8")

    assert undeclared(tmp_path, ["extra"]) == ["b.py imports not_there, which is not declared"]


def test_unknown_package_is_rejected(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["check_packages.py", "cc-types", "cc-z"])
    with pytest.raises(SystemExit):
        main()

    assert "unknown package: cc-z" in capsys.readouterr().err


async def test_failed_command_shows_its_output(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match=r"(?s)exit code 3.*told you"):
        await run(["sh", "-c", "echo told you >&2; exit 3"], tmp_path)


async def test_a_cancelled_command_leaves_no_process(tmp_path: Path) -> None:
    for turns in (*range(12), None):
        started = tmp_path / f"started-{turns}"
        command = f"sleep 61 >/dev/null 2>&1 & echo $! >{started}.part; mv {started}.part {started}; wait"
        work = asyncio.create_task(run(["sh", "-c", command], tmp_path))
        await get_on(started, turns)

        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

        if started.exists():
            async with asyncio.timeout(5):  # the process was killed, which takes a moment
                while is_running(int(started.read_text())):  # noqa: ASYNC110  # there is no event for it
                    await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE  # its exit status may not be read by init yet
    return False


async def get_on(started: Path, turns: int | None) -> None:
    """Run some iterations of the event loop, the last with time for the command; or wait for its child process."""
    if turns is None:
        async with asyncio.timeout(10):
            while not started.exists():  # noqa: ASYNC110, ASYNC240  # there is no event for it
                await asyncio.sleep(0.01)
        return
    for _ in range(turns):
        await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251  # the command continues, and the loop does not
