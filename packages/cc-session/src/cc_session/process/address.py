"""Address of the API that a CLI process uses, from its environment.

In all functions, the CLI has `env` on top of `os.environ`.
"""

import os
import re
from collections.abc import Mapping

from .login import Login, login_of

# Scheme, user with host, and path.
_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?([^/?#]*)(.*)", re.DOTALL)

_ADDRESSES = {
    Login.BEDROCK: "ANTHROPIC_BEDROCK_BASE_URL",
    Login.FOUNDRY: "ANTHROPIC_FOUNDRY_BASE_URL",
    Login.VERTEX: "ANTHROPIC_VERTEX_BASE_URL",
}
_ANTHROPIC = "https://api.anthropic.com"
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")


def api_address(env: Mapping[str, str]) -> str:
    """Return the API address for display: without path and password, with the variables that it comes from."""
    values, variable, _ = _api_variables(env)
    address = api_origin(env) or "the cloud provider's API"
    if _origin(values.get(variable, "")):
        address += f" (from {variable})"
    for proxy in _PROXIES:
        if origin := _origin(values.get(proxy, "")):
            return f"{address}, through the proxy {origin} (from {proxy})"
    return address


def api_origin(env: Mapping[str, str]) -> str:
    """Return the API scheme, host and port; empty for a cloud provider's own address."""
    values, variable, default = _api_variables(env)
    return _origin(values.get(variable, "")) or default


def api_url(env: Mapping[str, str]) -> str:
    """Return the URL to which a CLI with `env` connects, of a proxy or the API; empty if this is not known here."""
    values, variable, default = _api_variables(env)
    if proxies := [values[name] for name in _PROXIES if values.get(name)]:
        return "" if values.get("no_proxy") or values.get("NO_PROXY") else proxies[0]
    return values.get(variable) or default


def _api_variables(env: Mapping[str, str]) -> tuple[dict[str, str], str, str]:
    """Return a CLI's environment, the variable with the API address, and the address without it."""
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
