"""A process's private folder, with its output files and secret input files.

Every user of a machine can read a process's command line. So possible secrets go to the CLI in files: the system
prompt, the settings, and the MCP servers with their tokens.
"""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import SystemPromptFile, SystemPromptPreset

from ..errors import CLIConnectionError
from .login import Login, config_folder, login_of, without_login
from .process_tree import MARK
from .sealed import NO_RESULT_FILES_ENV, is_sealed

# In this folder the CLI logs MCP servers, with arguments and results of failed calls, in files that every user can read
# and that stay. It reads the variable only at the start; macOS and Windows have other places. CLI 2.1.329.
_CACHE = "XDG_CACHE_HOME" if sys.platform not in ("darwin", "win32") else None

# A CLI that inherits one takes itself for a host's session: it adds headers, waits for a descriptor, or asks elsewhere.
OF_A_HOST = re.compile(
    r"CLAUDE_CODE_(CLIENT_DATA|CONFIG_PROBE|CONTAINER_|GATEWAY_HINT|HOST|PROVIDER_MAN|REMOTE|USER_DELEG|\w+_FILE_DESCR)"
)

# A terminal whose editor debugs all Node programs has such a `NODE_OPTIONS`. With it the CLI exits without a word.
_OF_A_DEBUGGER = re.compile(r"--(inspect|debug)")

# Folders that could not be deleted yet: a listing needs a file descriptor, and there may be none free.
_to_be_deleted: set[Path] = set()


class PrivateFolder:
    """Folder for one process that only this user can enter."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="cc-session-"))

    def options(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """Return `options` for the command line, with the folder in use."""
        hosts = dict.fromkeys(filter(OF_A_HOST.match, os.environ), "")
        default = {"CLAUDE_CODE_TMPDIR": str(self._folder("tmp")), **hosts}
        if _OF_A_DEBUGGER.search(os.environ.get("NODE_OPTIONS", "")):
            default["NODE_OPTIONS"] = ""
        own_env = {MARK: str(self.path)}
        if _CACHE is not None:
            own_env[_CACHE] = str(self._folder("cache"))
        if "bare" in options.extra_args or (is_sealed(options) and login_of(options.env) is not Login.SUBSCRIPTION):
            # The login is not in the user's configuration, so the process does not need it. The CLI would also send a
            # key in it to a gateway.
            default["CLAUDE_CONFIG_DIR"] = str(self._folder("config"))
        env = {**default, **options.env, **own_env}
        if NO_RESULT_FILES_ENV.items() <= env.items():
            # A file in the place of the folder with files of results, which can outlive the process. CLI 2.1.329.
            place = config_folder(env) / "projects" / "".join(NO_RESULT_FILES_ENV.values())
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.touch(mode=0o600)
        options = self._with_prompt_file(options)
        cwd = options.cwd or self._working_folder(options)
        return replace(
            options,
            env=env,
            cwd=cwd,
            settings=self._settings(options, cwd),
            sandbox=None,
            mcp_servers=self._mcp_servers(options.mcp_servers, cwd),
            # The SDK sets it only with its default transport; without it the CLI requests no permission.
            permission_prompt_tool_name="stdio" if options.can_use_tool else options.permission_prompt_tool_name,
        )

    def remove(self) -> None:
        """Delete the folder, and folders that could not be deleted before."""
        _to_be_deleted.add(self.path)
        for path in list(_to_be_deleted):
            # Twice: a tool that outlives the process may write a file between the walk and the removal.
            for _ in range(2):
                shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                _to_be_deleted.discard(path)

    def _with_prompt_file(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        match options.system_prompt:
            case str(prompt) | {"type": "custom", "prompt": str(prompt)} if prompt:
                file = SystemPromptFile(type="file", path=self._file("system-prompt.md", prompt))
                return replace(options, system_prompt=file)
            case {"type": "preset", "append": str(text), **others} if text:
                file_args = {"append-system-prompt-file": self._file("system-prompt.md", text)}
                preset = cast(SystemPromptPreset, {"type": "preset", **others})
                return replace(options, system_prompt=preset, extra_args={**options.extra_args, **file_args})
            case _:
                return options

    def _settings(self, options: ClaudeAgentOptions, cwd: str | Path) -> str | None:
        if options.settings is not None and not _is_json(options.settings) and options.sandbox is None:
            return options.settings  # relative paths in the file are relative to its folder
        try:
            settings: dict[str, Any] = _loaded(options.settings or "{}", cwd)
            if not isinstance(cast(object, settings), dict):
                raise ValueError("they are not a JSON object")
        except (OSError, ValueError) as error:
            reason = f"The settings cannot be read: {error}"
            advice = "They go to Claude Code in a private file, so give `settings` as a JSON object or the path of one."
            raise CLIConnectionError(reason=reason, advice=advice) from error
        if options.sandbox is not None:
            # The SDK would put both on the command line.
            settings["sandbox"] = options.sandbox
        if _CACHE is not None and isinstance(env := settings.get("env", {}), dict):
            # Programs that the CLI starts have the user's cache.
            settings["env"] = {_CACHE: _user_cache(options.env), **env}
        return self._file("settings.json", json.dumps(settings)) if settings else None

    def _mcp_servers(self, servers: Mapping[str, Any] | str | Path, cwd: str | Path) -> dict[str, Any] | str | Path:
        if not servers:
            return {}
        config: Any = {"mcpServers": servers}
        if not isinstance(servers, Mapping):
            try:
                config = _loaded(servers, cwd)
            except (OSError, ValueError) as error:
                if _is_json(servers):
                    raise ValueError(f"the text of the option mcp_servers is not JSON: {error}") from error
                return servers  # the CLI says why it cannot read them
        match config:
            case {"mcpServers": {**by_name}} if all(isinstance(server, Mapping) for server in by_name.values()):
                config = {**config, "mcpServers": _for_the_cli(by_name)}
            case _:
                pass  # the CLI says why this is invalid
        return self._file("mcp.json", json.dumps(config))

    def _working_folder(self, options: ClaudeAgentOptions) -> Path:
        folder = self._folder("cwd")
        if is_sealed(options) and options.tools == []:
            # After each change of settings the CLI asks git if it tracks the folder settings, for several
            # milliseconds. This file prevents that; a sealed process has no such settings.
            (folder / ".claude").mkdir(mode=0o700)
            (folder / ".claude" / ".git").touch(mode=0o600)
        return folder

    def _folder(self, name: str) -> Path:
        folder = self.path / name
        folder.mkdir(mode=0o700)
        return folder

    def _file(self, name: str, text: str) -> str:
        file = self.path / name
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return str(file)


def _for_the_cli(servers: Mapping[str, Any]) -> dict[str, Any]:
    """Return MCP servers without the objects that the SDK runs. Programs get only the logins in their own `env`."""
    plain_servers: dict[str, Any] = {}
    for name, server in servers.items():
        plain_servers[name] = {key: value for key, value in server.items() if key != "instance"}
        env: object = server.get("env") or {}
        if server.get("type", "stdio") == "stdio" and isinstance(env, Mapping):
            plain_servers[name]["env"] = without_login(cast("Mapping[str, str]", env))
    return plain_servers


def _user_cache(env: Mapping[str, str]) -> str:
    cache = env.get("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME"))
    # The default path, since many programs take an empty variable for a path.
    return cache or str(Path(env.get("HOME") or Path.home()) / ".cache")


def _is_json(option: str | Path) -> bool:
    """Return true if an option has content in place of a path."""
    return isinstance(option, str) and option.strip().startswith("{")


def _loaded(option: str | Path, cwd: str | Path) -> Any:
    """Return an option's content, which is JSON, or in a file with a path relative to `cwd`."""
    text = str(option).strip()
    return json.loads(text if _is_json(option) else (Path(cwd) / text).read_text(encoding="utf-8-sig"))
