"""Private folder and environment for a Claude Code CLI that uses a server on loopback.

This module knows the CLI's variables and the server's address. It starts no process.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import assert_never

from .errors import CassetteError
from .types import Login

# Each of these variables makes the CLI use another API.
_CLOUDS = (
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
# The CLI sends each of these if it is set, some of them even to a cloud whose login is skipped.
_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
)
_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


class PrivateHome:
    """A folder that only this user can read, with a home, a config folder and a folder for temporary files."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="cc-loopback-"))
        self.home = self.root / "home"
        self.config = self.root / "config"
        self.temporary = self.root / "tmp"
        for folder in (self.home, self.config, self.temporary):
            folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folder and its content."""
        # Twice: a CLI that is just exiting may write a file during the removal.
        for _ in range(2):
            shutil.rmtree(self.root, ignore_errors=True)


def cli_environment(url: str, home: PrivateHome, login: Login) -> dict[str, str]:
    """Return the variables to add to `os.environ` for a CLI that uses `url` and no login of the user."""
    environment = {
        # Also for clouds: no request may leave the machine.
        "ANTHROPIC_BASE_URL": url,
        # Empty, not absent: otherwise the CLI would use a login from the caller's environment.
        **dict.fromkeys((*_CREDENTIALS, *_CLOUDS), ""),
        **_login(url, login),
        "HOME": str(home.home),
        "CLAUDE_CONFIG_DIR": str(home.config),
        "CLAUDE_CODE_TMPDIR": str(home.temporary),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    if sys.platform != "win32" and os.geteuid() == 0:
        # As root, the CLI refuses some permission modes unless this variable says that it runs in a sandbox.
        environment["IS_SANDBOX"] = "1"
    return environment


def recording_environment(url: str, home: PrivateHome) -> dict[str, str]:
    """Return the variables to add to `os.environ` for a CLI that uses `url` with its own login.

    Raises:
        CassetteError: The environment selects a cloud's API.
    """
    if clouds := [name for name in _CLOUDS if os.environ.get(name)]:
        raise CassetteError(
            f"only the Messages API itself can be recorded: unset {clouds[0]}, which selects another API"
        )
    environment = cli_environment(url, home, "api-key")
    for name in _CREDENTIALS:
        del environment[name]
    if not any(os.environ.get(name) for name in _LOGINS):
        # The CLI has its login in the folders of the user.
        for name in ("HOME", "CLAUDE_CONFIG_DIR"):
            del environment[name]
    return environment


def prompt_folders(home: PrivateHome) -> dict[str, str]:
    """Return the folders that the CLI may name in its prompts, and a replacement of each."""
    config = os.environ.get("CLAUDE_CONFIG_DIR") or str(Path.home() / ".claude")
    return {str(home.config): "<config>", config: "<config>", str(home.root): "<private>"}


def _login(url: str, login: Login) -> dict[str, str]:
    """Return the fake credentials of a login, or the variables that make the CLI skip authentication."""
    match login:
        case "api-key":
            return {"ANTHROPIC_API_KEY": "loopback"}
        case "oauth":
            return {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-loopback"}
        case "vertex":
            return {
                "CLAUDE_CODE_USE_VERTEX": "1",
                "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
                "ANTHROPIC_VERTEX_BASE_URL": f"{url}/v1",
                "ANTHROPIC_VERTEX_PROJECT_ID": "loopback",
                "CLOUD_ML_REGION": "us-east5",
            }
        case "bedrock":
            return {
                "CLAUDE_CODE_USE_BEDROCK": "1",
                "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
                "ANTHROPIC_BEDROCK_BASE_URL": url,
                "AWS_REGION": "us-east-1",
            }
        case _:
            assert_never(login)
