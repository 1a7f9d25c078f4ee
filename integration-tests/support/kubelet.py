"""A pod of the server, as the kubelet runs it: probes, restarts, and the end, from the manifest in `deploy/`."""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import yaml

from doc_pages import ROOT, free_port

__all__ = ["Pod", "read_manifests", "running_pod"]

# The manifest's seconds are shorter here.
SCALE = 0.1
# Without a container, the kubelet waits longer with each restart.
_RESTART_SECONDS = 1.0


def read_manifests() -> dict[str, Any]:
    """Return the manifests by kind."""
    text = (ROOT / "deploy" / "kubernetes.yaml").read_text("utf-8")
    return {manifest["kind"]: manifest for manifest in yaml.safe_load_all(text)}


class Pod:
    """A pod whose container is the server in a separate process."""

    def __init__(self, folder: Path, env: Mapping[str, str], size: int) -> None:
        spec = read_manifests()["Deployment"]["spec"]["template"]["spec"]
        [self._container] = spec["containers"]
        self._grace_seconds: float = spec["terminationGracePeriodSeconds"] * SCALE
        self.is_ready = False
        """True while the pod gets new connections from the Service."""
        self.starts = 0
        """Number of started containers."""
        self.exit_codes: list[int] = []
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        places = {"--host": "127.0.0.1", "--clients": f"{folder}/clients.toml", "--size": str(size)}
        places["--usage-file"] = f"{folder}/usage.sqlite"
        options = dict(argument.split("=", 1) for argument in self._container["args"]) | places
        arguments = [f"{name}={value}" for name, value in options.items()]
        self._command = [sys.executable, "-m", "cc_messages", "serve", f"--port={port}", *arguments]
        self._env = {**os.environ, **env}
        self._is_ending = False
        self.liveness_probes: asyncio.Queue[bool] = asyncio.Queue()
        """The outcomes of the liveness probes."""
        self.process: Process | None = None

    async def run(self) -> None:
        """Run containers one after the other, until the pod is deleted."""
        while not self._is_ending:
            self.starts += 1
            self.process = await asyncio.create_subprocess_exec(
                *self._command, env=self._env, stdout=asyncio.subprocess.DEVNULL
            )
            probes = asyncio.create_task(self._probe())
            self.exit_codes.append(await self.process.wait())
            self.is_ready = False
            probes.cancel()
            with suppress(asyncio.CancelledError):
                await probes
            if not self._is_ending:
                await asyncio.sleep(_RESTART_SECONDS * SCALE)

    async def delete(self) -> float:
        """End the pod, and return the seconds that the server took after the signal."""
        self._is_ending, self.is_ready = True, False
        deadline = time.monotonic() + self._grace_seconds
        await asyncio.sleep(self._container["lifecycle"]["preStop"]["sleep"]["seconds"] * SCALE)
        began = time.monotonic()
        await self._stop(deadline - began)
        return time.monotonic() - began

    async def _probe(self) -> None:
        """Probe the container: first its start, then whether it is ready and alive."""
        container = self._container
        if not await self._repeat(container["startupProbe"], lambda passes: None, until_success=True):
            return
        noted = asyncio.create_task(self._repeat(container["readinessProbe"], self._note_readiness))
        try:
            await self._repeat(container["livenessProbe"], self.liveness_probes.put_nowait, restarts=True)
        finally:
            noted.cancel()

    def _note_readiness(self, passes: bool) -> None:
        self.is_ready = passes and not self._is_ending

    async def _repeat(
        self,
        probe: Mapping[str, Any],
        note: Callable[[bool], None],
        *,
        until_success: bool = False,
        restarts: bool = False,
    ) -> bool:
        """Probe again and again, and note each success, and a failure from the threshold on.

        A probe for a start ends with a success. At the threshold, probes for start and life end the container.
        """
        failures = 0
        # A start takes as long as elsewhere.
        most = probe["failureThreshold"] / (SCALE if until_success else 1)
        # Not below a second, which a machine with other programs may need.
        timeout = max(1.0, probe["timeoutSeconds"] * SCALE)
        async with httpx2.AsyncClient(base_url=self.url, timeout=timeout, trust_env=False) as http:
            while True:
                try:
                    passes = (await http.get(probe["httpGet"]["path"])).is_success
                except httpx2.TransportError:
                    passes = False
                failures = 0 if passes else failures + 1
                if passes or failures >= most:
                    note(passes)
                if passes and until_success:
                    return True
                if (until_success or restarts) and failures >= most:
                    await self._stop(probe["terminationGracePeriodSeconds"] * SCALE)
                    return False
                await asyncio.sleep(probe["periodSeconds"] * SCALE)

    async def _stop(self, seconds: float) -> None:
        """Send SIGTERM, and SIGKILL after some seconds."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(asyncio.shield(self.process.wait()), seconds)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()


@asynccontextmanager
async def running_pod(folder: Path, env: Mapping[str, str], *, size: int) -> AsyncGenerator[Pod]:
    """Run a pod during the block."""
    pod = Pod(folder, env, size)
    task = asyncio.create_task(pod.run())
    try:
        yield pod
    finally:
        if not task.done() and pod.process is not None:
            await pod.delete()
        await task
