"""The sealed configuration: Claude Code as a model, with nothing of the machine or the user in it.

A sealed process has no built-in tools, reads no settings, no CLAUDE.md and no MCP configuration, takes prompt text
as data, keeps no transcript, does not think, retry, compact or fall back on its own, and answers a message with
exactly one API call. What a caller wants of Claude Code beyond that, it asks for by name.
"""

from collections.abc import Mapping
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from .login import login_of

__all__ = ["is_sealed", "sealed_options"]

# Each of these keeps the CLI from doing something by itself that the direct API would not do.
_SEALED_ENV = {
    # What only the caller may ask for, per request. Without an effort level of its own the CLI sends its default one.
    "CLAUDE_CODE_EFFORT_LEVEL": "unset",
    "CLAUDE_CODE_DISABLE_THINKING": "1",
    "CLAUDE_CODE_DISABLE_ULTRATHINK": "1",
    "CLAUDE_CODE_DISABLE_FAST_MODE": "1",
    "CLAUDE_CODE_DISABLE_ADVISOR_TOOL": "1",
    # Betas of the CLI's own; it also repeats a request that got a 400 without them.
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    # Retries, fallbacks and repairs are the client's to do, which can count and report them.
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_MODEL_ACCESS_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "DISABLE_COMPACT": "1",
    "DISABLE_AUTO_COMPACT": "1",
    # Whether a prompt is too long is for the API to say, not for an estimate of the CLI. In tokens.
    "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1000000000",
    # What would add text to the conversation or read files because of it.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "1",
    # Traffic that nobody asked for.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}


def is_sealed(options: ClaudeAgentOptions) -> bool:
    """Whether options were made by `sealed_options()`, whatever was changed about them since."""
    return _SEALED_ENV.keys() <= options.env.keys()


def sealed_options(
    *,
    system_prompt: str = "",
    model: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    cli_path: str | Path | None = None,
) -> ClaudeAgentOptions:
    """Return the SDK options of a sealed process, the default of this project.

    Args:
        system_prompt: The whole system prompt; nothing of Claude Code's own is added but two short lines.
        model: A model id or an alias such as `"sonnet"`; the CLI's default model if None.
        env: Environment variables for the process, on top of this one's; they win over the sealed ones.
        cwd: The folder the process runs in; an empty private one if None.
        cli_path: The CLI to run; the one in the SDK's wheel if None.

    With an API key or a cloud provider the process also runs `--bare`, which leaves out the messages about the machine
    that the CLI adds otherwise. `--bare` cannot use an OAuth login, so there it is not set. Nor can it run hooks: a
    session with hooks or a policy takes it away. Of the built-in tools it has `Bash`, `Edit` and `Read`,
    whatever `tools` says.
    """
    own_env = dict(env or {})
    extra_args: dict[str, str | None] = {"no-session-persistence": None}
    if login_of(own_env).is_in_environment:
        extra_args["bare"] = None
    return ClaudeAgentOptions(
        tools=[],
        system_prompt=system_prompt,
        model=model,
        strict_mcp_config=True,
        setting_sources=[],
        permission_mode="dontAsk",
        # A model's message that calls tools ends the turn: the caller runs them, and no second API call is made.
        max_turns=1,
        include_partial_messages=True,
        env={**_SEALED_ENV, **own_env},
        cwd=cwd,
        cli_path=cli_path,
        extra_args=extra_args,
    )
