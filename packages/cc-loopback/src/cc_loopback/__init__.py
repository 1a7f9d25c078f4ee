"""A scripted Anthropic Messages API on loopback, with recording and replay of a real one, and with pytest fixtures.

The package does not import the packages that are tested with it, and starts no CLI.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api.errors import CassetteError, LoopbackError, ReplyError, ScriptError, ServerStateError, UpstreamError
    from .api.types import Call, JsonObject, JsonValue, Login, Reply, Respond
    from .recording.tape import Cassette, RecordMode
    from .responder import default_respond
    from .schemas.schema import SchemaError, example
    from .script import Step, call
    from .server import LoopbackServer

__all__ = [
    "Call",
    "Cassette",
    "CassetteError",
    "JsonObject",
    "JsonValue",
    "Login",
    "LoopbackError",
    "LoopbackServer",
    "RecordMode",
    "Reply",
    "ReplyError",
    "Respond",
    "SchemaError",
    "ScriptError",
    "ServerStateError",
    "Step",
    "UpstreamError",
    "call",
    "default_respond",
    "example",
]

# Imported lazily: pytest imports this package for the plugin in every run, even in runs that start no server.
_MODULES = {
    "api.errors": ("CassetteError", "LoopbackError", "ReplyError", "ScriptError", "ServerStateError", "UpstreamError"),
    "api.types": ("Call", "JsonObject", "JsonValue", "Login", "Reply", "Respond"),
    "recording.tape": ("Cassette", "RecordMode"),
    "responder": ("default_respond",),
    "schemas.schema": ("SchemaError", "example"),
    "script": ("Step", "call"),
    "server": ("LoopbackServer",),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
