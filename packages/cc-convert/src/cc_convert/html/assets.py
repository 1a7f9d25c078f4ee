"""The page's style, and a search where scripts are allowed. The policy allows only these two, by their hashes."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

__all__ = ["SCRIPT", "STYLE", "policy"]

STYLE = Path(__file__).with_name("page.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")


def policy() -> str:
    """Return the content security policy: no loading, and only our own styles and scripts."""
    style, script = (b64encode(sha256(content.encode()).digest()).decode() for content in (STYLE, SCRIPT))
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
