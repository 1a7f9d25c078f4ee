"""Login of a CLI process: its kind, its variables, its renewal, and advice where it is refused.

The login decides about the system prompt: with the caller's API key it is the caller's alone; with a subscription the
CLI system blocks precede it, and name the program that asks.
"""

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from .cli_path import find_cli

CLOUD_VARIABLES = (
    "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_VERTEX",
)  # fmt: skip
"""Variables that make Claude Code use another API than Anthropic's, with that API's login."""

# The CLI variables that a third-party program does not need: logins, and parts of requests. Measured on CLI 2.1.329:
# `tests/test_mcp_servers.py` compares them with the CLI list for programs that must have no login.
_NOT_FOR_OTHERS = (
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AWS_API_KEY", "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_AUTH_LOCATION", "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_PASSWORD",
    "CLAUDE_CODE_ARTIFACTS_API_TOKEN", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_EXTRA_BODY", "CLAUDE_CODE_MEMORY_API_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_RUNNER_MODEL_SOCKET", "CLAUDE_CODE_SESSIONS_OAUTH_TOKEN",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN", "CLAUDE_CODE_SLACK_TAG_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN",
    "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", "CLOUDSDK_AUTH_AUTHORIZATION_TOKEN_FILE", "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_GHA_CREDS_PATH", "GOOGLE_OAUTH_ACCESS_TOKEN", "IDENTITY_HEADER", "MSI_SECRET",
    "google_application_credentials",
)  # fmt: skip
# Addresses where a container gets a login. Made empty only where they are set: boto fails with an empty address.
_CONTAINER_LOGINS = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")

# The beginning of the OAuth tokens that `claude setup-token` makes.
_SUBSCRIPTION_TOKEN = "sk-ant-oat"  # noqa: S105 - no token
_LOGIN_VARIABLES = (*CLOUD_VARIABLES, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
# After this time without a touch, the CLI with the lock has been killed.
_LOCK_SECONDS = 10.0
_OFF = frozenset({"", "0", "false", "no", "off"})


class Login(StrEnum):
    """Kind of login."""

    BEDROCK = "bedrock"
    """`CLAUDE_CODE_USE_BEDROCK` is set."""
    FOUNDRY = "foundry"
    """`CLAUDE_CODE_USE_FOUNDRY` is set."""
    VERTEX = "vertex"
    """`CLAUDE_CODE_USE_VERTEX` is set."""
    CLOUD = "cloud"
    """Another variable in `CLOUD_VARIABLES` is set."""
    API_KEY = "api-key"
    """`ANTHROPIC_API_KEY` is set."""
    GATEWAY = "gateway"
    """`ANTHROPIC_AUTH_TOKEN` is set: a bearer token for the API at `ANTHROPIC_BASE_URL`."""
    SUBSCRIPTION = "subscription"
    """A login with the `claude` command, `CLAUDE_CODE_OAUTH_TOKEN`, or a subscription token in
    `ANTHROPIC_AUTH_TOKEN`."""

    @property
    def is_in_environment(self) -> bool:
        """True if `--bare`, which reads no configuration, finds it in the environment."""
        return self not in (Login.GATEWAY, Login.SUBSCRIPTION)

    @property
    def owns_prompt(self) -> bool:
        """True if the system prompt is the caller's alone."""
        return self is not Login.SUBSCRIPTION


_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": Login.BEDROCK,
    "CLAUDE_CODE_USE_FOUNDRY": Login.FOUNDRY,
    "CLAUDE_CODE_USE_VERTEX": Login.VERTEX,
}


def login_of(env: Mapping[str, str]) -> Login:
    """Return the login of a CLI that is started with `env` on top of `os.environ`."""
    values = {name: env.get(name, os.environ.get(name, "")).strip() for name in _LOGIN_VARIABLES}
    for name in CLOUD_VARIABLES:
        if values[name].lower() not in _OFF:
            return _CLOUDS.get(name, Login.CLOUD)
    bearer = values["ANTHROPIC_AUTH_TOKEN"]
    if bearer.startswith(_SUBSCRIPTION_TOKEN):  # sent beside an API key, too; measured on CLI 2.1.329
        return Login.SUBSCRIPTION
    if values["ANTHROPIC_API_KEY"]:
        return Login.API_KEY
    return Login.GATEWAY if bearer else Login.SUBSCRIPTION


def without_login(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env`, with all other login and request variables made empty: for MCP servers and other logins' CLIs."""
    return {**dict.fromkeys((*_NOT_FOR_OTHERS, *filter(os.environ.__contains__, _CONTAINER_LOGINS)), ""), **env}


def config_folder(env: Mapping[str, str]) -> Path:
    """Return the Claude Code configuration folder with `env` on top of `os.environ`."""
    values = {**os.environ, **env}
    return Path(values.get("CLAUDE_CONFIG_DIR") or Path(values.get("HOME") or Path.home(), ".claude"))


def config_file(env: Mapping[str, str]) -> Path:
    """Return the user's file with servers and figures, which is not in the default configuration folder."""
    values = {**os.environ, **env}
    return Path(values.get("CLAUDE_CONFIG_DIR") or values.get("HOME") or Path.home(), ".claude.json")


async def wait_for_renewal(env: Mapping[str, str]) -> None:
    """Wait while a CLI renews the login that a CLI with `env`, on top of `os.environ`, shares.

    Killed meanwhile, it would have used up the refresh token, which is valid once, for nothing. It holds a lock, and
    touches it every five seconds. Measured on CLI 2.1.329.
    """
    lock = config_folder(env) / ".oauth_refresh.lock"
    with suppress(OSError):  # there is no lock
        while time.time() - lock.stat().st_mtime < _LOCK_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def login_advice(env: Mapping[str, str] | None = None) -> str:
    """Return a sentence that says how to log in, or how to replace a refused login in `env` (over `os.environ`)."""
    cli, login = find_cli() or "claude", Login.SUBSCRIPTION if env is None else login_of(env)
    if login is Login.API_KEY:
        return "The key in ANTHROPIC_API_KEY was refused: replace it, or unset it to use the login of `claude`."
    if login is Login.GATEWAY:
        return "The token in ANTHROPIC_AUTH_TOKEN was refused: replace it."
    if login is not Login.SUBSCRIPTION:
        return "The cloud provider refused its login: renew that."
    for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        if env is not None and env.get(name, os.environ.get(name)):
            return f"The token in {name} was refused: run {cli} setup-token, which prints a new one."
    return f"Set ANTHROPIC_API_KEY, or run {cli} in a terminal and type /login."
