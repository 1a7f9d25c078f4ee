"""The `loopback` fixture, used here and in separate pytest runs."""

import httpx2
import pytest

from cc_loopback import LoopbackServer

pytest_plugins = ["pytester"]

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
USING_THE_FIXTURE = """
import httpx2

BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}

def broken(body):
    raise ValueError("no such city")

def test_well_scripted(loopback):
    loopback.respond = lambda body: "fine"
    assert httpx2.post(loopback.url + "/v1/messages", json=BODY).json()["content"][0]["text"] == "fine"

def test_broken_responder_unnoticed(loopback):
    loopback.respond = broken
    httpx2.post(loopback.url + "/v1/messages", json=BODY)

def test_broken_responder_cleared(loopback):
    loopback.respond = broken
    httpx2.post(loopback.url + "/v1/messages", json=BODY)
    assert loopback.errors.pop().args == ("no such city",)
"""

FAILING = """
import pytest

@pytest.fixture
def late_request(loopback):
    yield
    loopback.respond = broken
    httpx2.post(loopback.url + "/v1/messages", json=BODY)

def test_status(loopback):
    loopback.respond = broken
    httpx2.post(loopback.url + "/v1/messages", json=BODY)
    httpx2.post(loopback.url + "/v1/messages", json=BODY).raise_for_status()

def test_fixture(late_request):
    pass

def test_skipped(loopback):
    loopback.respond = broken
    httpx2.post(loopback.url + "/v1/messages", json=BODY)
    pytest.skip("not here")
"""


def test_fixture_is_a_running_server_with_the_default_responder(loopback: LoopbackServer) -> None:
    """LOOP-40."""
    answer = httpx2.post(f"{loopback.url}/v1/messages", json=BODY).json()
    assert answer["content"] == [{"type": "text", "text": 'You said: "Hello".'}]


def test_error_of_a_responder_fails_the_test_unless_it_was_cleared(pytester: pytest.Pytester) -> None:
    """LOOP-25."""
    pytester.makepyfile(USING_THE_FIXTURE)
    run = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly")
    run.assert_outcomes(passed=2, failed=1)
    problem = "the loopback server's responder failed: ValueError: no such city, raised by the responder broken at "
    run.stdout.fnmatch_lines([f"{problem}*test_error_of_a_responder_fails_the_test_unless_it_was_cleared.py:6"])


def test_an_error_of_a_responder_is_the_only_failure(pytester: pytest.Pytester) -> None:
    """LOOP-63: with its place, and the test's line, in place of the client's error."""
    pytester.makepyfile(test_shop=USING_THE_FIXTURE + FAILING)
    run = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist", "-k", "status or fixture or skipped")
    run.assert_outcomes(failed=1, passed=1, skipped=1, errors=2)
    run.stdout.fnmatch_lines(
        [
            "the loopback server's responder failed: ValueError: no such city, *test_shop.py:6",
            "(1 later requests failed, too)",
            "The test then ended with HTTPStatusError at test_shop.py:*.",
        ]
    )
    run.stdout.fnmatch_lines(["*ERROR at teardown of test_fixture*"])
    assert "Traceback" not in run.stdout.str()
