"""`cc-convert search`: find a text in prompts, answers and tool calls, and show how to resume the session."""

import os
import re
import shlex
from argparse import Namespace
from bisect import bisect_right
from collections.abc import Iterator
from datetime import datetime, tzinfo
from itertools import accumulate
from typing import Any, NamedTuple

from ..log_files.cache import Cache
from ..log_files.sources import STDIN, hosts_of
from ..log_files.titles import read_titles
from ..search.find import Match, Query, SearchResult, find_passages, passage_of
from ..search.passages import ROLES, Passage
from .doctor import line_numbers
from .inputs import chosen_filter, chosen_zone, with_progress
from .output import RefusedError, iso_time, say, shortened, visible, write_output, write_records

_WIDTH = 160
"""Characters in an excerpt line, around the match."""
_BEFORE = 60
_MOST_LINES = 3
"""Matching lines in a passage's excerpt."""
# Logs are untrusted: another id could be an option or a command.
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NAMES = {"call": "tool call", "result": "tool result", "unreadable": "damaged line"}


class _Shown(NamedTuple):
    match: Match
    passage: Passage | None
    title: str


def run(options: Namespace) -> int:
    """Search; return 1 if nothing was found."""
    query = Query(options.text, regex=options.regex, chosen=chosen_filter(options), roles=options.role or ROLES)
    logs = hosts_of(options.sources, options.hosts)
    if STDIN in logs:
        raise RefusedError("standard input cannot be searched: matches are read a second time; write it to a file")
    cache = None if options.no_cache else Cache()
    with with_progress() as progress:
        result = find_passages(
            logs, query, cache=cache, processes=options.jobs or os.cpu_count() or 1,
            limit=options.limit or None, progress=progress,
        )  # fmt: skip
    titles = read_titles(dict.fromkeys(_main_transcript(match) for match in result.matches))
    shown = [_Shown(match, passage_of(match), titles.get(match.context.session, "")) for match in result.matches]
    zone = chosen_zone(options)
    with write_output(options.output, force=options.force) as file:
        if options.format == "json":
            write_records(file, list(_records(shown, query, options.context, zone)), "json")
        else:
            file.writelines(f"{visible(line)}\n" for line in _lines(shown, query, options.context, zone))
    _mention(result)
    return 0 if result.total else 1


def _main_transcript(match: Match) -> str:
    """Return the session transcript, also for a match in a sub-agent's transcript, perhaps of a workflow."""
    folder = match.path.rpartition(f"{os.sep}subagents{os.sep}")[0]
    return f"{folder}.jsonl" if folder and os.path.isfile(f"{folder}.jsonl") else match.path


def _mention(result: SearchResult) -> None:
    if len(result.matches) < result.total:
        say(f"note: the newest {len(result.matches):,} of {result.total:,} matches; --limit 0 shows all")
    if result.lost:
        say(f"note: lines that could not be read, and were searched as they stand: {result.lost:,}")
    for reason in result.failed:
        say(f"note: not searched: {reason}")
    if not result.total:
        say("nothing found")


# --- for people


def _lines(shown: list[_Shown], query: Query, context: int, zone: tzinfo | None) -> Iterator[str]:
    sessions: dict[tuple[str, str], list[_Shown]] = {}
    for hit in shown:
        sessions.setdefault((hit.match.context.host, hit.match.context.session), []).append(hit)
    for number, hits in enumerate(sessions.values()):
        if number:
            yield ""
        first_hit = hits[0]
        place = first_hit.match.context
        yield shortened(first_hit.title, _WIDTH) or f"Session {place.session or 'unknown'}"
        facts = (first_hit.match.folder or place.project, place.branch, place.host, f"session {place.session}")
        yield f"  {' · '.join(fact for fact in facts if fact)}"
        for hit in reversed(hits):
            yield f"  {_facts(hit, zone)}"
            yield from (f"    {line}" for line in _excerpt(hit.passage, query, context))
        if command := _resume_command(first_hit.match):
            yield f"  resume: {command}"


def _facts(hit: _Shown, zone: tzinfo | None) -> str:
    match = hit.match
    time = datetime.fromtimestamp(match.time, zone).strftime("%Y-%m-%d %H:%M:%S") if match.time else ""
    agent = match.context.agent and f"sub-agent {match.context.agent}"
    facts = (time, _NAMES.get(match.role, match.role), hit.passage.tool if hit.passage else "", agent)
    return " · ".join(fact for fact in facts if fact)


def _resume_command(match: Match) -> str:
    """Return the shell command that resumes the session; empty for an id with other characters than Claude Code's."""
    if not _SESSION.fullmatch(match.context.session):
        return ""
    command = f"claude --resume {match.context.session}"
    folder = match.folder
    if not os.path.isabs(folder) or not folder.isprintable():
        return command
    return f"cd {shlex.quote(folder)} && {command}"


def _excerpt(passage: Passage | None, query: Query, context: int) -> list[str]:
    """Return a passage's first matching lines, with the lines around them."""
    if passage is None:
        return ["(the log has changed)"]
    lines = passage.text.split("\n")
    starts = _match_starts(lines, passage.text, query)
    chosen: dict[int, int] = {}
    for at, start in list(starts.items())[:_MOST_LINES]:
        for number in range(max(0, at - context), min(len(lines), at + context + 1)):
            chosen.setdefault(number, 0)
        chosen[at] = start
    excerpt: list[str] = []
    for previous_number, number in zip([-1, *sorted(chosen)], sorted(chosen), strict=False):
        if context and previous_number >= 0 and number > previous_number + 1:
            excerpt.append("--")
        excerpt.append(_excerpt_line(lines[number], chosen[number]))
    more = len(starts) - _MOST_LINES
    return [*excerpt, f"({more:,} more lines)"] if more > 0 else excerpt


def _match_starts(lines: list[str], text: str, query: Query) -> dict[int, int]:
    """Return the first match in each matching line; the text start if only the lower case matches."""
    begins = list(accumulate((len(line) + 1 for line in lines), initial=0))
    starts: dict[int, int] = {}
    for match in query.pattern.finditer(text):
        number = bisect_right(begins, match.start()) - 1
        starts.setdefault(number, match.start() - begins[number])
    return starts or {0: 0}


def _excerpt_line(line: str, start: int) -> str:
    begin = max(0, min(start - _BEFORE, len(line) - _WIDTH))
    ellipsis = "\N{HORIZONTAL ELLIPSIS}"
    window = line[begin : begin + _WIDTH].replace("\t", " ").rstrip("\r")
    return f"{ellipsis if begin else ''}{window}{ellipsis if begin + _WIDTH < len(line) else ''}"


# --- for machines


def _records(shown: list[_Shown], query: Query, context: int, zone: tzinfo | None) -> Iterator[dict[str, Any]]:
    numbers = line_numbers([(hit.match.path, hit.match.offset) for hit in shown])
    for hit, number in zip(shown, numbers, strict=True):
        match = hit.match
        yield {
            **match.context._asdict(),
            "title": hit.title,
            "time": iso_time(match.time, zone),
            "role": match.role,
            "tool": hit.passage.tool if hit.passage else "",
            "excerpt": _excerpt(hit.passage, query, context),
            "file": match.path,
            "line": number,
            "folder": match.folder,
            "resume": _resume_command(match),
        }
