"""`Cassette`: a file with recorded answers, and the way in which a server uses it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

RecordMode: TypeAlias = Literal["none", "once", "new_episodes", "all", "rewrite"]
"""Mode of recording, with the names of VCR and pytest-recording.

- `none`: replay only.
- `once`: record if the file does not exist, otherwise replay only.
- `new_episodes`: replay the recorded requests, and record all others.
- `all`: record each request, in place of its earlier recordings; keep the other recordings of the file.
- `rewrite`: record each request into a new file.
"""

_API = "https://api.anthropic.com"


@dataclass(frozen=True, slots=True)
class Cassette:
    """File with recorded requests and answers of the Messages API, for `LoopbackServer(cassette=…)`."""

    path: Path | str
    record: RecordMode = "none"
    scrub: Mapping[str, str] = field(default_factory=dict[str, str])
    """Regular expressions and their replacements, as of `re.sub`, for each string of requests and answers.

    They come on top of the credentials and ids that are always removed. A part of a request that changes with each run,
    such as the time, is ignored if a pattern replaces it.
    """
    timing: bool = False
    """Whether a replay takes as long as the recorded answer did, event for event."""
    upstream: str | None = field(default=None, repr=False)
    """Base URL of the API to record. Default: `ANTHROPIC_BASE_URL` of the environment, else the public API."""

    def upstream_url(self) -> str:
        """Return the base URL of the API to record, without a slash at its end."""
        return (self.upstream or os.environ.get("ANTHROPIC_BASE_URL") or _API).rstrip("/")
