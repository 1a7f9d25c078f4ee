"""The command `cc-model`."""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from pathlib import Path

from cc_types import CLIConnectionError

from .doctor import Check, LiveCheck, LivePlan, Plan, examine

_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "PROBLEM", "skipped": "skipped"}
_EPILOG = """\
Exit codes: 0 if nothing is wrong, 1 if there is a problem, 2 for wrong options, 130 after Ctrl-C.
Nothing is changed, no secret is shown, and without --online or --live the API is not asked.
--live says its price and asks before it begins. With ANTHROPIC_API_KEY it runs each scenario
with AnthropicModel, too, for twice the price.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.live:
        if options.json:
            parser.error("--live writes a report: it does not take --json")
        plan = LivePlan(report=options.report, max_usd=options.max_usd, model=options.model, cli_path=options.cli)
        return _start_live(plan, asks=not options.yes)
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
            _say(f"{_MARKS[check.outcome]}  {check.name}: {check.found}")
            if check.advice:
                _say(f"         {check.advice}")
    is_well = all(check.outcome != "problem" for check in checks)
    if as_json:
        _say(json.dumps({"ok": is_well, "checks": [asdict(check) for check in checks]}, indent=2))
    elif not is_well:
        _say("\nFix the problems above first.")
    elif plan.online:
        _say("\nClaude Code can answer here.")
    else:
        _say("\nNo problem found. Whether the API takes the login was not tried: --online asks it.")
    return 0 if is_well else 1


def _start_live(plan: LivePlan, *, asks: bool) -> int:
    try:
        most = plan.most
    except LookupError:
        _say(f"The price of {plan.model!r} is unknown, so no maximum can hold: name a Claude model with --model.")
        return 2
    both = ", each with Claude Code and with AnthropicModel," if plan.compares else ""
    _say(f"The scenarios{both} cost at most ${min(most, plan.max_usd):.2f} by the list prices, usually less.")
    _say("A subscription counts them against the plan.")
    if asks and not _agrees():
        _say("Nothing was sent.")
        return 1
    try:
        return asyncio.run(_live(plan))
    except KeyboardInterrupt:
        _say(f"\nInterrupted. The report so far: {plan.report}")
        return 130
    except (CLIConnectionError, OSError) as error:
        _say(str(error))
        return 1


def _agrees() -> bool:
    try:
        return input("Go on? [y/N] ").strip().casefold() in ("y", "yes")
    except EOFError:
        _say("")
        return False


async def _live(plan: LivePlan) -> int:
    check = LiveCheck(plan)
    async for result in check.run():
        direct = f" | AnthropicModel: {result.direct}" if result.direct else ""
        _say(f"{result.outcome:7}  {result.name}: {result.finding}{direct}")
    _say(f"\nAbout ${check.cost:.4f}. Report without secrets, for an issue: {plan.report}")
    return 1 if any(result.outcome == "failed" for result in check.results) else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


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
        "--live",
        action="store_true",
        help="run eleven scenarios on the API, which costs some cents, and write a report",
    )
    doctor.add_argument("--yes", action="store_true", help="with --live: do not ask before it begins")
    doctor.add_argument(
        "--max-usd",
        type=_usd,
        default=Decimal("0.50"),
        metavar="USD",
        help="with --live: skip scenarios that could pass this price (default: %(default)s)",
    )
    doctor.add_argument(
        "--report",
        type=Path,
        default=Path("cc-model-live.md"),
        metavar="FILE",
        help="with --live: the report (default: %(default)s)",
    )
    doctor.add_argument(
        "--model", default="sonnet", metavar="NAME", help="the model to ask then (default: %(default)s)"
    )
    doctor.add_argument(
        "--pool", type=_count, default=8, metavar="N", help="check the memory for N processes (default: %(default)s)"
    )
    doctor.add_argument("--cli", metavar="PATH", help="the Claude Code CLI (default: the CLI that the SDK brings)")
    return parser


def _usd(value: str) -> Decimal:
    try:
        amount = Decimal(value)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise argparse.ArgumentTypeError(f"must be a price such as 0.50, not {value!r}")
    return amount


def _count(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on, not {value!r}")
    return int(value)
