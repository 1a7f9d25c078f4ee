"""Files and folders are for this user alone from their first moment, and foreign files are never read."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cc_convert.cli.output import write_output
from cc_convert.log_files.cache import Cache
from cc_convert.log_files.private_files import open_private, write_private

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")


@pytest.fixture(params=[0, 0o002, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_umask")
def test_files_and_all_their_new_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """LOG-101"""
    path = tmp_path / "a" / "b" / "file"
    write_private(path, b"x")
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    assert [*path.parent.iterdir()] == [path]
    with pytest.raises(FileExistsError):
        write_private(path, b"y", is_new=True)
    assert (path.read_bytes(), [*path.parent.iterdir()]) == (b"x", [path])


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_CREAT])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "open to others"])
def test_only_own_regular_files_are_opened(kind: str, flags: int, tmp_path: Path) -> None:
    """LOG-101: at once, and without following a link. A file that is written becomes private instead."""
    path = tmp_path / "file"
    match kind:
        case "link":
            (tmp_path / "target").touch(0o600)
            path.symlink_to(tmp_path / "target")
        case "pipe":
            assert sys.platform != "win32"
            os.mkfifo(path, 0o600)
        case "folder":
            path.mkdir()
        case _:
            path.touch()
            path.chmod(0o666)
    if kind == "open to others" and flags:
        os.close(open_private(path, flags))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    else:
        with pytest.raises(OSError):
            open_private(path, flags)


def test_a_cache_entry_that_others_can_write_counts_as_missing(tmp_path: Path) -> None:
    """LOG-101"""
    cache = Cache(tmp_path)
    cache.store("name", (1, 2))
    assert cache.load("name") == (1, 2)
    os.chmod(cache.path_of("name"), 0o666)
    assert cache.load("name") is None


def test_an_output_is_not_written_through_a_planted_link(tmp_path: Path) -> None:
    """LOG-62"""
    target = tmp_path / "another's"
    target.write_text("kept")
    (tmp_path / f"out.csv.{os.getpid()}").symlink_to(target)
    with pytest.raises(OSError), write_output(str(tmp_path / "out.csv"), force=False) as file:
        file.write("rows")
    assert target.read_text() == "kept"
