"""Signals during the work and after it, in this process."""

import asyncio
import signal
from collections.abc import Generator

import pytest

from cc_demo.signals import Signals, StoppedBySignal


@pytest.fixture
def signals() -> Generator[Signals]:
    with Signals() as signals:
        yield signals


async def wait(seconds: float = 10) -> None:
    await asyncio.sleep(seconds)


async def test_a_signal_ends_the_work_and_the_first_sets_the_exit_code(signals: Signals) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
    with pytest.raises(StoppedBySignal):
        await signals.work(wait())
    assert signals.exit_code == 128 + signal.SIGTERM


async def test_a_signal_before_the_work_ends_it_at_once(signals: Signals) -> None:
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(StoppedBySignal):
        await signals.work(wait())


async def test_a_signal_after_the_work_changes_its_exit_code_alone(signals: Signals) -> None:
    await signals.work(wait(0))
    assert signals.exit_code == 0
    signal.raise_signal(signal.SIGINT)
    assert signals.exit_code == 128 + signal.SIGINT


async def test_an_error_of_the_work_passes(signals: Signals) -> None:
    with pytest.raises(ZeroDivisionError):
        await signals.work(asyncio.to_thread(divmod, 1, 0))


def test_the_handlers_from_before_return() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Signals():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
