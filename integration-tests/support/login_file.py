"""A made-up login with `/login`, in the file that Claude Code has on Linux."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

from cc_loopback import LoopbackServer

__all__ = ["SECRET", "login_env", "write_login"]

SECRET = "secret"
"""A part of both tokens."""
_LOGIN_SECONDS = 1_000_000


def write_login(config: Path, *, refresh_token: str = f"refresh-{SECRET}", expires_in: int = 3_600) -> datetime:
    """Write the file into the config folder, and return the time when the login ends.

    The access token expires in `expires_in` seconds.
    """
    now = int(time.time())
    login = {
        "accessToken": f"sk-ant-oat01-{SECRET}", "refreshToken": refresh_token, "expiresAt": (now + expires_in) * 1_000,
        "refreshTokenExpiresAt": (now + _LOGIN_SECONDS) * 1_000, "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }  # fmt: skip
    config.mkdir(exist_ok=True)
    (config / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}), encoding="utf-8")
    return datetime.fromtimestamp(now + _LOGIN_SECONDS, UTC)


def login_env(api: LoopbackServer, config: Path) -> dict[str, str]:
    """Return the environment for a CLI that uses the file's login and the loopback API."""
    return {**api.env("oauth"), "CLAUDE_CODE_OAUTH_TOKEN": "", "CLAUDE_CONFIG_DIR": str(config)}
