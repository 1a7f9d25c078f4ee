"""The `loopback` fixture, the marker `cassette` and the option `--record`.

pytest loads this module in every run where the package is installed, so only the fixture imports the server.
"""

import re
import traceback
import zlib
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from .recording.tape import Cassette, RecordMode
    from .server import LoopbackServer

_SERVER: "pytest.StashKey[LoopbackServer]" = pytest.StashKey()
# A copy of `cc_loopback.RecordMode`, so that pytest need not import that module in every run.
_MODES = ("none", "once", "new_episodes", "all", "rewrite")
_NOT_IN_A_FILE_NAME = re.compile(r"[^\w.\[\]=,+-]+")
# File systems allow 255 bytes; a character may need four of them.
_LONGEST_NAME = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--record`."""
    parser.getgroup("cc-loopback").addoption(
        "--record",
        choices=_MODES,
        default="none",
        help="recording of tests with the marker `cassette`: none (default: replay only), once (record if there is no "
        "file), new_episodes (record requests that are not in the file), all (record each request again), rewrite "
        "(record into a new file)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker `cassette`."""
    config.addinivalue_line(
        "markers",
        "cassette(path=None, *, scrub={}, timing=False): the `loopback` fixture replays recorded answers, or records "
        "them with --record; the file is cassettes/MODULE/TEST.json beside the test, or `path` beside the test",
    )


@pytest.fixture
def cassette_scrub() -> Mapping[str, str]:
    """Regular expressions and replacements for all cassettes. Override it in a `conftest.py` or a test module."""
    return {}


@pytest.fixture
def loopback(request: pytest.FixtureRequest, cassette_scrub: Mapping[str, str]) -> "Iterator[LoopbackServer]":
    """A running `LoopbackServer` for a test, sync or async; `script()` or `respond` sets its answers.

    With the marker `cassette`, recorded answers come from a file.

    The test fails if `errors` is not empty: otherwise a responder error or an unrecorded request could stay unnoticed,
    or look like an injected fault. A test that expects such errors clears the list. It also fails if steps of its
    script were not used.
    """
    from .api.errors import CassetteError, MissingCassetteError
    from .server import LoopbackServer

    cassette = _cassette(request, cassette_scrub)
    try:
        with LoopbackServer(cassette=cassette) as server:
            request.node.stash[_SERVER] = server
            yield server
    except MissingCassetteError as error:
        pytest.fail(f"{error}: pytest --record=once '{request.node.nodeid}'", pytrace=False)
    except CassetteError as error:
        pytest.fail(str(error), pytrace=False)
    # Only errors of fixtures: `pytest_runtest_call` has reported the test's own.
    if problem := _problem(server):
        pytest.fail(problem, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test with the server errors in place of the errors that follow from them."""
    failure: BaseException | None = None
    try:
        outcome = yield
    except (Exception, pytest.fail.Exception) as error:
        failure, outcome = error, None
    server = item.stash.get(_SERVER, None)
    if server is not None and (problem := _problem(server)):
        server.errors.clear()
        test_failure = (
            "" if failure is None else f"\nThe test then ended with {type(failure).__name__}{_line(item, failure)}."
        )
        pytest.fail(f"{problem}{test_failure}", pytrace=False)
    if failure is not None:
        raise failure
    if server is not None and (problem := server.unused_steps):
        pytest.fail(problem, pytrace=False)
    return outcome


def _problem(server: "LoopbackServer") -> str:
    """Return the text for the server errors; empty if there are none."""
    if not server.errors:
        return ""
    from .api.errors import COMPLETE_ERRORS, first_error_text

    text = first_error_text(server.errors)
    # The text of a cassette's or script's error stands alone: it begins with the difference, or names the step.
    is_complete = isinstance(server.errors[0], COMPLETE_ERRORS)
    return text if is_complete else f"the loopback server's responder failed: {text}"


def _line(item: pytest.Item, error: BaseException) -> str:
    """Return the line in the test file at which `error` passed."""
    entries = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.filename == str(item.path)]
    return f" at {item.path.name}:{entries[-1].lineno}" if entries else ""


def _cassette(request: pytest.FixtureRequest, scrub: Mapping[str, str]) -> "Cassette | None":
    """Return the test cassette, or None if the test has no marker."""
    marker = request.node.get_closest_marker("cassette")
    if marker is None:
        return None
    from .recording.tape import Cassette

    options: dict[str, Any] = {**marker.kwargs, "scrub": {**scrub, **marker.kwargs.get("scrub", {})}}
    path = request.path.parent / (marker.args[0] if marker.args else _default_path(request))
    return Cassette(path, cast("RecordMode", request.config.getoption("--record")), **options)


def _default_path(request: pytest.FixtureRequest) -> Path:
    name, group = cast("str", request.node.name), cast("type | None", request.cls)  # pyright: ignore[reportUnknownMemberType]
    test = f"{group.__qualname__}.{name}" if group else name
    file = _NOT_IN_A_FILE_NAME.sub("-", test)[:_LONGEST_NAME]
    if file != test:
        # Two tests with similar names must not share a file.
        file += f"-{zlib.crc32(test.encode()):08x}"
    return Path("cassettes", request.path.stem, f"{file}.json")
