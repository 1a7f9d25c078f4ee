"""LiteLLM's proxy before the server, for clients that speak OpenAI's API: `openai_chat.py`, `openai_responses.py`."""

import atexit
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from functools import cache
from pathlib import Path

from abilities import MODEL
from openai import OpenAI

# The proxy imports for half a minute on a slow machine.
START_SECONDS = 120.0
# The proxy does not start without a key.
KEY = f"sk-{secrets.token_hex(16)}"


@cache
def client(token: str) -> OpenAI:
    """Return a client of a proxy that has the token, and runs until this program ends."""
    # As in docs/how-to/other-clients.md.
    keys = {"api_base": "os.environ/ANTHROPIC_BASE_URL", "api_key": "os.environ/ANTHROPIC_API_KEY"}
    models = [{"model_name": MODEL, "litellm_params": {"model": f"anthropic/{MODEL}", **keys}}]
    config = Path("config.json")  # JSON is YAML
    config.write_text(json.dumps({"model_list": models, "router_settings": {"num_retries": 2}}), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("litellm")), "--config", str(config), "--host", "127.0.0.1"]
    settings = {"ANTHROPIC_API_KEY": token, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    env = {**os.environ, **settings}
    log = Path(f"{port}.log")
    with log.open("wb") as file:
        running = subprocess.Popen([*command, "--port", str(port)], env=env, stdout=file, stderr=file)
    atexit.register(running.wait, 30)
    atexit.register(running.terminate)  # the last function is called first
    _wait_until_ready(running, f"http://127.0.0.1:{port}/health/liveliness", log)
    return OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY)


def _wait_until_ready(running: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            if running.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the proxy did not start:\n{log.read_text('utf-8')[-2000:]}") from None
        time.sleep(0.2)
