"""The record of a process's settings: confirmed and unknown values."""

from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions
from hypothesis import strategies as st

from cc_session.internals import Launch
from cc_session.process.settings import Settings, values_in, variable
from cc_types import ControlRequestError

LIMIT = variable("LIMIT")
values = st.none() | st.text()
changes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "model": values,
        "permission_mode": values,
        "system_prompt": st.text(min_size=1),
        LIMIT: values,
        variable("OTHER"): values,
    },
)


def settings() -> Settings:
    return Settings(ClaudeAgentOptions(model="m", permission_mode="default", env={"LIMIT": "1"}))


def setting(**env: Any) -> dict[str, Any]:
    return {"subtype": "apply_flag_settings", "settings": {"env": env}}


class Process:
    """A process that takes every change."""

    def __init__(self) -> None:
        self.settings = settings()
        self.made: dict[str, object] = {}

    async def request(self, subtype: str, fields: dict[str, Any]) -> None:
        if fields.get("system_prompt") == "":
            raise ControlRequestError(subtype=subtype, message="system_prompt must be a non-empty string")
        self.made |= values_in({"subtype": subtype, **fields})


def test_the_values_of_the_start_are_known() -> None:
    assert settings().missing({"model": "m", "permission_mode": "default", LIMIT: "1"}) == {}
    assert settings().missing({"model": "n", LIMIT: "1"}) == {"model": "n"}


@pytest.mark.parametrize("is_success", [True, False])
def test_a_setting_is_unknown_until_the_cli_confirms_it(is_success: bool) -> None:
    """SES-92: also the earlier value, and after a refusal."""
    record = settings()
    record.sent("a", setting(LIMIT="2"))
    assert record.missing({LIMIT: "1"}) == {LIMIT: "1"}
    assert record.missing({LIMIT: "2"}) == {LIMIT: "2"}
    record.answered("a", is_success=is_success)
    assert (record.missing({LIMIT: "2"}) == {}) is is_success
    assert record.missing({LIMIT: "1"}) == {LIMIT: "1"}
    record.sent("b", setting(LIMIT="1"))
    record.answered("b", is_success=True)
    assert record.missing({LIMIT: "1"}) == {}


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_none_of_two_requests_at_the_same_time_confirms_their_common_setting(order: str) -> None:
    """SES-92."""
    record = settings()
    record.sent("a", {"subtype": "set_model", "model": "a"})
    record.sent("b", {"subtype": "apply_flag_settings", "settings": {"model": "b", "env": {"LIMIT": "2"}}})
    for name in order:
        record.answered(name, is_success=True)
    assert record.missing({"model": "a"}) and record.missing({"model": "b"})
    assert not record.missing({LIMIT: "2"})


PLAIN: dict[str, Any] = {"system_prompt": "Short.", "setting_sources": [], "model": "haiku"}
PRESET = PLAIN | {"system_prompt": {"type": "preset", "preset": "claude_code"}}
FILES = PLAIN | {"setting_sources": ["project"]}


def flags(**settings: Any) -> dict[str, Any]:
    return {"subtype": "apply_flag_settings", "settings": settings}


@pytest.mark.parametrize(
    ("change", "exact", "inexact"),
    [
        (flags(model="opus"), [PLAIN], [PRESET, FILES, PLAIN | {"permission_mode": "plan"}]),
        ({"subtype": "set_model"}, [PLAIN], [PRESET, FILES, PLAIN | {"fallback_model": "haiku"}]),
        (flags(effortLevel=None), [PLAIN, PRESET], [FILES, PLAIN | {"settings": "{}"}]),
        (setting(CLAUDE_CODE_EXTRA_BODY="{}"), [PLAIN, PRESET], [FILES, PLAIN | {"settings": "{}"}]),
        (setting(OTHER="1"), [], [PLAIN]),
        (flags(model="opus", outputStyle="Explanatory"), [], [PLAIN]),
        (
            {"subtype": "set_permission_mode", "mode": "dontAsk"},
            [PLAIN, FILES, PLAIN | {"permission_mode": "acceptEdits"}],
            [PLAIN | {"permission_mode": "plan"}, PLAIN | {"permission_mode": "auto"}],
        ),
        ({"subtype": "set_permission_mode", "mode": "plan"}, [], [PLAIN]),
        ({"subtype": "get_settings"}, [], [PLAIN]),
    ],
)
def test_a_change_can_be_undone_only_where_no_request_shows_it(
    change: dict[str, Any], exact: list[dict[str, Any]], inexact: list[dict[str, Any]]
) -> None:
    """SES-62: Claude Code's own prompt and some modes depend on the model; settings files give values, too."""
    assert all(Settings(ClaudeAgentOptions(**options)).can_undo(change) for options in exact)
    assert not any(Settings(ClaudeAgentOptions(**options)).can_undo(change) for options in inexact)


@pytest.mark.parametrize(
    ("start", "change", "is_same"),
    [
        (PLAIN, {"model": "opus"}, True),
        (PLAIN | {"permission_mode": "dontAsk"}, {"model": "opus"}, True),
        (PLAIN | {"permission_mode": "plan"}, {"model": "opus"}, False),
        (PRESET, {"model": "opus"}, False),
        (PLAIN | {"system_prompt": None}, {"model": "opus"}, True),
        (PLAIN | {"model": None}, {"system_prompt": "Long."}, True),
        (FILES, {"system_prompt": "Long."}, True),
        (FILES | {"model": None}, {"system_prompt": "Long."}, False),
    ],
)
def test_launches_share_a_process_only_if_it_can_change_without_a_trace(
    start: dict[str, Any], change: dict[str, Any], is_same: bool
) -> None:
    """SES-61, SES-94."""
    keys = [Launch(options=ClaudeAgentOptions(**options)).key for options in (start, start | change)]
    assert (keys[0] == keys[1]) is is_same
