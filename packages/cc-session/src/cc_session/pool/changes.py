"""Changes of system prompt and working folder in a running process, which not every CLI can make.

The control request `set_model` has a field for the system prompt, which the CLI calls internal. The CLI sends the new
prompt from the next turn on, if it keeps no snapshot of the first; the SDK has an option for that. Measured on CLI
2.1.81 to 2.1.330, with an API key and an OAuth token: 2.1.214 and newer take prompts, versions up to 2.1.212 only at
the start. A CLI that takes prompts refuses an empty prompt; others ignore the field. A CLI without `set_cwd` refuses
the request.
"""

import logging
from dataclasses import dataclass, replace
from typing import cast

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import SystemPromptCustom

from cc_types import CLIConnectionError, ControlRequestError

from ..process.cli_file import find_cli
from ..session.session import Session

__all__ = ["Changes", "prompt_of", "without_snapshot"]

logger = logging.getLogger(__name__)


def prompt_of(options: ClaudeAgentOptions) -> str | None:
    """Return the system prompt that a process can change; None if there is none, or if it is fixed at the start."""
    prompt = options.system_prompt
    return prompt if isinstance(prompt, str) and prompt else None


def without_snapshot(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return options with which a process takes other system prompts, unless the first is Claude Code's or a file."""
    prompt = options.system_prompt or ""  # None is an empty prompt, too
    if not isinstance(prompt, str):
        return options
    return replace(options, system_prompt=SystemPromptCustom(type="custom", prompt=prompt, snapshot=False))


@dataclass
class Changes:
    """A CLI's abilities to change while it runs; assumed until probed."""

    of_prompt: bool = True
    of_folder: bool = True
    _are_probed: bool = False
    _has_warned: bool = False

    @classmethod
    def of(cls, options: ClaudeAgentOptions) -> "Changes":
        """Return the record for the CLI in `options`."""
        path = find_cli(None if options.cli_path is None else str(options.cli_path))
        return _by_path.setdefault(path, cls())

    async def probe_prompt(self, session: Session, model: object) -> None:
        """Probe once if a process takes another prompt; raise if it does not. An old CLI sets `model` again."""
        if not self._are_probed:
            try:
                await session.control(
                    "set_model", model=cast("str | None", model), system_prompt="", only_if_model_is_current=True
                )
                self.of_prompt = False
            except ControlRequestError:
                pass
            self._are_probed = True
        if not self.of_prompt:
            raise CLIConnectionError(reason="The process keeps the system prompt with which it started")

    def warn(self, session: Session) -> None:
        """Log once that each system prompt needs a separate process."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Claude Code %s takes a system prompt only at the start, so each prompt starts a process. Version "
                "2.1.214 and newer change it while they run (claude-agent-sdk 0.2.122).",
                session.info.get("claude_code_version", "in this version"),
            )


_by_path: dict[str | None, Changes] = {}
