"""Parts of sessions and pools for the packages that are built on this one, such as cc-messages.

No public interface: a name may change in any release.
"""

from .background import on_background, run_on_background, start_on_background, tell_background
from .mcp.tool_server import TOOL_CALL_ID, TOOL_META, calling_freely, check_length
from .policy.rules import is_known_tool
from .pool.core import PoolCore
from .pool.launch import Launch
from .pool.leases import Lease
from .pool.limits import refuse_keywords
from .pool.owner import PoolOwner
from .pool.worker import PooledSession, Worker
from .process.api_host import unreachable
from .process.cli_file import bundled_cli, check_paths, find_cli, login_advice
from .process.login import CLOUD_VARIABLES, Login, api_address, api_url, login_of
from .process.settings import SettingValues, variable

__all__ = [
    "CLOUD_VARIABLES", "TOOL_CALL_ID", "TOOL_META", "Launch", "Lease", "Login", "PoolCore", "PoolOwner",
    "PooledSession", "SettingValues", "Worker", "api_address", "api_url", "bundled_cli", "calling_freely",
    "check_length", "check_paths", "find_cli", "is_known_tool", "login_advice", "login_of", "on_background",
    "refuse_keywords", "run_on_background", "start_on_background", "tell_background", "unreachable", "variable",
]  # fmt: skip
