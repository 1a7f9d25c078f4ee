"""One request, one API call: how the CLI is kept from a second one of its own.

After an answer that ended at `max_tokens` or at the context window, that broke off after a whole block, or that shows
nothing, the CLI asks the model to go on, up to three times. No switch says that it must not. But before each API call
it reckons how long the conversation is, and makes none if that is over a limit: from the usage that the API told with
the last answer, and from an estimate of what came after. So the limit is one token, and before the prompt stands a
mark: an answer that the CLI does not send, because it counts as none, and whose usage is below zero by as much as the
prompt is long. The prompt is always the same. With one message more, or with the API's own usage, it is over the limit.

How long the prompt is reckoned to be depends on the CLI and on the login: up to 22 tokens with an API key; with a
subscription and a CLI that tells its version (2.1.306 and newer) 243 to 341, because of a message about the machine
that the API never gets. A mark that is too small stops the prompt itself, before any API call, so it is made larger by
steps until the prompt passes. A step is smaller than the 22 tokens that the CLI would add. Measured on 14 CLIs from
2.1.71 to 2.1.330.

A second call that is not stopped: the CLI repeats a request that got a 404 without streaming, and one that got a 401
with a login; up to 2.1.191 also one whose connection broke. It is broken off when it is seen, and its answer goes to no
request.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cc_session import Session
from cc_types import JsonValue

__all__ = ["LIMIT_ENV", "MOST_TOKENS", "STEP_TOKENS", "Allowance", "mark"]

LIMIT_ENV = {"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1"}
"""What a process needs from its start on."""

# The CLI's own words for an answer without content, which it leaves out of requests.
_NOTHING = "(no content)"

# No name of a model, since the mark stands before requests to all of them. The name that the CLI has for messages of
# its own, `<synthetic>`, would make it pass over the usage.
_NO_MODEL = "none"

_FIRST_TOKENS = 22
_FIRST_TOKENS_WITH_MESSAGE = 256
STEP_TOKENS = 16
"""The step by which an allowance is raised."""
MOST_TOKENS = 2000
"""The largest allowance."""


@dataclass
class Allowance:
    """How long the prompt may be, in the CLI's tokens. Shared by processes that reckon alike."""

    tokens: int = _FIRST_TOKENS
    has_message: bool = False
    """Whether the login is one with which the CLI adds a message about the machine."""

    def begin(self, info: Mapping[str, JsonValue]) -> None:
        """Take into account what a CLI says about itself when it has started."""
        if self.has_message and "claude_code_version" in info:
            self.tokens = max(self.tokens, _FIRST_TOKENS_WITH_MESSAGE)

    def raise_above(self, tokens: int) -> int:
        """Take note that `tokens` were too few, and return the tokens to try next."""
        self.tokens = max(self.tokens, tokens + STEP_TOKENS)
        return self.tokens


async def mark(session: Session, tokens: int) -> None:
    """Let every prompt of `tokens` pass that follows directly on this, and only its first API call.

    Raises:
        ClaudeCodeError: The process failed.
    """
    await session.add_assistant(_NOTHING, model=_NO_MODEL, input_tokens=-tokens)
