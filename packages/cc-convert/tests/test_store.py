"""The store for scans: few files, private, current, and without effect on a report if it is damaged."""

import os
import stat
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cc_convert.cli import main
from cc_convert.log_files import files
from cc_convert.log_files.cache import default_cache_folder
from cc_convert.log_files.store import Store
from cc_convert.logs import Cache, read_logs


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Return files that exist: entries for other files are dropped."""
    files = [tmp_path / f"{number}.jsonl" for number in range(100)]
    for path in files:
        path.touch()
    return [str(path) for path in files]


def packs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.pack"))


def entries(store: Store, paths: list[str]) -> dict[str, bytes | None]:
    contents = {path: store.get(path) for path in paths}
    store.close()
    return contents


def test_the_last_entry_of_each_name_is_kept_in_few_files(tmp_path: Path, paths: list[str]) -> None:
    """LOG-06: after a hundred reports, each with a few changed logs."""
    store, expected = Store(str(tmp_path / "store")), dict[str, bytes]()
    for number in range(100):
        new = {path: f"{number} {path}".encode() * 9 for path in paths[number : number + 3] or paths[:1]}
        store.add(new)
        expected |= new

        assert len(packs(tmp_path / "store")) <= 8
    assert entries(Store(str(tmp_path / "store")), paths) == expected
    size = sum(path.stat().st_size for path in packs(tmp_path / "store"))
    assert size < 4 * sum(map(len, expected.values()))


def test_the_data_of_a_log_goes_away_with_it(tmp_path: Path, paths: list[str]) -> None:
    """LOG-84: when packs are merged."""
    store = Store(str(tmp_path / "store"))
    store.add({paths[0]: b"of a log that goes", paths[1]: b"of one that stays"})
    os.unlink(paths[0])
    store.add({paths[2]: b"enough to have the packs merged"})

    assert entries(store, paths[:3]) == {
        paths[0]: None, paths[1]: b"of one that stays", paths[2]: b"enough to have the packs merged"
    }  # fmt: skip
    [pack] = packs(tmp_path / "store")
    assert b"log that goes" not in pack.read_bytes()


@pytest.mark.parametrize("at", [0, 30, -1, -6, -12, -20, None])
def test_a_damaged_entry_is_missing_and_others_stay(tmp_path: Path, paths: list[str], at: int | None) -> None:
    """LOG-06: one byte in the entry, in the index or in its size, or the whole content."""
    store = Store(str(tmp_path / "store"))
    store.add({paths[0]: b"first" * 9, paths[1]: b"second" * 9})
    [pack] = packs(tmp_path / "store")
    content = bytearray(pack.read_bytes())
    if at is None:
        content = bytearray()
    else:
        content[at] ^= 0x81
    pack.write_bytes(content)

    contents = entries(Store(str(tmp_path / "store")), paths[:2])

    assert contents[paths[0]] is None
    assert contents[paths[1]] == (b"second" * 9 if at in (0, 30) else None)
    store.add({paths[0]: b"again"})
    assert entries(store, paths[:1]) == {paths[0]: b"again"}


def test_a_report_writes_one_private_file_whatever_the_number_of_logs(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-54, LOG-83: read by one process or several, and again from the store."""
    monkeypatch.setattr(files, "_WORTH_A_PROCESS", 1)
    for number in range(50):
        log = maker(f"s{number}")
        log.answer(f"msg_{number}")
        log.write(tmp_path / "logs" / f"{number}.jsonl")
    plain = read_logs(tmp_path / "logs")

    for processes in (1, 2):
        cache = Cache(tmp_path / f"cache{processes}")
        assert read_logs(tmp_path / "logs", cache=cache, processes=processes) == plain
        [pack] = packs(Path(cache.folder))
        if sys.platform != "win32":
            assert stat.S_IMODE(pack.stat().st_mode) == 0o600
        assert read_logs(tmp_path / "logs", cache=cache) == plain


class Watcher(StringIO):
    """An output that notes which files a folder has at each write."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.packs_at_writes = folder, list[list[Path]]()

    def write(self, text: str, /) -> int:
        self.packs_at_writes.append([*self.folder.rglob("*.pack")])
        return super().write(text)


def test_a_first_report_is_printed_before_the_cache_is_written(
    short_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-61: with the same lines as without a cache, and as the repeated report."""
    outputs: list[str] = []
    for option in ([], [], ["--no-cache"]):
        watcher = Watcher(tmp_path / "cache")
        monkeypatch.setattr(sys, "stdout", watcher)

        assert main(["report", str(short_log), *option]) == 0

        outputs.append(watcher.getvalue())
        assert watcher.packs_at_writes
        assert all(bool(packs) == (len(outputs) > 1) for packs in watcher.packs_at_writes)
        assert [*(tmp_path / "cache").rglob("*.pack")]
    assert len({*outputs}) == 1


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {"XDG_CACHE_HOME": "/cache"}, "/cache/cc-convert"),
        ("linux", {}, "/home/user/.cache/cc-convert"),
        ("darwin", {"XDG_CACHE_HOME": "/cache"}, "/home/user/Library/Caches/cc-convert"),
        ("linux", {"CC_CONVERT_CACHE": "~/own"}, "/home/user/own"),
    ],
)
def test_the_cache_is_in_the_users_cache_folder(
    platform: str, variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-06"""
    for name in ("CC_CONVERT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/user", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)

    assert default_cache_folder() == folder
