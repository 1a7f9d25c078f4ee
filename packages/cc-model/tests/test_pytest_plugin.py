"""The fixture `claude_code_model`, used here and in separate pytest runs."""

import subprocess
import sys

import pytest
from pydantic_ai import Agent

from cc_loopback import LoopbackServer, call
from cc_model import ClaudeCodeModel

pytestmark = pytest.mark.worlds

pytest_plugins = ["pytester"]

agent = Agent()


@agent.tool_plain
def stock(article: str) -> str:
    """Return the number in stock."""
    return {"kettle": "3"}[article]


PLAIN = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:langsmith_plugin")


async def test_scripted_agent_calls_its_tool_and_answers(
    claude_code_model: ClaudeCodeModel, loopback: LoopbackServer
) -> None:
    """MODEL-180."""
    loopback.script([call("stock", article="kettle"), "3 left"])
    assert (await agent.run("How many kettles?", model=claude_code_model)).output == "3 left"
    assert len(loopback.requests) == 2


def test_fixture_without_cc_loopback_names_the_extra(pytester: pytest.Pytester) -> None:
    """MODEL-180."""
    pytester.makepyfile("def test_hello(claude_code_model): pass")
    run = pytester.runpytest_subprocess(*PLAIN, "-p", "no:cc-loopback")
    run.assert_outcomes(errors=1)
    run.stdout.fnmatch_lines(["*pip install 'cc-model?pytest?'*"])


def test_plugin_alone_imports_neither_model_nor_framework() -> None:
    """ARCH-60: pytest loads it in every run."""
    script = "import sys, cc_model_pytest; print(sorted({'cc_model', 'cc_loopback', 'pydantic_ai'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=True)
    assert run.stdout == "[]\n"
