"""A system prompt for a running process, which only the CLI can send: with a subscription's login.

There the CLI's own system blocks precede the caller's prompt, which it gets when it starts. A process started with
`--await-claim` accepts it once, later, and from then on equals one started with it. Measured on CLI 2.1.329: 67 ms,
where a start takes 400. The CLI calls the control request internal; a CLI without it refuses the argument, and is then
started for each prompt.
"""

from collections.abc import Mapping, Sequence

from cc_session.internals import PooledSession
from cc_types import CLIConnectionError, ControlRequestError

__all__ = ["CLAIM_ARGUMENTS", "claim"]

CLAIM_ARGUMENTS: Mapping[str, str | None] = {"await-claim": None}
"""The command line of a process that can be claimed."""


async def claim(session: PooledSession, system: Sequence[str]) -> None:
    """Give the process its system prompt. Works once.

    Raises:
        ClaudeCodeError: The process failed or refused; another one may take the prompt.
    """
    try:
        await session.control("claim_session", cwd=session.cwd, system_prompt=[*system])
    except ControlRequestError as error:
        raise CLIConnectionError(reason=f"Claude Code did not take the system prompt: {error.message}") from error
