"""Choice of the demo login, with a reason.

Reads variables, and tests if a file exists; reads no secret, and starts no dialog.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import urlsplit

from cc_session.internals import CLOUD_VARIABLES, login_advice

_TOKENS = ("CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN")
_OFF = frozenset({"", "0", "false", "no", "off"})
_KEYCHAIN_ADVICE = "A login in the keychain cannot be seen without asking: with --login it is used."


class AnswerSource(Enum):
    """The model that answers the demo, and the login."""

    OFFLINE = "scripted loopback model, not Claude"
    API_KEY = "Claude, with the API key in ANTHROPIC_API_KEY"
    CLAUDE_CODE = "Claude, with the login of Claude Code"


@dataclass(frozen=True, slots=True)
class Choice:
    """A login and the reason for it."""

    login: AnswerSource
    reason: str
    advice: str = ""
    """The way to choose another login."""


def choose_login(env: Mapping[str, str], platform: str, *, offline: bool, login: bool) -> Choice:
    """Choose a login for an environment, a `sys.platform`, and the command line options."""
    if offline:
        return Choice(AnswerSource.OFFLINE, "--offline was given")
    if login:
        return Choice(AnswerSource.CLAUDE_CODE, "--login was given")
    if env.get("ANTHROPIC_API_KEY"):
        return Choice(AnswerSource.API_KEY, _through(env))
    if reason := _claude_code_login(env):
        return Choice(AnswerSource.CLAUDE_CODE, reason)
    advice = _KEYCHAIN_ADVICE if platform == "darwin" else login_advice()
    return Choice(AnswerSource.OFFLINE, "no API key and no login of Claude Code were found", advice)


def _claude_code_login(env: Mapping[str, str]) -> str | None:
    for name in (*_TOKENS, *CLOUD_VARIABLES):
        if env.get(name, "").strip().lower() not in _OFF:
            return f"{name} is set"
    home = env.get("HOME") or env.get("USERPROFILE") or Path.home()
    file = Path(env.get("CLAUDE_CONFIG_DIR") or Path(home, ".claude")) / ".credentials.json"
    return f"found {file}" if file.is_file() else None


def _through(env: Mapping[str, str]) -> str:
    """Return the host that gets the API key, without the rest of the address."""
    address = urlsplit(env.get("ANTHROPIC_BASE_URL", ""))
    return f"through {address.hostname}, as ANTHROPIC_BASE_URL says" if address.hostname else "ANTHROPIC_API_KEY is set"
