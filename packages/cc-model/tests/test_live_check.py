"""Command `cc-model doctor --live`, with the real CLI on a loopback API that answers as a model would."""

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer, default_respond
from cc_model.command_line import main
from cc_model.doctor.live import price_of, scrub
from cc_model.doctor.scenarios import SCENARIOS

pytestmark = pytest.mark.worlds

KEY = "sk-ant-api03-a-made-up-key-0123456789"
ANSWERS = {
    "What is 37": "1591",
    "And plus one?": "1,592",
    "Say the word": "Pineapple!",
    "What is my dog": "Bruno.",
    "Which color": "It is red.",
    "Count from": "one, two … twenty",
}
NAMES = [*(scenario.name for scenario in SCENARIOS), "limits"]


def as_a_model(body: dict[str, Any]) -> Any:
    prompt = json.dumps(body["messages"][-1])
    system = json.dumps(body.get("system", ""))
    for word in ("tomato", "cabbage"):
        if word in system:
            return f"Hello, {word}!"
    if "Article 5" in system:
        usage = {"input_tokens": 9, "output_tokens": 9, "cache_read_input_tokens": 6000 if "article 6" in prompt else 0}
        return {"content": "45 euros", "usage": usage}
    for start, answer in ANSWERS.items():
        if start in prompt:
            thinking = [{"type": "thinking", "thinking": "Well."}] if start == "What is 37" else []
            return [*thinking, {"type": "text", "text": answer}]
    return default_respond(body)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.md"


@pytest.fixture
def api(loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> LoopbackServer:
    """A server that the environment's login, a key, leads to."""
    loopback.respond = as_a_model
    for name, value in {**loopback.env(), "ANTHROPIC_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    return loopback


def live(report: Path, *options: str) -> int:
    return main(["doctor", "--live", "--report", str(report), *options])


def outcomes(report: Path) -> dict[str, str]:
    rows = [line.split(" | ") for line in report.read_text("utf-8").splitlines() if line.startswith("| ")][2:]
    return {row[0].removeprefix("| "): row[1] for row in rows}


def test_all_scenarios_run_with_both_models_and_are_reported(
    api: LoopbackServer, report: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-115, MODEL-116"""
    assert live(report, "--yes") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("The scenarios, each with Claude Code and with AnthropicModel, cost at most $0.")
    assert list(outcomes(report)) == NAMES
    assert outcomes(report) == dict.fromkeys(NAMES[:-1], "ok") | {"limits": "skipped"}
    text = report.read_text("utf-8")
    assert "ok, the same tokens" in text
    assert "| cache read | ok | 6000 tokens read | ok, " in text
    assert "| thinking | ok | 1 thinking parts | ok, " in text
    assert "api_key from ANTHROPIC_API_KEY" in text
    assert not [secret for secret in (KEY, api.url, str(Path.home())) if secret in text + printed]
    # Each scenario is sent twice, through Claude Code and directly.
    agents = [call.headers["user-agent"].partition("/")[0] for call in api.calls if call.path == "/v1/messages"]
    assert agents.count("claude-cli") == len(agents) / 2


def test_without_a_key_only_claude_code_runs(
    api: LoopbackServer, report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-115, MODEL-116: with a plan's limits."""
    for name, value in api.env("oauth").items():
        monkeypatch.setenv(name, value)
    api.fail_next(429, headers={"anthropic-ratelimit-unified-5h-utilization": "0.4", "retry-after": "0"})
    assert live(report, "--yes") == 0
    assert "AnthropicModel" not in capsys.readouterr().out
    assert outcomes(report) == dict.fromkeys(NAMES, "ok")
    assert "| limits | ok | five_hour 40% |" in report.read_text("utf-8")
    assert "sk-ant-oat" not in report.read_text("utf-8")


def test_without_a_login_or_a_folder_nothing_is_sent(
    api: LoopbackServer, report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """MODEL-115"""
    assert live(report / "missing" / "report.md", "--yes") == 1
    assert "No such file or directory" in capsys.readouterr().out
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    assert live(report, "--yes") == 1
    assert "There is no login. Set ANTHROPIC_API_KEY, or run " in capsys.readouterr().out
    assert not api.requests


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_nothing_is_sent_without_consent(
    api: LoopbackServer, report: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """MODEL-115"""
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert live(report) == 1
    assert not api.calls
    assert not report.exists()


def test_scenarios_that_could_pass_the_maximum_price_are_skipped(api: LoopbackServer, report: Path) -> None:
    """MODEL-115: the first failure counts with its maximum, because its tokens are unknown."""
    text = price_of(SCENARIOS[0], "sonnet")
    assert Decimal(0) < text < Decimal("0.05")
    api.fail_next(400, times=1)
    assert live(report, "--yes", "--max-usd", str(3 * text)) == 1
    rows = outcomes(report)
    assert rows["text"] == "failed"
    assert rows["thinking"] == rows["cache read"] == "skipped"
    cost = Decimal(report.read_text("utf-8").partition("About $")[2].partition(" ")[0])
    assert text <= cost <= 3 * text


def test_a_failure_is_reported_without_secrets(
    api: LoopbackServer, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MODEL-116"""
    monkeypatch.setenv("MY_GATEWAY_TOKEN", "hidden-value")
    secrets = ["ada@example.com", KEY, "hidden-value", "https://gateway.example.com/a?b=c", str(Path.home())]
    secrets += ["0b1c2d3e-0000-4724-a7af-111260ba8285", "req_011CSHoEeqs5C35K2UUqR7Fy"]
    message = f"not | allowed: {' '.join(secrets)}"
    text = scrub(message)
    assert text == "not / allowed: <email> <secret> <secret> <address> ~ <id> <id>"
    api.fail_next(403, message=message, times=2)
    assert live(report, "--yes", "--max-usd", "0.05") == 1
    written = report.read_text("utf-8")
    assert "| text | failed | ModelAuthenticationError: status_code: 403" in written
    assert not [secret for secret in secrets if secret in written]


@pytest.mark.parametrize(
    "options", [["--max-usd", "-1"], ["--max-usd", "a lot"], ["--max-usd", "nan"], ["--json"], ["--model", "my-model"]]
)
def test_options_that_cannot_hold_are_refused(api: LoopbackServer, report: Path, options: list[str]) -> None:
    try:
        code: object = live(report, "--yes", *options)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert not api.calls
