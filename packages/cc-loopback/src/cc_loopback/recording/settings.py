"""`Cassette`: a file with recorded answers, and how a server uses it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all", "rewrite"]
"""Recording mode, with the names from VCR and pytest-recording.

- `none`: replay only.
- `once`: record if the file does not exist, otherwise replay only.
- `new_episodes`: replay the recorded requests, and record all others.
- `all`: record each request, in place of earlier recordings; keep the file's other recordings.
- `rewrite`: record each request into a new file.
"""

_API = "https://api.anthropic.com"


@dataclass(frozen=True, slots=True)
class Cassette:
    """File with requests to the Messages API and recorded answers, for `LoopbackServer(cassette=…)`."""

    path: Path | str
    record: RecordMode = "none"
    scrub: Mapping[str, str] = field(default_factory=dict[str, str])
    """Regular expressions and their replacements, as for `re.sub`, for each string in requests and answers.

    Credentials and ids are always removed. A text that changes with each run, such as the time, is ignored if a pattern
    replaces it.
    """
    timing: bool = False
    """True if a replay takes as long as the recorded answer did, event for event."""
    upstream: str | None = field(default=None, repr=False)
    """Base URL of the API to record. Default: the variable `ANTHROPIC_BASE_URL`, else the public API."""

    def upstream_url(self) -> str:
        """Return the base URL of the API to record, without a slash at the end."""
        return (self.upstream or os.environ.get("ANTHROPIC_BASE_URL") or _API).rstrip("/")
