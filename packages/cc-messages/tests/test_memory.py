"""The CLI's JavaScript runtime gets options that save memory."""

import psutil
import pytest

from warm_clients.client import Client
from warm_clients.fixtures import Connect

pytestmark = pytest.mark.worlds

NAMES = ("BUN_JSC_forceRAMSize", "BUN_JSC_useDFGJIT")


def values(client: Client) -> list[str | None]:
    [pid] = client.transport.pids
    environment = psutil.Process(pid).environ()
    return [environment.get(name) for name in NAMES]


@pytest.mark.worlds
async def test_a_runtime_without_these_options_is_started_without_them(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-117"""
    monkeypatch.setattr("cc_messages.process.abilities._MEMORY_ENV", {"BUN_JSC_noSuchOption": "1"})
    client = connect(size=1)
    assert (await client.ask("Hello.")).status == 200
    assert values(client) == [None, None]
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "The CLI's runtime does not take ['BUN_JSC_noSuchOption'], so its processes are larger"
    ]
