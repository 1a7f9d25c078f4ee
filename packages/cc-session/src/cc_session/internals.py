"""Parts of sessions and pools for packages on top, such as cc-messages. Not public: names may change in any release."""

from .background import await_on, on_background, run_on_background, start_on_background, tell_background
from .identity import owned
from .limits import refuse_keywords
from .mcp.cli_calls import LONGEST_CALL, TOOL_CALL_ID, TOOL_META, calling_freely, check_length
from .mcp.names import PLAIN_NAMES_ENV, check_server_name, is_mcp_name, mcp_name, server_rule, split_mcp_name
from .policy.policy import RENAMED_TOOLS, is_known_tool
from .pool.core import Lease, PoolCore
from .pool.launch import Launch
from .pool.pool import PoolOwner
from .pool.pooled_session import PooledSession
from .pool.start_files import file_state
from .pool.worker import Worker
from .process.address import api_address, api_origin, api_url
from .process.cli_path import bundled_cli, check_paths, find_cli
from .process.login import CLOUD_VARIABLES, Login, config_folder, login_advice, login_of, without_login
from .process.network import unreachable
from .process.sdk_messages import LoginResult
from .process.sealed import NO_RESULT_FILES_ENV
from .process.settings import SettingValues, variable

__all__ = [
    "CLOUD_VARIABLES", "LONGEST_CALL", "NO_RESULT_FILES_ENV", "PLAIN_NAMES_ENV", "RENAMED_TOOLS", "TOOL_CALL_ID",
    "TOOL_META", "Launch", "Lease", "Login", "LoginResult", "PoolCore", "PoolOwner", "PooledSession", "SettingValues",
    "Worker", "api_address", "api_origin", "api_url", "await_on", "bundled_cli", "calling_freely", "check_length",
    "check_paths", "check_server_name", "config_folder", "file_state", "find_cli", "is_known_tool", "is_mcp_name",
    "login_advice", "login_of", "mcp_name", "on_background", "owned", "refuse_keywords", "run_on_background",
    "server_rule", "split_mcp_name", "start_on_background", "tell_background", "unreachable", "variable",
    "without_login",
]  # fmt: skip
