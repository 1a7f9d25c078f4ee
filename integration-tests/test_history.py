"""A conversation continues wherever its history is; in another Python process, too: `test_fresh_interpreter.py`."""

import psutil
from pydantic_ai import Agent

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import eventually


async def test_a_conversation_goes_on_after_its_process_was_killed(
    loopback: LoopbackServer, own_model: ClaudeCodeModel, own_provider: ClaudeCodeProvider
) -> None:
    """MODEL-67"""
    plain = Agent(own_model)
    first = await plain.run("One.")
    [pid] = own_provider.transport.pids
    psutil.Process(pid).kill()
    await eventually(lambda: not own_provider.transport.pids)

    second = await plain.run("Two.", message_history=first.all_messages())

    assert "Two." in second.output
    assert [message["role"] for message in loopback.requests[-1]["messages"]] == ["user", "assistant", "user"]
    assert own_provider.transport.pids != [pid]


async def test_the_same_history_can_be_continued_twice(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    plain = Agent(model)
    first = await plain.run("One.")
    for prompt in ("Two.", "Other two."):
        await plain.run(prompt, message_history=first.all_messages())
        last = loopback.requests[-1]["messages"]
        assert [message["role"] for message in last] == ["user", "assistant", "user"]
        assert last[-1]["content"][0]["text"] == prompt
