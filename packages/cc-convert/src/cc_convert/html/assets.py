"""The look of the page, and a search that works where scripts may run. Both are let in by their hash, and only they."""

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

__all__ = ["SCRIPT", "STYLE", "policy"]

STYLE = Path(__file__).with_name("page.css").read_text("utf-8")
SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")


def policy() -> str:
    """The content security policy: nothing is loaded, and of styles and scripts only ours count."""
    style, script = (b64encode(sha256(one.encode()).digest()).decode() for one in (STYLE, SCRIPT))
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
