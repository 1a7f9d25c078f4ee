"""Messages for failures."""

import logging
from pathlib import Path

import pydantic_ai
import pytest
from pydantic_ai.exceptions import ModelHTTPError, UnexpectedModelBehavior, UserError

from cc_demo import main
from cc_demo.login import AnswerSource
from cc_demo.run import explain
from cc_loopback import LoopbackServer


def test_an_api_error_has_status_message_and_hint() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    text = explain(ModelHTTPError(529, "claude", body, hint="Wait."), AnswerSource.API_KEY)
    assert text == "The API answered with status 529: Overloaded. Wait. `cc-demo --offline` needs no login."


@pytest.mark.parametrize("body", ["<html>", {"error": "<html>"}])
def test_another_body_is_shown_unchanged(body: object) -> None:
    assert "<html>" in explain(ModelHTTPError(502, "claude", body), AnswerSource.API_KEY)


@pytest.mark.parametrize("error", [UserError("No CLI."), UnexpectedModelBehavior("Too many retries.")])
def test_an_error_with_a_clear_message_stays_as_it_is(error: Exception) -> None:
    assert explain(error, AnswerSource.OFFLINE) == str(error)


def test_any_other_error_is_shown_with_its_class() -> None:
    assert explain(ValueError("bad"), AnswerSource.OFFLINE) == "ValueError: bad (With --debug you see where.)"


@pytest.mark.worlds
def test_debug_shows_the_traceback(
    loopback: LoopbackServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The demo's changes to its process are undone.
    monkeypatch.setattr(pydantic_ai, "BANNER_ENABLED", True)
    monkeypatch.setattr(logging.getLogger(), "handlers", [*logging.getLogger().handlers])
    own = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path)}
    for name, value in {**own, "ANTHROPIC_API_KEY": "wrong", "ANTHROPIC_BASE_URL": loopback.url}.items():
        monkeypatch.setenv(name, value)
    loopback.fail_next(status=401, times=9)
    assert main(["--debug"]) == 1
    errors = capsys.readouterr().err
    assert "status 401" in errors
    assert "Traceback" in errors
