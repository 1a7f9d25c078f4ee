"""Sub-agents that work in the background, and what they report after their turn has ended."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    TaskNotificationMessage,
    TextBlock,
)  # fmt: skip

from cc_loopback import LoopbackServer
from cc_session import Session, Turn

from .conftest import until, use

START = use("helper", "Agent", description="look", prompt="Find it.", subagent_type="helper")


class Team:
    """A model that starts a helper, and the helper, which reports when it may."""

    def __init__(self) -> None:
        self.may_report = False
        self.reported: list[str] = []

    async def __call__(self, body: dict[str, Any]) -> Any:
        last, conversation = json.dumps(body["messages"][-1]), json.dumps(body["messages"])
        if "You are the helper" in json.dumps(body.get("system")):
            await until(lambda: self.may_report)
            return "It is 42."
        if "task-notification" in last:
            self.reported.append(last)
            return "The helper has found 42."
        if "And now?" in last:
            return "Nothing else."
        return "I have asked the helper." if "tool_result" in conversation else [START]


@pytest.fixture
def team(server: LoopbackServer) -> Team:
    server.respond = team = Team()
    return team


@pytest.fixture
def own_options(server: LoopbackServer, tmp_path: Path) -> ClaudeAgentOptions:
    """Options as a caller writes them, without a seal."""
    return ClaudeAgentOptions(
        model="claude-sonnet-5",
        system_prompt="You are a test.",
        tools=["Agent"],
        agents={"helper": AgentDefinition(description="Helps.", prompt="You are the helper.", tools=["Agent"])},
        permission_mode="bypassPermissions",
        setting_sources=[],
        cwd=tmp_path,
        env=server.env(),
    )


@pytest.fixture
async def session(own_options: ClaudeAgentOptions, team: Team) -> AsyncIterator[Session]:
    async with await Session.open(own_options) as session:
        yield session


def texts(turn: Turn) -> list[str]:
    return [
        block.text
        for message in turn.messages
        if isinstance(message, AssistantMessage) and message.parent_tool_use_id is None
        for block in message.content
        if isinstance(block, TextBlock)
    ]


@pytest.mark.worlds
async def test_a_late_report_comes_with_the_next_turn(session: Session, team: Team) -> None:
    """SES-124: the messages come first, the answer and the cost are the turn's own."""
    first = await session.run("Find it.")
    assert (first.text, first.result.terminal_reason) == ("I have asked the helper.", "completed")
    assert session.state == "idle"
    team.may_report = True
    await until(lambda: team.reported)
    await until(lambda: session.cost_usd > first.cost_usd)

    second = await session.run("And now?")
    assert second.text == "Nothing else."
    assert texts(second) == ["The helper has found 42.", "Nothing else."]
    [notification] = [message for message in second.messages if isinstance(message, TaskNotificationMessage)]
    assert (notification.status, notification.summary) == ("completed", "It is 42.")
    late, own = (message for message in second.messages if isinstance(message, ResultMessage))
    assert (late.result, own.result) == ("The helper has found 42.", "Nothing else.")


@pytest.mark.worlds
async def test_a_prompt_before_the_report_gets_its_own_answer(session: Session, team: Team) -> None:
    """SES-124."""
    await session.run("Find it.")
    second = await session.run("And now?")
    assert (second.text, texts(second)) == ("Nothing else.", ["Nothing else."])
    team.may_report = True
    await until(lambda: team.reported)
    third = await session.run("And now?")
    assert third.text == "Nothing else."
    assert "The helper has found 42." in [*texts(second), *texts(third)]


@pytest.mark.worlds
async def test_without_background_tasks_the_turn_has_the_report(
    own_options: ClaudeAgentOptions, server: LoopbackServer, team: Team
) -> None:
    """SES-125: as in every sealed process."""
    team.may_report = True
    options = replace(own_options, env={**own_options.env, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"})
    async with await Session.open(options) as session:
        turn = await session.run("Find it.")
        assert (turn.text, team.reported) == ("I have asked the helper.", [])
        assert "It is 42." in json.dumps(server.requests[-1]["messages"])
