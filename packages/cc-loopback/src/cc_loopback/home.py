"""Private folder and environment for a Claude Code CLI that uses a server on loopback. No process starts here."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from .api.errors import CassetteError
from .api.types import Login

# Each variable makes the CLI use another API.
_CLOUDS = (
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
# The CLI sends each variable that is set, some even to a cloud whose login is skipped.
_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_OAUTH_TOKEN",
)
_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")


class PrivateHome:
    """A folder that only this user can read, with a home, a config folder and a temporary folder."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="cc-loopback-"))
        self.home = self.root / "home"
        self.config = self.root / "config"
        self.temporary = self.root / "tmp"
        for folder in (self.home, self.config, self.temporary):
            folder.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folder with all content."""
        # Twice: a CLI that is just exiting may write a file during the removal.
        for _ in range(2):
            shutil.rmtree(self.root, ignore_errors=True)


def cli_environment(url: str, home: PrivateHome, login: Login) -> dict[str, str]:
    """Return the variables to add to `os.environ` for a CLI that uses `url` and none of the user's logins."""
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
    """Return the variables to add to `os.environ` for a CLI that uses `url` with the user's login."""
    if clouds := [name for name in _CLOUDS if os.environ.get(name)]:
        raise CassetteError(
            f"only the Messages API itself can be recorded: unset {clouds[0]}, which selects another API"
        )
    environment = cli_environment(url, home, "api-key")
    for name in _CREDENTIALS:
        del environment[name]
    if not any(os.environ.get(name) for name in _LOGINS):
        # The login is in the user's folders.
        for name in ("HOME", "CLAUDE_CONFIG_DIR"):
            del environment[name]
    return environment


def prompt_folders(home: PrivateHome) -> dict[str, str]:
    """Return the folders that the CLI may name in prompts, each with a replacement."""
    config = os.environ.get("CLAUDE_CONFIG_DIR") or str(Path.home() / ".claude")
    return {str(home.config): "<config>", config: "<config>", str(home.root): "<private>"}


def _login(url: str, login: Login) -> dict[str, str]:
    """Return fake credentials, or the variables that make the CLI skip authentication."""
    variables: dict[Login, dict[str, str]] = {
        "api-key": {"ANTHROPIC_API_KEY": "loopback"},
        "oauth": {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-loopback"},
        "foundry": {
            "CLAUDE_CODE_USE_FOUNDRY": "1",
            "ANTHROPIC_FOUNDRY_API_KEY": "loopback",
            "ANTHROPIC_FOUNDRY_BASE_URL": url,
        },
        "vertex": {
            "CLAUDE_CODE_USE_VERTEX": "1",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
            "ANTHROPIC_VERTEX_BASE_URL": f"{url}/v1",
            "ANTHROPIC_VERTEX_PROJECT_ID": "loopback",
            "CLOUD_ML_REGION": "us-east5",
        },
        "bedrock": {
            "CLAUDE_CODE_USE_BEDROCK": "1",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
            "ANTHROPIC_BEDROCK_BASE_URL": url,
            "AWS_REGION": "us-east-1",
        },
    }
    if login not in variables:
        raise ValueError(f"{login!r} is not a login: {', '.join(variables)}")
    return variables[login]
