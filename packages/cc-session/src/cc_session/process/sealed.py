"""Options of a sealed process: a model, with nothing from the machine or the user.

A sealed process has no built-in tools, reads no settings, no CLAUDE.md and no MCP configuration, takes prompt text as
data, keeps no transcript, does not think, retry, compact or fall back by itself, and answers a message with exactly
one API call. The caller enables other features of Claude Code by name.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from .login import login_of

NO_RESULT_FILES_ENV: Mapping[str, str] = {"CLAUDE_CODE_PROJECT_DIR_NAME": "cc-session-keeps-no-results"}
"""Variables with which Claude Code tells the model that it could not save a result, and writes no file."""

# Each variable but the last two disables an automatic action that the direct API does not have.
_SEALED_ENV = {
    # Features that only the caller may enable, per request. Without an effort level the CLI sends a default level.
    "CLAUDE_CODE_EFFORT_LEVEL": "unset", "CLAUDE_CODE_DISABLE_THINKING": "1", "CLAUDE_CODE_DISABLE_ULTRATHINK": "1",
    "CLAUDE_CODE_DISABLE_FAST_MODE": "1", "CLAUDE_CODE_DISABLE_ADVISOR_TOOL": "1",
    # Betas that the CLI adds; without the variable, it also repeats a request that got a 400.
    "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1",
    # Retries, fallbacks and repairs belong to the client, which can count and report them.
    "CLAUDE_CODE_MAX_RETRIES": "0", "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_MODEL_ACCESS_FALLBACK": "1", "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1", "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",
    "DISABLE_COMPACT": "1", "DISABLE_AUTO_COMPACT": "1",
    # The API decides if a prompt is too long, not an estimate of the CLI. In tokens.
    "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE": "1000000000",
    # Features that add text to the conversation or read files for it.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1", "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING": "1",
    # A working folder's scheduled prompts; a count of tokens, where attachments are on.
    "CLAUDE_CODE_DISABLE_CRON": "1", "CLAUDE_CODE_TOTAL_TOKENS_REMINDER": "off",
    "CLAUDE_CODE_SKILL_PROPOSALS": "0", "CLAUDE_CODE_WEBSEARCH_CITATIONS": "0", "CLAUDE_CODE_SIMPLE": "0",
    # Unrequested traffic.
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    # The milliseconds for which the API may be silent; the CLI takes no more. Time limits belong to the client: after
    # its own, three to six minutes, the CLI reports a lost connection, and clients repeat the request. Measured on CLI
    # 2.1.332.
    "CLAUDE_STREAM_IDLE_TIMEOUT_MS": "1800000",
    # The milliseconds between garbage collections of an idle process. With the default, one second, it uses 2 to 4 % of
    # a core, and compiles its code again for each request after a pause. Not a stable interface of the CLI's JavaScript
    # runtime, which ignores unknown names. Measured on CLI 2.1.332, Linux.
    "BUN_GC_TIMER_INTERVAL": "30000",
}  # fmt: skip


# Options that a sealed process would ignore, each with the variable that turns its feature off, and the other value.
_OFF_BY = {
    "effort": ("CLAUDE_CODE_EFFORT_LEVEL", ""),
    "enable_file_checkpointing": ("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING", "0"),
    "skills": ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "0"),  # the list for the model is one
    "max_thinking_tokens": ("CLAUDE_CODE_DISABLE_THINKING", "0"),
    "thinking": ("CLAUDE_CODE_DISABLE_THINKING", "0"),
}


def with_asked_features(options: ClaudeAgentOptions) -> ClaudeAgentOptions:
    """Return the options, in a sealed process with the features on that they ask for by name."""
    if not is_sealed(options):
        return options
    asked = dict(_OFF_BY[name] for name in _OFF_BY if getattr(options, name) not in (None, False, []))
    # A caller's own values stay.
    changes = {name: value for name, value in asked.items() if options.env[name] == _SEALED_ENV[name]}
    return replace(options, env={**options.env, **changes}) if changes else options


def is_sealed(options: ClaudeAgentOptions) -> bool:
    """Return true if `sealed_options()` made the options, even if they have changed since."""
    return _SEALED_ENV.keys() <= options.env.keys()


def forgets_servers(options: ClaudeAgentOptions) -> bool:
    """Return true if no request of a process has a trace of MCP servers that it had before.

    With a beta for tools that change, requests to newer models have the definitions of all tools that the process has
    had. The tools for resources stay when a server with resources goes. Measured on CLI 2.1.332.
    """
    return isinstance(options.tools, list) and options.env.get("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS") == "1"


def sealed_options(
    *,
    system_prompt: str = "",
    model: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    cli_path: str | Path | None = None,
) -> ClaudeAgentOptions:
    """Return the SDK options for a sealed process, the default in this project.

    Args:
        system_prompt: The whole system prompt; Claude Code adds only two short lines.
        model: A model id or an alias such as `"sonnet"`; the CLI default model if None.
        env: Environment variables, in addition to this process's; they override the sealed ones.
        cwd: The working folder; an empty private folder if None.
        cli_path: The CLI to run; the CLI in the SDK wheel if None.

    With an API key or a cloud provider the process also runs `--bare`, which omits the CLI messages about the
    machine. `--bare` cannot use an OAuth login, so then it is not set. It cannot run hooks either: a session with hooks
    or a policy removes it. The built-in tools in it are `Bash`, `Edit` and `Read`, regardless of `tools`.

    The options `effort`, `thinking`, `skills` and `enable_file_checkpointing` turn their features on.
    """
    extra_args: dict[str, str | None] = {"no-session-persistence": None}
    if login_of(env or {}).is_in_environment:
        extra_args["bare"] = None
    return ClaudeAgentOptions(
        tools=[],
        system_prompt=system_prompt,
        model=model,
        strict_mcp_config=True,
        setting_sources=[],
        permission_mode="dontAsk",
        # A message that calls tools ends the turn: the caller runs the tools, and the CLI makes no second API call.
        max_turns=1,
        include_partial_messages=True,
        env={**_SEALED_ENV, **(env or {})},
        cwd=cwd,
        cli_path=cli_path,
        extra_args=extra_args,
    )
