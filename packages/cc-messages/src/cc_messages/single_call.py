"""One request, one API call: how the CLI is kept from a second one of its own.

After an answer that ended at `max_tokens` or at the context window, or that broke off after a whole block, the CLI asks
the model to go on, up to three times. No switch says that it must not. But before each API call it reckons how long
the conversation is, and makes none if that is over a limit: from the usage that the API told with the last answer, and
from an estimate of what came after. So the limit is one token, and before each prompt stands an answer that the CLI
does not send, because it counts as none, and whose usage is so far below zero that any prompt is under the limit. Once
the API has answered, its own usage counts, and nothing is.

Measured on CLI 2.1.329. What is not stopped by it: the CLI drops an answer that shows nothing, or that says it calls a
tool and does not, before it asks again; and it repeats a request that got a 404 without streaming, and some that got a
400 without what it takes for the reason. Such a call is broken off when it is seen, and its answer is nobody's.

What was tried instead: an interrupt at `message_delta` comes too late, since the CLI is two to four milliseconds from
the end of one answer to the next call; `--max-turns` counts only calls of tools, `--max-budget-usd` counts over the
process's life, and hooks do not run in that place.
"""

from cc_session import Session

__all__ = ["LIMIT_ENV", "NO_LIMIT_ENV", "mark"]

_LIMIT = "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE"

LIMIT_ENV = {_LIMIT: "1"}
"""What a process needs from its start on."""

NO_LIMIT_ENV = {_LIMIT: "1000000000"}
"""What takes the limit away again."""

# The CLI's own words for an answer without content, which it leaves out of requests.
_NOTHING = "(no content)"

# More than any estimate of any prompt, and a whole number in JavaScript.
_TOKENS = -(10**15)


async def mark(session: Session, model: str) -> None:
    """Let the next prompt pass, and only its first API call.

    Raises:
        ClaudeCodeError: The process failed.
    """
    await session.add_assistant(_NOTHING, model=model, input_tokens=_TOKENS)
