"""One request, one API call: a second call by the CLI is prevented.

After an answer that ended at `max_tokens` or at the context window, that broke off after a whole block, or that shows
nothing, the CLI asks the model to go on, up to three times. No switch prevents that. But before each API call it
computes the conversation's length, and makes none above a limit: from the usage that the API sent with the last answer,
and from an estimate for the later messages. So the limit is one token, and the prompt is preceded by a mark: an answer
that the CLI does not send, because it counts as empty, and whose usage is the prompt's negative length. The prompt is
always the same. With one more message, or with the API's own usage, it is over the limit.

The prompt's computed length depends on the CLI and on the login: up to 22 tokens with an API key; with a
subscription and a CLI that sends its version (2.1.306 and newer) 243 to 341, because of a message about the machine
that the API never gets. A mark that is too small stops the prompt itself, before any API call, so it is increased in
steps until the prompt passes. A step is smaller than the 22 tokens that the CLI would add. Measured on 14 CLIs from
2.1.71 to 2.1.330.

A second call that is not prevented: the CLI retries a request that got a 404 without streaming, and one that got a 401
with a login; up to 2.1.191 also one with a connection error. It is cancelled when it is seen, and its answer goes to no
request.
"""

from dataclasses import dataclass

from cc_session import Session

__all__ = ["LIMIT_ENV", "Allowance", "PromptAllowance"]

LIMIT_ENV = {"CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1"}
"""Environment variables for a process's start."""

# The CLI's own text for an empty answer, which it leaves out of requests.
_NOTHING = "(no content)"

# Not a model name, since the mark precedes requests to all models. With the CLI's name for its own messages,
# `<synthetic>`, it would ignore the usage.
_NO_MODEL = "none"

_FIRST_TOKENS = 22
_FIRST_TOKENS_WITH_MESSAGE = 256
_STEP_TOKENS = 16


@dataclass
class Allowance:
    """The allowed prompt length in the CLI's tokens, shared by all processes with this CLI and this login."""

    tokens: int = _FIRST_TOKENS
    has_message: bool = False
    """True if the CLI adds a message about the machine with this login."""

    @classmethod
    def of(cls, cli_path: str, *, has_message: bool) -> "Allowance":
        """Return the allowance for all this program's processes with this CLI."""
        return _by_cli.setdefault((cli_path, has_message), cls(has_message=has_message))


_by_cli: dict[tuple[str, bool], Allowance] = {}


class PromptAllowance:
    """The allowed prompt length in one process, raised in steps while the CLI blocks its prompt.

    Args:
        session: The process's session.
        allowance: The length that other processes needed.
    """

    def __init__(self, session: Session, allowance: Allowance) -> None:
        if allowance.has_message and "claude_code_version" in session.info:
            allowance.tokens = max(allowance.tokens, _FIRST_TOKENS_WITH_MESSAGE)
        self._session, self._shared, self._tokens = session, allowance, allowance.tokens
        self._is_repeated = False
        self._is_first_use = True

    def begin(self, *, is_first_use: bool) -> None:
        """Begin a request; a used process may hold leftovers from earlier ones."""
        self._is_first_use = self._is_repeated = is_first_use

    async def grant(self) -> None:
        """Allow each prompt that follows directly on this, and only its first API call."""
        await self._session.add_assistant(_NOTHING, model=_NO_MODEL, input_tokens=-self._tokens)

    def increase(self) -> None:
        """Allow more, after a blocked prompt.

        A new process shows how long the CLI counts prompts. In a used one, leftovers may have blocked the prompt, so
        the first repetition has the same allowance: one that is too large would let the CLI make a second API call.
        """
        if self._is_repeated:
            self._tokens += _STEP_TOKENS
        if self._is_first_use:
            self._shared.tokens = self._tokens = max(self._shared.tokens, self._tokens)
        self._is_repeated = True
