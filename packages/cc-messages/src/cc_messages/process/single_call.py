"""One request, one API call: the prevention of a second call by the CLI.

After an answer that ended at `max_tokens` or at the context window, that broke off after a whole block, or that shows
nothing, the CLI asks the model to go on, up to three times. No switch prevents that. But before each API call it
computes the length of the conversation, and makes none above a limit: from the usage that the API sent with the last
answer, and from an estimate of the later messages. So the limit is one token, and the prompt is preceded by a mark: an
answer that the CLI does not send, because it counts as empty, and whose usage is the negative length of the prompt. The
prompt is always the same. With one more message, or with the API's own usage, it is over the limit.

The computed length of the prompt depends on the CLI and on the login: up to 22 tokens with an API key; with a
subscription and a CLI that sends its version (2.1.306 and newer) 243 to 341, because of a message about the machine
that the API never gets. A mark that is too small stops the prompt itself, before any API call, so it is increased in
steps until the prompt passes. A step is smaller than the 22 tokens that the CLI would add. Measured on 14 CLIs from
2.1.71 to 2.1.330.

A second call that is not prevented: the CLI retries a request that got a 404 without streaming, and one that got a 401
with a login; up to 2.1.191 also one with a connection error. It is cancelled when it is seen, and its answer goes to no
request.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cc_session import Session
from cc_types import JsonValue

__all__ = ["LIMIT_ENV", "MOST_TOKENS", "STEP_TOKENS", "Allowance", "allow_prompt"]

LIMIT_ENV = {"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1"}
"""Environment variables for a process from its start on."""

# The CLI's own text for an empty answer, which it leaves out of requests.
_NOTHING = "(no content)"

# Not the name of a model, since the mark precedes requests to all of them. The CLI's name for messages of its own,
# `<synthetic>`, would make it ignore the usage.
_NO_MODEL = "none"

_FIRST_TOKENS = 22
_FIRST_TOKENS_WITH_MESSAGE = 256
STEP_TOKENS = 16
"""The step by which an allowance is raised."""
MOST_TOKENS = 2000
"""The largest allowance."""


@dataclass
class Allowance:
    """The allowed length of the prompt, in the CLI's tokens. The same for all processes of a CLI and a login."""

    tokens: int = _FIRST_TOKENS
    has_message: bool = False
    """True if the CLI adds a message about the machine with this login."""

    @classmethod
    def of(cls, cli_path: str, *, has_message: bool) -> "Allowance":
        """Return the allowance of all processes of this program with this CLI."""
        return _by_cli.setdefault((cli_path, has_message), cls(has_message=has_message))

    def begin(self, info: Mapping[str, JsonValue]) -> None:
        """Use the facts that a CLI reports about itself at its start."""
        if self.has_message and "claude_code_version" in info:
            self.tokens = max(self.tokens, _FIRST_TOKENS_WITH_MESSAGE)

    def raise_above(self, tokens: int) -> int:
        """Record that `tokens` were too few; return the tokens to try next."""
        self.tokens = max(self.tokens, tokens + STEP_TOKENS)
        return self.tokens


_by_cli: dict[tuple[str, bool], Allowance] = {}


async def allow_prompt(session: Session, tokens: int) -> None:
    """Allow each prompt of `tokens` that follows directly on this, and only its first API call."""
    await session.add_assistant(_NOTHING, model=_NO_MODEL, input_tokens=-tokens)
