"""Options of the CLI's JavaScript runtime that save memory."""

import psutil
import pytest

from .conftest import Connect

NAMES = ("BUN_JSC_forceRAMSize", "BUN_JSC_useDFGJIT")


@pytest.mark.parametrize(
    ("own", "values"), [({}, ("67108864", "0")), (dict.fromkeys(NAMES, ""), ("", ""))], ids=["default", "turned off"]
)
async def test_a_process_saves_memory_unless_the_caller_says_otherwise(
    own: dict[str, str], values: tuple[str, str], connect: Connect
) -> None:
    """MSG-117."""
    client = connect(size=1, env=own)
    assert (await client.ask("Hello.")).status == 200
    [pid] = client.transport.pids
    environment = psutil.Process(pid).environ()
    assert tuple(environment[name] for name in NAMES) == values
