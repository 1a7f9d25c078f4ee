"""A pytest plugin that counts the CLI's starts: a run with more than `cli_starts` in pyproject.toml fails.

Programs that tests run are counted too, as long as they keep PYTHONPATH.
"""

import os
import runpy
import tempfile
from collections import Counter
from pathlib import Path

import pytest

_COUNTER = Path(__file__).parent / "counted_starts" / "sitecustomize.py"
_FILE = "TESTS_CLI_STARTS"
_MODULES = 10  # in the summary


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("cli_starts", "how many times a run may start the CLI", default="0")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # the worker's interpreter has loaded the counter
    handle, os.environ[_FILE] = tempfile.mkstemp(prefix="cli-starts-")
    os.close(handle)
    paths = [str(_COUNTER.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    runpy.run_path(str(_COUNTER))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and len(_modules()) > int(session.config.getini("cli_starts")):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    modules, budget = _modules(), int(config.getini("cli_starts"))
    excess = ": more than a run may take" if len(modules) > budget else ""
    terminalreporter.section(f"{len(modules)} starts of the CLI, of {budget}{excess}")
    for module, number in Counter(modules).most_common(_MODULES):
        terminalreporter.write_line(f"{number:4} {module}")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        Path(os.environ.pop(_FILE)).unlink()


def _modules() -> list[str]:
    """Return the module of the test that ran, for each start."""
    return Path(os.environ[_FILE]).read_text("utf-8").splitlines()
