"""Costs of requests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.log_files.model_names import canonical_model
from cc_convert.logs import Prices, Row, read_logs
from cc_convert.prices import PriceFileError


@pytest.fixture
def row(maker: Callable[..., Any]) -> Callable[..., Row]:
    """Return the row for an answer with this usage."""

    def make(model: str = "claude-sonnet-5", **usage: object) -> Row:
        log = maker()
        log.answer(model=model, usage=log.usage(**usage))
        [answer] = read_logs(log.write()).rows
        return answer

    return make


Make: TypeAlias = Callable[..., Row]
# 100 input, 20 output, 1000 read, 200 written for five minutes, 100 for an hour.
SONNET = (100 * 2 + 20 * 10 + 1000 * 0.2 + 200 * 2.5 + 100 * 4) / 1e6
OPUS_FAST = (100 * 10 + 20 * 50 + 1000 * 1 + 200 * 12.5 + 100 * 20) / 1e6
# Without the input.
HAIKU = 20 * 5 + 1000 * 0.1 + 200 * 1.25 + 100 * 2
SEARCHES = {"web_search_requests": 3, "web_fetch_requests": 9}
STEP = {"type": "message", "input_tokens": 60_000, "output_tokens": 10, "cache_read_input_tokens": 0}
TWO_STEPS: dict[str, object] = {
    "input_tokens": 120_000, "output_tokens": 20, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
    "cache_creation": None, "iterations": [STEP, STEP],
}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "usage", "cost"),
    [
        ("sonnet-5", {}, SONNET),
        ("sonnet-5", {"inference_geo": "us"}, SONNET * 1.1),
        ("sonnet-5", {"inference_geo": "global"}, SONNET),
        ("sonnet-5", {"inference_geo": None}, SONNET),
        ("sonnet-5", {"service_tier": "batch"}, SONNET * 0.5),
        ("sonnet-5", {"service_tier": "priority"}, SONNET),
        ("sonnet-5", {"inference_geo": "us", "service_tier": "batch"}, SONNET * 0.55),
        ("sonnet-5", {"speed": "fast"}, SONNET),
        ("opus-5", {"speed": "fast"}, OPUS_FAST),
        ("sonnet-5", {"inference_geo": "us", "server_tool_use": SEARCHES}, SONNET * 1.1 + 0.03),
        ("haiku-5-5", {"input_tokens": 98_700}, (98_700 + HAIKU) * 0.1 / 1e6),
        ("haiku-5-5", {"input_tokens": 98_701}, (98_701 + HAIKU) * 0.5 / 1e6),
        ("haiku-5-5", TWO_STEPS, (120_000 * 0.1 + 20 * 0.5) / 1e6),
    ],
    ids=[
        "every kind", "us", "global", "nowhere", "batch", "priority", "us batch", "no fast mode", "fast mode",
        "searches", "long", "longer", "each sampling by itself",
    ],
)  # fmt: skip
def test_each_kind_of_token_region_tier_speed_and_length_has_its_price(
    row: Make, model: str, usage: dict[str, object], cost: float
) -> None:
    """LOG-28: searches cost the same everywhere, and 1,300 cache tokens are part of a long prompt.

    Seen elsewhere: the region is ignored, a tenth missing; searches are free.
    """
    assert Prices().cost(row(f"claude-{model}", **usage)) == pytest.approx(cost)


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5-20250929", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5@20250929",
        "anthropic/claude-sonnet-4-5", "claude-sonnet-4-5[1m]", "claude-sonnet-4-5-latest", "CLAUDE-SONNET-4-5",
        "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
    ],
)  # fmt: skip
def test_a_model_has_the_same_price_under_every_name(row: Make, name: str) -> None:
    """LOG-28"""
    assert Prices().cost(row(name)) == Prices().cost(row("claude-sonnet-4-5"))


@pytest.mark.parametrize("name", ["claude-opus-9", "claude-sonnet-5-turbo", "gpt-4o", ""])
def test_an_unknown_model_has_no_price(row: Make, name: str) -> None:
    """LOG-29. Seen elsewhere: it costs nothing, without a report."""
    assert Prices().cost(row(name)) is None
    assert not Prices().knows(name)


def test_a_file_replaces_the_list(row: Make, tmp_path: Path) -> None:
    """LOG-29"""
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"as_of": "2030-01-01", "models": {"claude-opus-9": [1, 2, 3, 4, 5]}, "geo": {"us": 2}}))

    prices = Prices.from_file(path, replaces=True)

    assert prices.cost(row("claude-opus-9", inference_geo="us")) == pytest.approx(
        2 * (100 * 1 + 20 * 2 + 1000 * 3 + 200 * 4 + 100 * 5) / 1e6
    )
    assert prices.cost(row()) is None
    assert prices.as_of == "2030-01-01"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"models": 3}', '{"models": {"m": [1, 2]}}', '{"models": {"m": [1, 2, 3, 4, -5]}}']
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "prices.json"
    path.write_text(content)

    with pytest.raises(PriceFileError, match="not a price list"):
        Prices.from_file(path)


# --- whose figures


def test_costs_by_old_versions_are_used_except_in_calculate_mode(log: Any) -> None:
    """LOG-42"""
    log.answer(costUSD=0.5)
    logs = read_logs(log.write())

    def costs(mode: Any) -> list[float | None]:
        return [row.cost for row in logs.priced(mode=mode)]

    assert costs("auto") == [0.5]
    assert costs("logged") == [0.5]
    assert costs("calculate") == [pytest.approx(SONNET)]


def test_the_logged_cost_of_a_session_is_shared_out(log: Any) -> None:
    """LOG-42: an agreed price shows only in the CLI's total."""
    log.answer("msg_1")
    log.answer("msg_2", model="claude-of-next-year")
    log.state(
        {"claude-sonnet-5": (100, 20, 1000, 200, 100, 0.5), "claude-of-next-year": (100, 20, 1000, 200, 100, 0.25)}
    )
    logs = read_logs(log.write())

    assert [row.cost for row in logs.priced(mode="logged")] == [0.5, 0.25]
    assert [row.cost for row in logs.priced(mode="calculate")] == [pytest.approx(SONNET), None]


NAMES = {
    "claude-sonnet-4-5": [
        "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock/us-east-1/anthropic.claude-sonnet-4-5",
        "bedrock/converse/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "vertex_ai/claude-sonnet-4-5@20250929",
        "databricks-claude-sonnet-4-5", "databricks/databricks-claude-sonnet-4-5", "anthropic/claude-sonnet-4.5",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn:aws:bedrock:us-west-2::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0:200k",
        "openrouter/anthropic/claude-sonnet-4.5:thinking", "Claude-4.5-Sonnet", "azure_ai/claude-sonnet-4-5",
        "projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929", "claude-sonnet-4-5[1m]",
    ],
    "claude-sonnet-4-0": ["claude-4-sonnet-20250514", "snowflake/claude-4-sonnet", "anthropic/claude-sonnet-4"],
    "claude-opus-4-0": ["databricks-claude-opus-4", "vercel_ai_gateway/anthropic/claude-4-opus"],
    "claude-3-7-sonnet": ["anthropic/claude-3.7-sonnet:beta", "us.anthropic.claude-3-7-sonnet-20250219-v1:0"],
    "claude-3-5-sonnet": ["claude-3-5-sonnet-v2@20241022", "claude-sonnet-3.5", "claude-3-5-sonnet-latest"],
    "gpt-5": ["gpt-5"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "written"), [(name, written) for name in NAMES for written in NAMES[name]])
def test_a_model_has_its_price_under_each_name(name: str, written: str) -> None:
    """LOG-29"""
    assert canonical_model(written) == name
    assert Prices().knows(written) == (name != "gpt-5")


def test_a_file_with_prices_adds_to_the_list_or_replaces_it(run: Any, log: Any, tmp_path: Path) -> None:
    """LOG-29: a model in the file has only the file's prices."""
    log.answer(model="house-model")
    log.answer(model="claude-sonnet-5")
    log.answer(model="claude-opus-5", usage=log.usage(speed="fast"))
    log.answer(model="claude-sonet-5")
    path, prices = log.write(), tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {"house-model": [1, 0, 0, 0, 0], "claude-opus-5": [2, 0, 0, 0, 0]}}))

    added = run("report", "model", path, "--format", "json", "--prices", prices)
    alone = run("report", "model", path, "--format", "json", "--prices", prices, "--only-prices")

    costs = {line["key"]: round(line["cost"] * 1e6) for line in added.json["lines"]}
    assert costs == {
        "claude-sonnet-5": round(SONNET * 1e6), "house-model": 100, "claude-opus-5": 200, "claude-sonet-5": 0
    }  # fmt: skip
    assert "claude-sonet-5': 1,420 tokens" in added.err
    assert "similar model with a price is claude-sonnet-5" in added.err
    assert set(alone.json["unpriced"]) == {"claude-sonnet-5", "claude-sonet-5"}
