"""A scripted Anthropic Messages API on loopback, with recording and replay of a real one, and with pytest fixtures.

The package does not import the packages that are tested with it, and starts no CLI.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import CassetteError, LoopbackError, ReplyError, ServerStateError, UpstreamError
    from .recording.settings import Cassette, RecordMode
    from .responder import default_respond
    from .schema import SchemaError, example
    from .server import LoopbackServer
    from .types import Call, JsonObject, JsonValue, Login, Reply, Respond

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
    "ServerStateError",
    "UpstreamError",
    "default_respond",
    "example",
]

# Imported lazily: pytest imports this package for its plugin in every run, even in runs that start no server.
_MODULES = {
    "errors": ("CassetteError", "LoopbackError", "ReplyError", "ServerStateError", "UpstreamError"),
    "recording.settings": ("Cassette", "RecordMode"),
    "responder": ("default_respond",),
    "schema": ("SchemaError", "example"),
    "server": ("LoopbackServer",),
    "types": ("Call", "JsonObject", "JsonValue", "Login", "Reply", "Respond"),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
