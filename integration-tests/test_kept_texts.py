"""A warm process shows each caller the caller's own definitions, whatever the CLI keeps of earlier ones."""

from pathlib import Path

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_session import sealed_options
from kept_texts import VARIANTS, differences

# In an ordinary run: the field in which callers differ most.
SOME = ("nothing", "description")


@pytest.mark.parametrize("names", [SOME, pytest.param((*VARIANTS,), marks=pytest.mark.slow)], ids=["some", "all"])
async def test_each_caller_s_definitions_reach_the_model_and_no_others(
    shared_api: LoopbackServer, names: tuple[str, ...]
) -> None:
    """SES-134: in a field alone, on the one process of a pool."""
    options = sealed_options(system_prompt="You are a test.", model="claude-sonnet-5", env=shared_api.env())
    wrong, starts = await differences(shared_api, options, lambda name: name in names)
    assert wrong == []
    assert starts <= len(names)


@pytest.mark.parametrize(
    "names", [("resource", "server's name"), pytest.param((*VARIANTS,), marks=pytest.mark.slow)], ids=["some", "all"]
)
async def test_nothing_of_earlier_servers_reaches_the_model_beside_claude_code_s_own_tools(
    shared_api: LoopbackServer, names: tuple[str, ...], tmp_path: Path
) -> None:
    """SES-134: neither definitions that newer models get again, nor the tools for resources."""
    options = ClaudeAgentOptions(
        env=shared_api.env(), setting_sources=[], permission_mode="dontAsk", cwd=tmp_path,
        extra_args={"no-session-persistence": None},
    )  # fmt: skip
    # A process whose tools were called serves no other lease.
    wrong, _ = await differences(shared_api, options, lambda name: name in names, answer=lambda _body: "Done.")
    assert wrong == []
