"""The CLI's log about an API call is read from stderr."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from cc_messages import retry_after
from cc_messages.process.api_log import APILog
from debug_log import ANSWERED, SENDING

TIME = "2026-11-20T14:35:45.177Z"
REFUSED = """\
[Anthropic SDK DEBUG] [log_3e634b] response error (error; no more retries left) {
  status: 429,
  headers: {
    "request-id": "req_1",
    "retry-after": "17",
    "x-should-retry": "true",
  },
}
2026-11-20T14:35:45.177Z [ERROR] API error (attempt 1/1): 429 429 {"type":"error","error":{"type":"t","message":"one"}}
2026-11-20T14:35:45.179Z [ERROR] Error in API request: 429 {"type":"error","error":{"type":"t","message":"two","x":1}}
2026-11-20T14:35:45.179Z [ERROR] API rate_limit after retries: made-up"""


def log_of(*texts: str) -> APILog:
    """Return the log for a request with the number 7."""
    log = APILog()
    log.expect("600007")
    feed(log, *texts)
    return log


def feed(log: APILog, *texts: str) -> None:
    for line in "\n".join(texts).split("\n"):
        log.take(line)


def retold(name: str, value: str) -> APILog:
    return log_of(SENDING, "[Anthropic SDK DEBUG] [log_1] response start {", f'    "{name}": "{value}",', "}")


def test_the_head_of_a_response_is_known() -> None:
    """MSG-23"""
    log = log_of(SENDING, ANSWERED)
    assert log.headers == {"request-id": "req_1", "anthropic-ratelimit-requests-remaining": "7"}
    assert (log.headers.get("request-id"), retry_after(log.headers), log.error) == ("req_1", None, None)


def test_an_error_is_known_word_for_word() -> None:
    """MSG-30"""
    log = log_of(SENDING, REFUSED)
    assert log.headers == {"request-id": "req_1", "retry-after": "17", "x-should-retry": "true"}
    assert retry_after(log.headers) == 17
    assert log.error == {"type": "t", "message": "two", "x": 1}
    log.expect("600008")
    assert (log.headers, log.error) == ({}, None)


EARLIER = [(SENDING, ANSWERED), (SENDING, REFUSED), (ANSWERED,), (REFUSED,), (SENDING + ANSWERED[:9],)]


@pytest.mark.parametrize("late", EARLIER)
@pytest.mark.parametrize("split", [0, 6, 16])
async def test_lines_about_an_earlier_request_do_not_count(late: tuple[str, ...], split: int) -> None:
    """MSG-110: also if lines come later, and if the log is between two lines in an entry."""
    log = log_of()
    lines = "\n".join(late).split("\n")
    feed(log, *lines[:split])
    log.expect("600008")
    feed(log, *lines[split:])
    assert (log.headers, log.error, log.status, log.is_mixed) == ({}, None, None, False)
    assert not await log.called(0.001)
    feed(log, SENDING.replace("600007", "600008"), ANSWERED.replace("req_1", "req_mine"))
    assert log.headers.get("request-id") == "req_mine"
    assert await log.called(0.001)


async def test_a_call_with_the_number_of_another_request_proves_a_mix() -> None:
    """MSG-110"""
    log = log_of(SENDING, ANSWERED)
    assert await log.called(0.001)
    assert not log.is_mixed
    feed(log, SENDING.replace("600007", "600006"), ANSWERED.replace("req_1", "req_other"))
    assert log.is_mixed
    assert log.headers.get("request-id") == "req_1"


async def test_a_log_without_numbers_proves_nothing_and_is_read() -> None:
    """MSG-110"""
    log = log_of(SENDING.replace("    timeout: 600007,\n", ""), ANSWERED)
    assert not await log.called(0.001)
    assert log.headers.get("request-id") == "req_1"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (TIME + ' [ERROR] Error in API request: {"error":{"type":"t"}}', {"type": "t"}),
        (TIME + " [ERROR] Error in API request: ECONNRESET: {closed}", None),
        (TIME + " [ERROR] Error in API request: {", None),
        (TIME + ' [ERROR] Error in API request: 500 {"error":"text"}', None),
        (TIME + ' [ERROR] Another error: 429 {"error":{"type":"t"}}', None),
        (TIME + ' [ERROR] Tool x failed: [ERROR] Error in API request: {"error":{"type":"t"}}', None),
        ('x [ERROR] API error (attempt 1/1): 429 429 {"error":{"type":"t"}}', None),
    ],
)
def test_a_line_that_is_not_an_api_error_is_none(line: str, error: Any) -> None:
    assert log_of(SENDING, line).error == error


def test_how_long_to_wait_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    log = retold("retry-after", later)
    assert 90 < (retry_after(log.headers) or 0) <= 100
