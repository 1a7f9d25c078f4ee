"""A warm process shows each caller the caller's own definitions, whatever the CLI keeps of earlier ones."""

import pytest

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
