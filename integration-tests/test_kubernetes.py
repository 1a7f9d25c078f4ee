"""The server in a pod: ready apart from alive, restarted, and ended after its answers."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, TextBlock

from cc_loopback import LoopbackServer
from kubelet import Pod, read_manifests, running_pod
from processes import eventually

TOKEN = "token-of-alice"
BODY: Any = {"model": "claude-sonnet-5", "max_tokens": 99, "messages": [{"role": "user", "content": "Hello."}]}

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
    pytest.mark.timeout(120),
]


@pytest.fixture
def api() -> Iterator[LoopbackServer]:
    """Yield an API whose processes the pod ends before it."""
    with LoopbackServer(event_delay=0.02) as server:
        yield server


@pytest.fixture
async def pod(api: LoopbackServer, tmp_path: Path) -> AsyncIterator[Pod]:
    """Yield a running pod with a single process."""
    file = tmp_path / "clients.toml"
    file.touch(0o600)
    file.write_text(f'[clients.alice]\ntoken = "{TOKEN}"\n', encoding="utf-8")
    async with running_pod(tmp_path, api.env(), size=1) as pod:
        await eventually(lambda: pod.is_ready)
        yield pod


def client(pod: Pod) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=pod.url, api_key=TOKEN, max_retries=0)


def long_answer(_: dict[str, Any]) -> str:
    return "word " * 100


async def answer(pod: Pod) -> str:
    async with client(pod) as claude:
        message = cast("Message", await claude.messages.create(**BODY))
        return cast("TextBlock", message.content[0]).text


def family(pod: Pod) -> list[psutil.Process]:
    assert pod.process is not None
    return psutil.Process(pod.process.pid).children(recursive=True)


async def test_a_pod_is_ready_with_a_process_and_a_short_queue(pod: Pod, api: LoopbackServer) -> None:
    """MSG-163, MSG-164: a long queue restarts nothing."""
    assert any("claude" in process.name() for process in family(pod))  # before the first request
    may_go_on = threading.Event()

    async def respond(_: dict[str, Any]) -> str:
        await eventually(may_go_on.is_set)
        return "Fine."

    api.respond = respond
    answers = [asyncio.create_task(answer(pod)) for _ in range(3)]
    await eventually(lambda: not pod.is_ready)
    # Long enough for a restart by the liveness probe.
    liveness = read_manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]
    for _ in range(liveness["failureThreshold"] + 1):
        await pod.liveness_probes.get()
    assert (pod.starts, pod.is_ready) == (1, False)
    may_go_on.set()
    assert await asyncio.gather(*answers) == ["Fine."] * 3
    await eventually(lambda: pod.is_ready)


async def test_a_deleted_pod_ends_its_answers_first(pod: Pod, api: LoopbackServer) -> None:
    """MSG-164: it takes requests until all nodes know, ends with code 0, and leaves no process."""
    api.respond = long_answer
    processes = family(pod)
    async with client(pod) as claude, claude.messages.stream(**BODY) as stream:
        texts = stream.text_stream
        first = await anext(texts)
        deleted = asyncio.create_task(pod.delete())
        await eventually(lambda: not pod.is_ready)
        late = asyncio.create_task(answer(pod))
        assert first + "".join([text async for text in texts]) == "word " * 100
    assert await late == "word " * 100
    await deleted
    assert pod.exit_codes == [0]
    assert not [process for process in processes if process.is_running()]


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
async def test_a_server_that_dies_or_hangs_is_started_anew(number: str, pod: Pod) -> None:
    """MSG-164: its processes end, and the next container is ready by itself."""
    assert await answer(pod)
    assert pod.process is not None
    processes = family(pod)
    pod.process.send_signal(signal.Signals[number])
    await eventually(lambda: not pod.is_ready)
    await eventually(lambda: pod.starts == 2 and pod.is_ready)
    assert pod.exit_codes == [-9]
    assert await answer(pod)
    await eventually(lambda: not any(process.is_running() for process in processes))
