from pydantic_ai import Agent

from cc_loopback import LoopbackServer, call
from cc_model import ClaudeCodeModel


def stock(article: str) -> str:
    return {"kettle": "3"}[article]


def test_the_stock_is_looked_up(claude_code_model: ClaudeCodeModel, loopback: LoopbackServer) -> None:
    loopback.script([call("stock", article="kettle"), "3 left"])
    result = Agent(claude_code_model, tools=[stock]).run_sync("How many kettles?")
    assert result.output == "3 left"
