"""A pytest plugin that counts the CLI's starts: a run with more than `--cli-starts` fails.

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
_BUDGET = 230


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "how many times this run may start the CLI (default: %(default)s; 0: any number)"
    parser.addoption("--cli-starts", type=int, default=_BUDGET, metavar="N", help=help_text)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return  # the worker's interpreter has loaded the counter
    handle, os.environ[_FILE] = tempfile.mkstemp(prefix="cli-starts-")
    os.close(handle)
    paths = [str(_COUNTER.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    runpy.run_path(str(_COUNTER))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and _exceeds(session.config, len(_modules())):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    modules, budget = _modules(), _budget(config)
    of_budget = f", of {budget}" if budget else ""
    excess = ": more than a run may take" if _exceeds(config, len(modules)) else ""
    terminalreporter.section(f"{len(modules)} starts of the CLI{of_budget}{excess}")
    for module, number in Counter(modules).most_common(_MODULES):
        terminalreporter.write_line(f"{number:4} {module}")


def _budget(config: pytest.Config) -> int:
    budget: int | None = config.getoption("cli_starts")
    return budget or 0


def _exceeds(config: pytest.Config, starts: int) -> bool:
    return 0 < _budget(config) < starts


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        Path(os.environ.pop(_FILE)).unlink()


def _modules() -> list[str]:
    """Return the module of the test that ran, for each start."""
    return Path(os.environ[_FILE]).read_text("utf-8").splitlines()
