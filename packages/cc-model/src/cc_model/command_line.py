"""The command `cc-model`."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

from .doctor import Check, Plan, examine

__all__ = ["main"]

_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM", "skipped": "skipped"}
_EPILOG = """\
Exit codes: 0 if nothing is wrong, 1 if there is a problem, 2 for wrong options.
Nothing is changed, no secret is shown, and without --online the API is not asked.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    options = _parser().parse_args(arguments)
    plan = Plan(cli_path=options.cli, pool=options.pool, online=options.online, model=options.model)
    try:
        return asyncio.run(_doctor(plan, as_json=options.json))
    except KeyboardInterrupt:
        return 130


async def _doctor(plan: Plan, *, as_json: bool) -> int:
    checks: list[Check] = []
    async for check in examine(plan):
        checks.append(check)
        if not as_json:
            _say(_line(check))
    is_well = all(check.outcome != "problem" for check in checks)
    if as_json:
        _say(json.dumps({"ok": is_well, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        _say(f"\n{_summary(plan) if is_well else 'Fix the problems above first.'}")
    return 0 if is_well else 1


def _summary(plan: Plan) -> str:
    if plan.online:
        return "Claude Code can answer here."
    return "No problem found. Whether the API takes the login was not tried: --online asks it."


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _line(check: Check) -> str:
    line = f"{_MARKS[check.outcome]}  {check.name}: {check.found}"
    return f"{line}\n         {check.advice}" if check.advice else line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cc-model", description="Claude Code as a pydantic-ai model.")
    parser.add_argument("--version", action="version", version=f"cc-model {version('cc-model')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    doctor = commands.add_parser(
        "doctor",
        help="check whether Claude Code can answer on this machine, and say what to do if not",
        description="Check Python, packages, CLI, login, address, sockets, memory, and a round trip.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    doctor.add_argument("--online", action="store_true", help="ask the API twice, which costs some tokens")
    doctor.add_argument(
        "--model", default="sonnet", metavar="NAME", help="the model to ask then (default: %(default)s)"
    )
    doctor.add_argument(
        "--pool", type=_count, default=8, metavar="N", help="check the memory for N processes (default: %(default)s)"
    )
    doctor.add_argument("--cli", metavar="PATH", help="the Claude Code CLI (default: the CLI that the SDK brings)")
    return parser


def _count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, not {value!r}")
    return int(value)
