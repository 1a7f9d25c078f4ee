"""Claude Code's own sandbox for commands: the operating system limits what they write, read and reach.

The CLI runs commands in bubblewrap on Linux and in Seatbelt on macOS. Its file tools run in the CLI, and MCP servers
beside it: for those, a policy decides. Measured on CLI 2.1.81 to 2.1.332: with `failIfUnavailable` a CLI without a
working sandbox does not start. Version 2.1.71 does not know the setting, and would run commands without one; so the
programs are looked for here, too.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from claude_agent_sdk import SandboxSettings

from cc_types import CLIConnectionError

Sandbox: TypeAlias = bool | SandboxSettings
"""True for the default: writing in the working folder and a temporary folder alone, no reading in the home folder, no
network. Or the Claude Code sandbox settings, which replace those of the default with the same name."""

_PROGRAMS = ("bwrap", "socat")


def sandbox_settings(sandbox: SandboxSettings, cwd: str | Path | None) -> SandboxSettings:
    """Return the settings for a process whose working folder is `cwd`; they cannot be turned off by others.

    Commands outside the sandbox, which the model could ask for, are off unless the settings allow them.
    """
    given = cast("Mapping[str, Any]", sandbox)
    files = {"denyRead": [str(Path.home())], "allowRead": [] if cwd is None else [os.path.abspath(cwd)]}
    default: dict[str, Any] = {
        "autoAllowBashIfSandboxed": False,  # the policy and the allowed tools decide
        "allowUnsandboxedCommands": False,
        "network": {"allowedDomains": []},
    }
    always = {"filesystem": {**files, **given.get("filesystem", {})}, "enabled": True, "failIfUnavailable": True}
    return cast("SandboxSettings", {**default, **given, **always})


def check_sandbox(path: str) -> None:
    """Raise `CLIConnectionError` if this system has no sandbox; `path` is where programs are searched."""
    if sys.platform == "win32":
        raise CLIConnectionError(reason="Claude Code has no sandbox on Windows", advice="Use WSL, or leave it out.")
    missing_programs = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if sys.platform == "linux" and missing_programs:
        raise CLIConnectionError(
            reason=f"The sandbox needs {' and '.join(missing_programs)}, which this system does not have",
            advice="Install it, as by: apt install bubblewrap socat",
        )
