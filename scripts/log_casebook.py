"""Compare cc-convert and ccusage on transcripts for each class of counting errors; prints a README table.

    uv run scripts/log_casebook.py --ccusage BINARY

The transcripts come from cc-convert's tests, and most from a real CLI; an edited transcript has a single damage.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cc_convert.logs import read_logs
from workspace import ROOT, markdown_table

Edit: TypeAlias = Callable[[Path], object]

RECORDS = ROOT / "packages" / "cc-convert" / "tests" / "transcripts"


class Case(NamedTuple):
    """A class of counting errors."""

    error: str
    record: str
    edit: Edit | None = None


def replaced(old: str, new: str) -> Edit:
    """Return the edit that replaces a text everywhere in a log."""
    return lambda log: log.write_text(log.read_text("utf-8").replace(old, new), "utf-8")


def packed(log: Path) -> None:
    log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()


def copied(log: Path) -> None:
    """Put a copy of a log, up to the first total, into another folder."""
    lines = log.read_text("utf-8").splitlines(keepends=True)
    end = next(number for number, line in enumerate(lines) if '"cost-state"' in line)
    (log.parent / "backup").mkdir()
    (log.parent / "backup" / log.name).write_text("".join(lines[: end + 1]), "utf-8")


CASES = (
    Case("a line for each content block", "casebook/blocks"),
    Case("sub-agents in files of their own", "casebook/sub_agent"),
    Case("agents of a workflow, and its journal", "workflow"),
    Case("resumed sessions", "casebook/resume"),
    Case("forks repeat their parent", "casebook/fork"),
    Case("forks by the SDK, with other ids", "casebook/fork_by_the_sdk"),
    Case("compactions", "casebook/compaction"),
    Case("a killed process", "casebook/killed_process"),
    Case("two processes in one session", "casebook/parallel_resumes"),
    Case("a clock that was set back", "clock/before_a_resume_-3600"),
    Case("an older copy beside the log", "casebook/resume", copied),
    Case("another model finishes the answer", "fallback"),
    Case("region, at 1.1 of the price", "casebook/region"),
    Case("web searches", "casebook/web_search"),
    Case("fast mode", "casebook/fast_mode"),
    Case("`null` in a tool's input", "casebook/blocks", replaced('"input":{', '"input":{"id":null,')),
    Case("an unknown `speed`", "casebook/blocks", replaced('"speed":"standard"', '"speed":"slow"')),
    Case("JSON with spaces", "casebook/blocks", replaced('":', '": ')),
    Case("times with microseconds", "casebook/blocks", replaced('Z"', '123Z"')),
    Case("packed logs", "casebook/blocks", packed),
)
"""The classes, each with the transcript on which it is seen."""


def counted_by_ccusage(binary: Path, folder: Path) -> tuple[int, float]:
    """Return ccusage's tokens and cost in US dollars for the logs below `folder`/projects."""
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(folder)}
    command = [binary, "claude", "daily", "-O", "-j"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    report: dict[str, dict[str, float]] | list[object] = json.loads(done.stdout)
    totals = report["totals"] if isinstance(report, dict) else {}
    return int(totals.get("totalTokens", 0)), totals.get("totalCost", 0.0)


def figures(case: Case, binary: Path | None = None) -> list[str]:
    """Return the cells for a case: served tokens and the CLI's cost, then each reader's tokens and cost."""
    with tempfile.TemporaryDirectory(prefix="casebook-") as temporary:
        folder = Path(temporary) / "projects" / "p"
        shutil.copytree(RECORDS / case.record, folder)
        if case.edit:
            [log] = folder.glob("*.jsonl")
            case.edit(log)
        served = sum(map(sum, json.loads((folder / "served.json").read_text("utf-8")).values()))
        logs = read_logs(folder)
        stated = sum(amounts.cost for total in logs.totals.values() for amounts in total.spent.values())
        # The API served the declined part within the request.
        tokens = sum(row.tokens for row in logs.rows if row.kind != "declined")
        sums = [(tokens, sum(row.cost or 0.0 for row in logs.priced()))]
        sums += [counted_by_ccusage(binary, Path(temporary))] if binary else []
    cells = [f"{'all' if count == served else f'**{count:,}**'}, ${abs(cost):.4f}" for count, cost in sums]
    return [f"{served:,}, ${stated:.4f}", *cells]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ccusage", type=Path, required=True, metavar="BINARY")
    arguments = parser.parse_args()
    head = ["Class", "Tokens served, CLI's cost", "cc-convert", "ccusage"]
    print(*markdown_table(head, *([case.error, *figures(case, arguments.ccusage)] for case in CASES)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
