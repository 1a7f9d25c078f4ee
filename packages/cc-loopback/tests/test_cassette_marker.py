"""The marker `cassette` and the option `--record`, in separate pytest runs."""

from pathlib import Path

import httpcore2
import pytest

from cc_loopback import JsonObject, LoopbackServer

pytestmark = pytest.mark.worlds

pytest_plugins = ["pytester"]
# pytester forgets the modules that a run imports. httpx2 imports httpcore2 late and keeps exceptions from there, so the
# import here comes first.
assert httpcore2

TESTS = """
import httpx2
import pytest

@pytest.fixture
def cassette_scrub():
    return {"[0-9]+ o'clock": "now"}

def ask(loopback, text):
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    with httpx2.Client(verify=False) as http:
        return http.post(loopback.url + "/v1/messages", json=body, headers={"x-api-key": "sk-ant-api03-0123456789"})

@pytest.mark.cassette
def test_plain(loopback):
    assert ask(loopback, "Hello").json()["content"][0]["text"] == "Recorded."

@pytest.mark.cassette("shared/one.json", timing=True, scrub={"Ms [A-Z]": "Ms X"})
def test_named(loopback):
    assert ask(loopback, "I am Ms A, it is 3 o'clock").status_code == 200

@pytest.mark.cassette
class TestGroup:
    @pytest.mark.parametrize("city", ["Rome/Italy", "Rome-Italy"])
    def test_city(self, loopback, city):
        assert ask(loopback, city).status_code == 200

def test_scripted(loopback):
    assert "You said" in ask(loopback, "Hello").text
"""


def always_the_same(_body: JsonObject) -> str:
    return "Recorded."


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch, loopback: LoopbackServer) -> LoopbackServer:
    loopback.respond = always_the_same
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    return loopback


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist", "--strict-markers", *arguments)


def test_a_marked_test_records_once_and_replays_from_a_file_beside_it(
    pytester: pytest.Pytester, upstream: LoopbackServer
) -> None:
    """LOOP-57, LOOP-60."""
    module = pytester.makepyfile(test_shop=TESTS)
    run(pytester, "--record=once").assert_outcomes(passed=5)
    assert len(upstream.calls) == 4
    files = sorted(str(path.relative_to(module.parent)) for path in module.parent.rglob("*.json"))
    assert files[1:] == [
        "cassettes/test_shop/TestGroup.test_city[Rome-Italy].json",
        "cassettes/test_shop/test_plain.json",
        "shared/one.json",
    ]
    assert files[0].startswith("cassettes/test_shop/TestGroup.test_city[Rome-Italy]-")
    text = Path(module.parent, files[3]).read_text("utf-8")
    assert "I am Ms X, it is now" in text
    assert "sk-ant" not in text
    module.write_text(TESTS.replace("3 o'clock", "5 o'clock"), encoding="utf-8")
    run(pytester).assert_outcomes(passed=5)
    assert len(upstream.calls) == 4
    run(pytester, "--record=rewrite").assert_outcomes(passed=5)
    assert len(upstream.calls) == 8


def test_a_changed_request_fails_the_test_with_its_difference(
    pytester: pytest.Pytester, upstream: LoopbackServer
) -> None:
    """LOOP-56, LOOP-60, LOOP-63: although the test itself passes."""
    module = pytester.makepyfile(test_shop=TESTS)
    run(pytester, "--record=once", "-k", "city").assert_outcomes(passed=2, deselected=3)
    changed = TESTS.replace("loopback, city).status_code == 200", 'loopback, city + "!").status_code == 424')
    module.write_text(changed, encoding="utf-8")
    result = run(pytester, "-k", "city and Italy]")
    result.assert_outcomes(failed=2, deselected=3)
    title = "POST /v1/messages is not in the cassette *; the most similar recorded request differs:"
    result.stdout.fnmatch_lines(
        ["*_ TestGroup.test_city*", title, "--- recorded", '-*content: "Rome*Italy"', '+*"Rome*Italy!"'],
        consecutive=False,
    )
    text = result.stdout.str()
    assert text.index("--- recorded") - text.index("_ TestGroup.test_city") < 500


def test_a_missing_cassette_fails_the_test_with_the_command_that_records_it(
    pytester: pytest.Pytester, upstream: LoopbackServer
) -> None:
    """LOOP-57, LOOP-60."""
    pytester.makepyfile(test_shop=TESTS)
    result = run(pytester, "-k", "plain")
    result.assert_outcomes(errors=1, deselected=4)
    result.stdout.fnmatch_lines(["there is no cassette *: pytest --record=once 'test_shop.py::test_plain'"])
    assert upstream.calls == []


def test_a_damaged_cassette_fails_the_test_with_the_mode_that_replaces_it(
    pytester: pytest.Pytester, upstream: LoopbackServer
) -> None:
    """LOOP-58, LOOP-60. The mode `once` would read it again."""
    pytester.makepyfile(test_shop=TESTS)
    run(pytester, "-k", "plain", "--record=once").assert_outcomes(passed=1, deselected=4)
    [cassette] = pytester.path.rglob("*.json")
    cassette.write_text("{", encoding="utf-8")
    result = run(pytester, "-k", "plain")
    result.assert_outcomes(errors=1, deselected=4)
    result.stdout.fnmatch_lines(["*is not a cassette *correct it, or record it again with the mode `rewrite`"])


def test_other_modes_are_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--record=always")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*argument --record: invalid choice: 'always'*"])
