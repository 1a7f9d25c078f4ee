"""The network between a CLI and the API: checked when a start is slow, and by the doctor.

A starting CLI fetches an organization's settings and limits from the Anthropic API, and without a network repeats that
for 18 s (`--debug-file` shows it). No documented variable disables these fetches alone, and they carry the
organization rules: so a slow start is checked and given up. The check sends nothing, so it costs nothing. Measured
on CLI 2.1.329.
"""

import asyncio
import math
import os
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from ..errors import CLIConnectionError
from .address import api_address, api_url
from .login import CLOUD_VARIABLES

# A start takes 0.4 s, and a few seconds on a busy machine.
_SLOW_START_SECONDS = 3.0
_CONNECT_SECONDS = 1.5
# A client repeats a failed request within so long; then the check comes first.
_RETRY_SECONDS = 10.0

# Monotonic times, by URL.
_failures: dict[str, float] = {}


async def unreachable(env: Mapping[str, str]) -> str | None:
    """Return why a CLI with `env`, on top of `os.environ`, cannot reach the API or a proxy.

    None if the host takes a connection, or if `api_url()` does not know it.
    """
    if not (url := api_url(env)):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError:
        host, port = None, 0
    if host is None:
        return f"{api_address(env)} is not a URL with a scheme and a host"
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return f"{api_address(env)} cannot be reached: {str(error) or f'no answer within {_CONNECT_SECONDS:g} s'}"
    writer.close()
    return None


async def fail_without_network(env: Mapping[str, str]) -> None:
    """Raise if a start with `env` is slow and the Anthropic API cannot be reached; otherwise wait for a cancel."""
    values, url = {**os.environ, **env}, api_url(env)
    if not any(values.get(name) for name in ("ANTHROPIC_BASE_URL", *CLOUD_VARIABLES)):
        is_retry = time.monotonic() - _failures.get(url, -math.inf) < _RETRY_SECONDS
        await asyncio.sleep(0 if is_retry else _SLOW_START_SECONDS)
        if reason := await unreachable(env):
            _failures[url] = time.monotonic()
            raise CLIConnectionError(reason=reason, advice="Check the network and the proxy, then try again.")
    await asyncio.Event().wait()
