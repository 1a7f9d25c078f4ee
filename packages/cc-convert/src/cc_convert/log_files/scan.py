"""Scan a log's bytes to a `FileScan`: every line is checked, but only relevant lines are decoded.

A log is read in pieces through one buffer, so memory does not grow with the file. In lines without usage, both ends
are checked, to detect a cut-off line; lines with usage are decoded.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, cast

from .collector import Collector, Taken
from .decode import decode_line
from .fields import fast_decoder
from .rows import FileScan
from .streams import DamagedLogError, Readable

Find: TypeAlias = Callable[[bytes, int, int], int]
"""Returns a needle's position between two bounds, or -1."""

LONGEST_LINE = 256 * 1024 * 1024
"""A longer line is reported and skipped. The largest line seen in real logs has 5 MB."""

# Large enough that the cost per piece is negligible, small enough for the processor cache and for memory.
_PIECE = 512 * 1024
# A buffer that grew for a long line keeps its size: more long lines are likely.
_KEPT = 8 * 1024 * 1024
_USAGE = b'"usage":'
_INNER = rb"[^{}\\]*(?:\{[^{}\\]*(?:\{[^{}\\]*\}[^{}\\]*)*\}[^{}\\]*)*"
_WHOLE_USAGE = re.compile(rb'"usage":\{' + _INNER + rb'\}(?=\}|,")')
"""A usage with all its fields, in which objects may hold objects. A brace within a text does not end it."""
_ANSWER = b'"assistant"'
_NAMES = (b'"cost-state"', b'"cc-convert-row"', b'"init"', _ANSWER)
"""Text near the start or the end of records that count without usage, or should have usage."""
_SHORT = 1024
"""A shorter line is decoded at once; in a longer line, start and end are searched for a name."""
_MARKS = (b'_tokens"', b'Tokens"', b"\0")
"""Text in a damaged usage or result, and in the holes after a crash."""
_PROMPT = b'"type":"user","message":{"role":"user"'
_ATTACHMENT = b'"attachment":{"type":'
_NAMED = b'{"type":"'
_KINDS = b"assistant user stream_event result system cost-state cc-convert-row rate_limit_event progress"
_COUNTING = tuple(b'{"type":"%s"' % kind for kind in _KINDS.split())
"""Beginnings of records that can count. Others, such as `api-request`, are the CLI's internal notes."""
_MESSAGE = b'"message":{"'
_ANSWERS = (_MESSAGE + b'id":', _MESSAGE + b'model":')
_HEAD = 320
"""Number of bytes at a line's start that contain its kind."""
_RECORD = b'{"parentUuid":'
_STARTS = (_RECORD, _NAMED)
"""Starts of nearly all records. Another is of another program, or damaged."""
_NOTE = b'{"type":"queue-operation"'
"""The first record of a process in a file, and of a prompt."""
_INPUT = b'"input'
_COUNT = b'put_tokens"'
_TAIL = 1280
"""In an answer, a result or a total, the last input count is within this many bytes of the end."""
_TIME = b'"timestamp":"'
_TIME_LENGTH = len("2026-11-22T12:00:00.000Z")
_NEAR = 16_384
_TOOL_USE = b'"type":"tool_use"'
_TOOL_NAME = re.compile(rb'"type":"tool_use",(?:"id":"(?P<id>[!#-\[\]-~]+)",)?"name":"(?P<name>[!#-\[\]-~]+)"')
_NO_REQUEST = b"\n"  # never within a line
_FIRST = 200
_OPEN = ord("{")
_FIELD = b'{"'
_LINE = b"\n" + _FIELD
_ENDS = b"}\r"


def plain_finders(data: bytearray) -> tuple[Find, Find]:
    """Return the functions that find a needle's first and last position."""
    return data.find, data.rfind


try:
    import stringzilla
except ImportError:
    finders = plain_finders
else:
    _vectors = cast("Any", stringzilla)

    def finders(data: bytearray) -> tuple[Find, Find]:
        """Return the same functions with the processor vector instructions; they need at most a fifth of the time."""
        return partial(_vectors.find, data), partial(_vectors.rfind, data)


def scan_stream(stream: Readable, path: str, *, earlier_scan: FileScan | None = None, strict: bool = False) -> FileScan:
    """Read a log from a stream to the end; any content gives a result.

    After an earlier scan, the stream has only the new part. With `strict`, every line is decoded, to find all defects.
    """
    # One buffer for all logs: allocating a buffer takes longer than reading a small log.
    data = _spare.pop() if _spare else bytearray(_PIECE)
    result = _Scanner(path, earlier_scan, strict=strict).read(stream, data)
    if not _spare:
        del data[_KEPT:]
        _spare.append(data)
    return result


_spare: list[bytearray] = []


def _begins_with_a_value(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text.lstrip("\ufeff \t\r\n"))
    except (ValueError, RecursionError):
        return False
    return True


def _may_count(find: Find, start: int, stop: int) -> bool:
    """Return true if a line without usage should be decoded nevertheless."""
    head, tail = start + _SHORT, stop - _TAIL
    return (
        stop < head
        or any(find(name, start, head) >= 0 or find(name, max(start, tail), stop) >= 0 for name in _NAMES)
        or any(find(mark, start, stop) >= 0 for mark in _MARKS)
        or find(_RECORD, start + 1, stop) >= 0
    )


def _whole_usage(data: bytearray, start: int, stop: int) -> bytes:
    """Return a usage with all its fields; empty if its end is not certain."""
    # It mostly ends with a text. To count braces takes a fifth of the expression time.
    usage = bytes(data[start : data.find(b'"}', start, stop) + 2])
    if usage.count(b"{") == usage.count(b"}") and b"\\" not in usage and data[start + len(usage)] in b",}":
        return usage
    usage_match = _WHOLE_USAGE.match(data, start, stop)
    return usage_match[0] if usage_match else b""


class _Scanner:
    def __init__(self, path: str, earlier_scan: FileScan | None, *, strict: bool) -> None:
        self._collector = Collector(path, earlier_scan)
        self._base = earlier_scan.offset if earlier_scan else 0
        self._strict = strict
        self._decode = fast_decoder()
        self._last_request = _NO_REQUEST
        self._last_usage = b""
        self._at_start = earlier_scan is None
        self._skipping = False

    def read(self, stream: Readable, data: bytearray) -> FileScan:
        carry = 0
        find, rfind = finders(data)
        while came := self._fill(stream, data, carry):
            # The line start that the last piece ended with has no newline.
            start, filled = carry, carry + came
            if self._skipping:
                start, filled = 0, self._skip(data, filled)
            end = data.rfind(b"\n", start, filled) + 1
            if end and self._at_start and not data.startswith(_FIELD) and self._is_document(data, end):
                return self._read_document(stream, data, filled)
            if end:
                if self._at_start:
                    self._note_time(data, find(_TIME, 0, end))
                self._at_start = False
                if self._strict:
                    self._every_line(data, end)
                else:
                    self._lines(data, end, find, rfind)
                self._base += end
                # A line start follows, and is nearly always short.
                data[: filled - end] = data[end:filled]
            carry = filled - end
            if carry == len(data):
                carry = self._make_room(data)
        return self._finish(bytes(data[:carry]))

    def _fill(self, stream: Readable, data: bytearray, carry: int) -> int:
        with memoryview(data) as view:
            try:
                return stream.readinto(view[carry : carry + _PIECE]) or 0
            except DamagedLogError as error:
                self._collector.report(self._base, str(error), is_lost=True)
                return 0

    def _make_room(self, data: bytearray) -> int:
        """Enlarge the buffer for a long line, or skip a line that is too long; return the number of remaining bytes."""
        carry = len(data)
        if carry < LONGEST_LINE:
            data *= 2
            return carry
        self._collector.report(self._base, f"longer than {LONGEST_LINE} bytes", is_lost=True)
        self._skipping = True
        return self._skip(data, carry)

    def _skip(self, data: bytearray, filled: int) -> int:
        """Drop bytes up to the end of a line that is too long; return the number of bytes after it."""
        end = data.find(b"\n", 0, filled) + 1
        self._skipping = not end
        dropped = end or filled
        self._base += dropped
        data[: filled - dropped] = data[dropped:filled]
        return filled - dropped

    def _finish(self, tail: bytes) -> FileScan:
        """Handle the text after the last newline: a complete record, or an unfinished record."""
        unfinished = False
        if tail.strip():
            decoded = decode_line(tail)
            if decoded.records and not decoded.lost:
                self._patiently(tail, self._base)
                self._base += len(tail)
            else:
                unfinished = True
        size = self._base + (len(tail) if unfinished else 0)
        return self._collector.scan(size=size, offset=self._base, unfinished=unfinished)

    # --- from line to line

    def _lines(self, data: bytearray, end: int, find: Find, rfind: Find) -> None:
        # For a single byte, Python's own search is the fastest.
        newline, startswith = data.find, data.startswith
        position = prompt_at = answer_at = 0
        while position < end:
            stop = newline(b"\n", position, end)
            is_whole = data[position] == _OPEN and data[stop - 1] in _ENDS
            # Text that distinguishes prompts and answers is mostly at the same position as in the line before.
            if startswith(_PROMPT, position + prompt_at, stop):
                quiet = is_whole
            elif startswith(_ANSWERS, position + answer_at, stop):
                quiet = False
            elif startswith(_NAMED, position):
                quiet = is_whole and not startswith(_COUNTING, position)
                # A count or a name in another kind of record may be that of an answer with a damaged kind.
                tail = max(position, stop - _TAIL)
                quiet = quiet and find(_COUNT, tail, stop) < 0 and find(_ANSWER, tail, stop) < 0
                if startswith(_NOTE, position):
                    self._note_time(data, find(_TIME, position, min(stop, position + _HEAD)))
            else:
                head = min(stop, position + _HEAD)
                if (at := find(_PROMPT, position, head)) >= 0:
                    quiet, prompt_at = is_whole, at - position
                elif (at := find(_MESSAGE, position, head)) >= 0:
                    quiet, answer_at = False, at - position
                else:
                    quiet = is_whole and find(_ATTACHMENT, position, head) >= 0
            # Prompts, tool results and the CLI notes are the bulk in a log, and have no usage. If one was cut off,
            # another record may follow it.
            if quiet:
                tail = max(position + 1, stop - _TAIL)
                if find(_INPUT, tail, stop) >= 0 or find(_RECORD, tail, stop) >= 0 or find(_NOTE, tail, stop) >= 0:
                    self._line(data[position:stop], self._base + position)
            # From the end, since usage follows the content, which may be long.
            elif (marker := rfind(_USAGE, position, stop)) >= 0:
                self._line_with_usage(data, find, position, stop, marker)
            elif not is_whole or not startswith(_STARTS, position) or _may_count(find, position, stop):
                self._note_time(data, rfind(_TIME, max(0, position - _NEAR), position))
                self._line(data[position:stop], self._base + position)
            position = stop + 1

    def _note_time(self, data: bytearray, at: int) -> None:
        """Note the time of a record that may not be decoded: the first record, a prompt, or a record before a total."""
        if at >= 0:
            at += len(_TIME)
            self._collector.note_time(str(data[at : at + _TIME_LENGTH], "ascii", "replace").partition('"')[0])

    def _every_line(self, data: bytearray, end: int) -> None:
        position = 0
        while position < end:
            stop = data.find(b"\n", position, end)
            self._patiently(bytes(data[position:stop]), self._base + position)
            position = stop + 1

    def _line_with_usage(self, data: bytearray, find: Find, start: int, stop: int, marker: int) -> None:
        call = find(_TOOL_USE, start, stop)
        tool = _TOOL_NAME.match(data, call, stop) if call >= 0 else None
        # The fast decoder skips content. A call in the usual form is read from the bytes, others are not.
        patiently = call >= 0 and (tool is None or find(_TOOL_USE, tool.end(), stop) >= 0)
        # Each content block in an answer has its own line and repeats the usage. The request id follows it, so it
        # is in the same record, also where the next record follows a cut-off line.
        if patiently or not data.startswith(self._last_usage, marker) or find(self._last_request, marker, stop) < 0:
            self._last_request = _NO_REQUEST
            # With spaces after colons, calls are not found.
            patiently = patiently or data[marker + len(_USAGE)] != _OPEN
            if self._line(data[start:stop], self._base + start, patiently=patiently) != "request":
                return
            # Another usage may be a tool input.
            self._last_usage = _whole_usage(data, marker, stop) if find(_USAGE, start, marker) < 0 else b""
            if not self._last_usage:
                self._last_request = _NO_REQUEST
        if tool is not None:
            identity, name = tool.groups(b"")
            self._collector.add_tool(str(identity, "ascii"), str(name, "ascii"))

    def _line(self, line: bytearray, offset: int, *, patiently: bool = False) -> Taken:
        taken = "whole" if patiently else self._take(line)
        if taken == "whole":
            self._patiently(bytes(line), offset)
        return taken

    def _take(self, line: bytearray) -> Taken:
        """Take a line by the fast path, if possible."""
        try:
            record = self._decode(line)
        except ValueError:
            return "whole"
        taken = self._collector.take(record)
        if taken == "request" and (request := record.get("requestId") or record.get("request_id")):
            name = "requestId" if record.get("requestId") else "request_id"
            self._last_request = f'"{name}":"{request}"'.encode("utf-8", "replace")
        return taken

    def _patiently(self, line: bytes, offset: int) -> None:
        records, problem, is_lost = decode_line(line)
        if problem:
            self._collector.report(offset, problem, is_lost=is_lost)
        for record in records:
            self._collector.take_whole(record, offset)

    # --- a JSON document over many lines

    def _is_document(self, data: bytearray, end: int) -> bool:
        """Return true if the first lines begin an indented JSON value. The first line in a log may be cut to `{`."""
        first_line, _, second = bytes(data[: min(end, _FIRST)]).lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
        second = second.lstrip().split(b"\n")[0].strip()
        if first_line.strip() not in (b"{", b"[") or not (second[:1] == b'"' or second in (b"{", b"[", b"}", b"]")):
            return False
        # Records behind it are those of a log whose first line was torn, unless it is whole: then they were appended.
        record_at = data.find(_LINE, 0, end)
        return record_at < 0 or _begins_with_a_value(str(data[:record_at], "utf-8", "replace"))

    def _read_document(self, stream: Readable, data: bytearray, filled: int) -> FileScan:
        """Read indented results."""
        content = data[:filled]
        piece = memoryview(bytearray(_PIECE))
        while (came := stream.readinto(piece)) and len(content) <= LONGEST_LINE:
            content += piece[:came]
        string = str(content, "utf-8", "replace").lstrip("\ufeff")
        decoder, position = json.JSONDecoder(), 0
        while position < len(string):
            if string[position].isspace():
                position += 1
                continue
            try:
                value, stop = decoder.raw_decode(string, position)
            except (ValueError, RecursionError):
                self._collector.report(len(string[:position].encode()), "not JSON, and no lines of JSON", is_lost=True)
                break
            self._patiently(json.dumps(value).encode(), position)
            position = stop
        return self._collector.scan(size=len(content), offset=len(content), unfinished=False)
