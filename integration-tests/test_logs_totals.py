"""Real CLI logs: the sums equal the CLI's own totals, to the cent and to the token."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, ResultMessage

from cc_convert.cli import main
from cc_convert.log_files.events import read_events
from cc_convert.logs import Logs, Prices, Row, read_logs, read_messages
from cc_convert.price_table import FAST, MODELS
from cc_convert.reconcile import reconcile
from cc_loopback import LoopbackServer
from cc_types import CLIResponse
from cli_logs import CliRuns

pytestmark = pytest.mark.slow

CENT = 0.005


@pytest.fixture
def cli(own_api: LoopbackServer, tmp_path: Path) -> CliRuns:
    return CliRuns(own_api, tmp_path)


def counts(rows: Iterable[Row]) -> tuple[int, ...]:
    return tuple(sum(column) for column in zip(*(row[9:14] for row in rows), strict=True))


def stated(*usages: dict[str, Any]) -> tuple[int, ...]:
    """Return the CLI's totals, by the same kinds."""
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationEphemeral5mInputTokens",
             "cacheCreationEphemeral1hInputTokens")  # fmt: skip
    return tuple(sum(model[name] for usage in usages for model in usage.values()) for name in names)


def cost(logs: Logs) -> float:
    return sum(row.cost or 0.0 for row in logs.priced())


def check(logs: Logs, *results: dict[str, Any]) -> None:
    """Check that the rows add up to the totals in these sessions' last results, and that every session agrees."""
    assert counts(logs.rows) == stated(*(result["modelUsage"] for result in results))
    assert cost(logs) == pytest.approx(sum(result["total_cost_usd"] for result in results), abs=CENT / 100)
    assert [comparison for comparison in reconcile(logs) if not comparison.agrees] == []
    assert logs.problems == []


def prompts(*texts: str) -> str:
    """Return a process's input with several prompts."""
    turns = [{"type": "user", "message": {"role": "user", "content": text}} for text in texts]
    return "".join(f"{json.dumps(turn)}\n" for turn in turns)


def everywhere(cli: CliRuns) -> list[Logs]:
    """Return the same runs by transcripts, by output, and by both."""
    return [read_logs(cli.transcripts), read_logs(*cli.streams), read_logs(cli.transcripts, *cli.streams)]


def check_everywhere(cli: CliRuns, *results: dict[str, Any]) -> None:
    for logs in everywhere(cli):
        check(logs, *results)


def since(result: dict[str, Any]) -> dict[str, Any]:
    """Return a fork's usage alone, like a result's."""
    own = result["model_usage_since_last_result"]
    return {"modelUsage": own, "total_cost_usd": sum(usage["costUSD"] for usage in own.values())}


def test_a_resumed_session_and_a_fork_of_it(cli: CliRuns) -> None:
    """LOG-31, LOG-20, LOG-22, LOG-23"""
    first = cli.run("READ please")
    check_everywhere(cli, first)
    assert [row.tools for row in read_logs(cli.transcripts).rows] == [("Read",), ()]

    resumed = cli.run("hello", "--resume", first["session_id"])
    fork = cli.run("hello", "--resume", first["session_id"], "--fork-session")
    for logs in everywhere(cli):
        check(logs, resumed, since(fork))
        by_fork = [row for row in logs.priced() if row.session == fork["session_id"]]
        assert sum(row.cost or 0 for row in by_fork) == pytest.approx(since(fork)["total_cost_usd"])


def test_a_compaction_a_fork_after_it_and_what_comes_after(cli: CliRuns) -> None:
    """LOG-31, LOG-23, LOG-26, LOG-27"""
    first = cli.run("READ please")
    session = first["session_id"]
    compacted = cli.run("/compact", "--resume", session)
    fork = cli.run("hello", "--resume", session, "--fork-session")
    check_everywhere(cli, compacted, since(fork))

    after = cli.run("hello", "--resume", session)
    check_everywhere(cli, after, since(fork))
    rows = [row for row in read_logs(cli.transcripts).priced() if row.session == session]
    [unlogged] = [row for row in rows if row.kind == "unlogged"]
    assert unlogged.cost == pytest.approx(compacted["total_cost_usd"] - first["total_cost_usd"])
    [path] = cli.transcripts.rglob(f"{session}.jsonl")
    events = list(read_events(str(path)))
    assert [event.tokens > 0 for event in events if event.kind == "compaction"] == [True]
    assert not any("being continued" in event.text for event in events if event.kind == "prompt")


def test_a_turn_with_partial_messages(cli: CliRuns) -> None:
    """LOG-31, LOG-22: each request has its final counts."""
    result = cli.run("READ please", "--include-partial-messages")

    check_everywhere(cli, result)
    streamed = read_logs(*cli.streams).rows
    assert [row.kind for row in streamed] == ["request", "request"]
    assert [row[9:16] for row in streamed] == [row[9:16] for row in read_logs(cli.transcripts).rows]


def test_turns_printed_as_json(cli: CliRuns) -> None:
    """LOG-31, LOG-01, LOG-23: only cumulative totals, so differences are used."""
    form = ("--output-format", "json")
    first = cli.run("READ please", form=form)
    check_everywhere(cli, first)

    cli.run("READ please", "--resume", first["session_id"], form=form)
    last = cli.run("hello", "--resume", first["session_id"], form=form)
    check_everywhere(cli, last)
    assert [row.kind for row in read_logs(*cli.streams).rows] == ["turn"] * 3

    verbose = cli.run("READ please", form=(*form, "--verbose"))
    check_everywhere(cli, last, verbose)


def test_errors_and_retries(cli: CliRuns) -> None:
    """LOG-31, LOG-25"""
    cli.server.fail_next(529, headers={"retry-after": "0.01"})
    retried = cli.run("hello")
    cli.server.fail_next(400, message="too odd", times=9)
    failed = cli.run("hello")

    assert failed["is_error"]
    check_everywhere(cli, retried, failed)
    assert [row.kind for row in read_logs(cli.transcripts).rows].count("error") == 1


def test_structured_output(cli: CliRuns) -> None:
    """LOG-31"""
    result = cli.run(
        "hello", "--json-schema", json.dumps({"type": "object", "properties": {"city": {"type": "string"}}})
    )

    check_everywhere(cli, result)


def test_several_turns_of_one_process(cli: CliRuns) -> None:
    """LOG-31, LOG-23"""
    result = cli.run("", "--input-format", "stream-json", stdin=prompts("one", "READ two"))

    check_everywhere(cli, result)
    messages = [json.loads(line) for line in cli.streams[0].read_text("utf-8").splitlines()]
    assert counts(read_messages(messages).rows) == stated(result["modelUsage"])


def test_a_sub_agent_and_the_commands_on_its_logs(
    cli: CliRuns, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-31, LOG-24, LOG-45, LOG-46, LOG-30: no complaints, and the same figures everywhere."""
    result = cli.run("AGENT please")

    check_everywhere(cli, result)
    rows = read_logs(cli.transcripts).rows
    assert {row.agent_type for row in rows} == {"", "general-purpose"}
    assert len({row.session for row in rows}) == 1

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(cli.transcripts.parent))
    monkeypatch.setenv("CC_CONVERT_CACHE", str(cli.folder / "cache"))

    def run(*words: str) -> str:
        assert main(words) == 0
        return capsys.readouterr().out

    *_, last = run("responses", str(cli.streams[0])).splitlines()
    assert CLIResponse.model_validate_json(last).result == result["result"]
    assert json.loads(run("report", "--format", "json"))["total"]["cost"] == pytest.approx(result["total_cost_usd"])
    assert [comparison["agrees"] for comparison in json.loads(run("reconcile", "--format", "json"))] == [True]
    assert "1 sessions agree" in run("doctor")
    assert {"Agent", "Read"} <= {line.split(",")[0] for line in run("report", "tool", "--format", "csv").splitlines()}
    query = "select count(*) as n from requests where agent <> ''"
    assert json.loads(run("sql", query, "--format", "json")) == [{"n": 2}]
    assert "sunny, 21 degrees" in run("convert", "--format", "md")


@pytest.mark.parametrize(
    "usage",
    [
        {"inference_geo": "us"},
        {"speed": "fast"},
        {"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1}},
        {"inference_geo": "us", "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}},
    ],
    ids=["region", "fast", "searches", "both"],
)
def test_fields_that_change_the_price(cli: CliRuns, usage: dict[str, Any]) -> None:
    """LOG-31, LOG-28: with a compaction, whose row has no usage."""
    cli.usage = usage
    compacted = cli.run("", "--input-format", "stream-json", stdin=prompts("READ please", "/compact"))

    check_everywhere(cli, compacted)


PRICED: list[tuple[str, int]] = [
    *((model, 0) for model in ("claude-3-5-haiku-20241022", "claude-opus-4-1", "claude-opus-4-5-20251101",
                               "claude-haiku-4-5", "claude-sonnet-4-6", "claude-fable-5", "claude-fable-5-1",
                               "claude-mythos-5-2", "claude-sonnet-5-5", "claude-opus-5-5", "claude-opus-4-7")),
    *((model, tokens) for tokens in (60_000, 260_000) for model in ("claude-haiku-5-5", "claude-sonnet-4-5[1m]")),
]  # fmt: skip
"""Every family, every distinct price, and long prompts. A run for each model would take a minute."""


async def test_a_model_and_a_long_prompt_cost_what_the_cli_says(cli: CliRuns) -> None:
    """LOG-31, LOG-28: in a process whose totals grow from turn to turn."""
    assert len(MODELS) >= 20
    options = ClaudeAgentOptions(cwd=cli.folder, env=cli.server.env(), model=PRICED[0][0], setting_sources=[])
    messages: list[Message] = []
    figures: dict[str, Any] = {}
    async with ClaudeSDKClient(options) as client:
        for model, tokens in PRICED:
            assert Prices().knows(model.removesuffix("[1m]"))
            cli.usage = {"speed": "fast"} if model in FAST else {}
            cli.usage |= {"input_tokens": tokens} if tokens else {}
            await client.set_model(model)
            await client.query("hello")
            messages += [message async for message in client.receive_response()]
            result = messages[-1]
            assert isinstance(result, ResultMessage)
            figures = {"modelUsage": result.model_usage, "total_cost_usd": result.total_cost_usd}
            logs = read_messages(messages)
            assert counts(logs.rows) == stated(figures["modelUsage"]), model
            assert cost(logs) == pytest.approx(figures["total_cost_usd"], abs=CENT / 100), model
    check(read_logs(cli.transcripts), figures)
