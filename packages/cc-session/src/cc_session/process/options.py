"""The CLI to run, its login and API, and its sealed configuration: a model, with nothing from the machine or the user.

The login decides about the system prompt: with the caller's API key it is the caller's alone; with a subscription the
CLI's system blocks precede it, and name the program that asks.

A sealed process has no built-in tools, reads no settings, no CLAUDE.md and no MCP configuration, takes prompt text as
data, keeps no transcript, does not think, retry, compact or fall back by itself, and answers a message with exactly
one API call. The caller enables other features of Claude Code by name.
"""

import asyncio
import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions

from ..errors import CLIConnectionError, CLINotFoundError

CLOUD_VARIABLES = (
    "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_GATEWAY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_VERTEX",
)  # fmt: skip
"""Variables that make Claude Code use another API than Anthropic's, with that API's login."""

# The CLI's variables that a third-party program does not need: logins, and parts of requests. Measured on CLI 2.1.329:
# `tests/test_mcp_servers.py` compares them with the CLI's list for programs that must have no login.
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

# Scheme, user with host, and path.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#]*)(.*)", re.DOTALL)

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
    """A login with the `claude` command, `CLAUDE_CODE_OAUTH_TOKEN`, or a subscription's token in
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
    """Return the login of a CLI that is started with `env` on top of this process's environment."""
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


NO_RESULT_FILES_ENV: Mapping[str, str] = {"CLAUDE_CODE_PROJECT_DIR_NAME": "cc-session-keeps-no-results"}
"""Variables with which Claude Code tells the model that it could not save a result, and writes no file."""


def without_login(env: Mapping[str, str]) -> dict[str, str]:
    """Return `env`, with all other login and request variables made empty: for MCP servers and other logins' CLIs."""
    return {**dict.fromkeys((*_NOT_FOR_OTHERS, *filter(os.environ.__contains__, _CONTAINER_LOGINS)), ""), **env}


def config_folder(env: Mapping[str, str]) -> Path:
    """Return Claude Code's configuration folder with `env` on top of this process's environment."""
    values = {**os.environ, **env}
    return Path(values.get("CLAUDE_CONFIG_DIR") or Path(values.get("HOME") or Path.home(), ".claude"))


async def wait_for_renewal(env: Mapping[str, str]) -> None:
    """Wait while a CLI renews the login that a CLI with `env`, on top of this process's environment, shares.

    Killed meanwhile, it would have used up the refresh token, which is valid once, for nothing. It holds a lock, and
    touches it every five seconds. Measured on CLI 2.1.329.
    """
    lock = config_folder(env) / ".oauth_refresh.lock"
    with suppress(OSError):  # there is no lock
        while time.time() - lock.stat().st_mtime < _LOCK_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


_ADDRESSES = {
    Login.BEDROCK: "ANTHROPIC_BEDROCK_BASE_URL",
    Login.FOUNDRY: "ANTHROPIC_FOUNDRY_BASE_URL",
    Login.VERTEX: "ANTHROPIC_VERTEX_BASE_URL",
}
_ANTHROPIC = "https://api.anthropic.com"
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")


def api_address(env: Mapping[str, str]) -> str:
    """Return the API's address for display: without path and password, with the variables that it comes from.

    The CLI has `env` on top of this process's environment, here and in the functions below.
    """
    values, variable, _ = _api_variables(env)
    address = api_origin(env) or "the cloud provider's API"
    if _origin(values.get(variable, "")):
        address += f" (from {variable})"
    for proxy in _PROXIES:
        if origin := _origin(values.get(proxy, "")):
            return f"{address}, through the proxy {origin} (from {proxy})"
    return address


def api_origin(env: Mapping[str, str]) -> str:
    """Return the API's scheme, host and port; empty for a cloud provider's own address."""
    values, variable, default = _api_variables(env)
    return _origin(values.get(variable, "")) or default


def api_url(env: Mapping[str, str]) -> str:
    """Return the URL to which a CLI with `env` connects, of a proxy or the API; empty if this is not known here."""
    values, variable, default = _api_variables(env)
    if proxies := [values[name] for name in _PROXIES if values.get(name)]:
        return "" if values.get("no_proxy") or values.get("NO_PROXY") else proxies[0]
    return values.get(variable) or default


def _api_variables(env: Mapping[str, str]) -> tuple[dict[str, str], str, str]:
    """Return a CLI's environment, the variable with the API's address, and the address without it."""
    login = login_of(env)
    default = "" if login in (*_ADDRESSES, Login.CLOUD) else _ANTHROPIC
    return {**os.environ, **env}, _ADDRESSES.get(login, "ANTHROPIC_BASE_URL"), default


def _origin(url: str) -> str:
    """Return a URL's readable scheme, host and port; never a user, a password or a query."""
    parts = _URL.match(url.strip())
    if parts is None:
        return ""
    scheme, host, path = parts.groups()
    # An @ in the path: the host may be a user and the begin of a password with `/`, `?` or `#`.
    host = "…" if "@" in path else host.rpartition("@")[2]
    return f"{scheme}://{host}" if scheme and host else host


# First bytes of scripts, and of programs for Linux, macOS and Windows, which WSL runs.
_PROGRAM_STARTS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")

# Each variable disables an automatic action that the direct API does not have.
_SEALED_ENV = {
    # Features that only the caller may enable, per request. Without an effort level the CLI sends a default level.
    "CLAUDE_CODE_EFFORT_LEVEL": "unset", "CLAUDE_CODE_DISABLE_THINKING": "1", "CLAUDE_CODE_DISABLE_ULTRATHINK": "1",
    "CLAUDE_CODE_DISABLE_FAST_MODE": "1", "CLAUDE_CODE_DISABLE_ADVISOR_TOOL": "1",
    # Betas that the CLI adds; without the variable, it also repeats a request that got a 400.
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    # Retries, fallbacks and repairs belong to the client, which can count and report them.
    "CLAUDE_CODE_MAX_RETRIES": "0", "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_MODEL_ACCESS_FALLBACK": "1", "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1", "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "DISABLE_COMPACT": "1", "DISABLE_AUTO_COMPACT": "1",
    # The API decides if a prompt is too long, not an estimate of the CLI. In tokens.
    "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1000000000",
    # Features that add text to the conversation or read files for it.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1", "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "1",
    "CLAUDE_CODE_SKILL_PROPOSALS": "0", "CLAUDE_CODE_WEBSEARCH_CITATIONS": "0", "CLAUDE_CODE_SIMPLE": "0",
    # Unrequested traffic.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}  # fmt: skip


def is_sealed(options: ClaudeAgentOptions) -> bool:
    """Return true if `sealed_options()` made the options, even if they have changed since."""
    return _SEALED_ENV.keys() <= options.env.keys()


def sealed_options(
    *,
    system_prompt: str = "",
    model: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    cli_path: str | Path | None = None,
) -> ClaudeAgentOptions:
    """Return the SDK options for a sealed process, the default in this project.

    Args:
        system_prompt: The whole system prompt; Claude Code adds only two short lines.
        model: A model id or an alias such as `"sonnet"`; the CLI's default model if None.
        env: Environment variables, in addition to this process's; they override the sealed ones.
        cwd: The working folder; an empty private folder if None.
        cli_path: The CLI to run; the CLI in the SDK's wheel if None.

    With an API key or a cloud provider the process also runs `--bare`, which omits the CLI's messages about the
    machine. `--bare` cannot use an OAuth login, so then it is not set. It cannot run hooks either: a session with hooks
    or a policy removes it. The built-in tools in it are `Bash`, `Edit` and `Read`, regardless of `tools`.
    """
    extra_args: dict[str, str | None] = {"no-session-persistence": None}
    if login_of(env or {}).is_in_environment:
        extra_args["bare"] = None
    return ClaudeAgentOptions(
        tools=[],
        system_prompt=system_prompt,
        model=model,
        strict_mcp_config=True,
        setting_sources=[],
        permission_mode="dontAsk",
        # A message that calls tools ends the turn: the caller runs the tools, and the CLI makes no second API call.
        max_turns=1,
        include_partial_messages=True,
        env={**_SEALED_ENV, **(env or {})},
        cwd=cwd,
        cli_path=cli_path,
        extra_args=extra_args,
    )


def bundled_cli() -> str:
    """Return the path to the CLI in the SDK's wheel; a wheel for all platforms has none."""
    name = "claude.exe" if sys.platform == "win32" else "claude"
    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / name)


def find_cli(path: str | Path | None = None) -> str | None:
    """Return the CLI for sessions: `path`, else the SDK's CLI, else `claude` on PATH; None if there is none."""
    if path:
        return str(path)
    bundled = bundled_cli()
    return bundled if Path(bundled).is_file() else shutil.which("claude")


def check_paths(cwd: str | Path | None, cli_path: str | Path | None) -> None:
    """Check paths for a process before its start. The start itself shows if a program is Claude Code's CLI.

    Raises:
        CLINotFoundError: `cli_path` does not exist.
        CLIConnectionError: `cli_path` cannot be executed, or `cwd` is not a folder.
    """
    if cwd == "" or (cwd is not None and not Path(cwd).is_dir()):
        raise CLIConnectionError(reason=f"cwd={str(cwd)!r} is not a folder", advice=_folder_advice(str(cwd)))
    if cli_path is None:
        return
    program = shutil.which(cli_path)
    if program is None and not Path(cli_path).exists():
        raise CLINotFoundError(path=str(cli_path), advice=cli_advice())
    if program is None or not _is_program(program):
        reason = f"cli_path={str(cli_path)!r} is neither an executable binary nor a script that begins with #!"
        raise CLIConnectionError(reason=reason, advice=cli_advice())


def _folder_advice(cwd: str) -> str:
    if not cwd:
        return "Write '.' for this program's own working folder, or leave cwd out."
    folder = Path(os.path.expanduser(cwd)).absolute()
    names = [folder.name] if folder.is_dir() else [path.name for path in folder.parent.glob("*/")]
    if matches := get_close_matches(folder.name, names, n=1):
        return f"Did you mean {str(folder.parent / matches[0])!r}?"
    return "Create the folder, or set cwd to another one."


def _is_program(path: str) -> bool:
    """Return false if the system would certainly refuse to execute a file."""
    with suppress(OSError), open(path, "rb") as file:
        return sys.platform == "win32" or file.read(4).startswith(_PROGRAM_STARTS)
    return True


def cli_advice() -> str:
    """Return a sentence that names the CLI to run in the place of a wrong one."""
    return (
        f"Leave cli_path out to run {cli}." if (cli := find_cli()) else "Install a claude-agent-sdk wheel with a CLI."
    )


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
