"""The place of a responder's error: function, file and line."""

import inspect
import traceback
from pathlib import Path

from .api.types import Respond

_PACKAGE = Path(__file__).parent
# Files whose code stands between the server and the responder in a traceback.
_SERVER_FILES = frozenset(str(_PACKAGE / name) for name in ("app.py", "script.py", "api/reply.py"))


def place_of(error: BaseException, respond: Respond) -> str:
    """Return where `respond` raised an error, or where it is defined if its reply is invalid.

    The line is the responder's own, also if a function that it calls raised the error.
    """
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    frames = [(code, line) for code, line in frames if code.co_filename not in _SERVER_FILES]
    if frames:
        script = frames[0][0]
        line = [line for code, line in frames if code.co_filename == script.co_filename][-1]
        return f"raised by the responder {script.co_qualname} at {_shown(script.co_filename)}:{line}"
    name = getattr(respond, "__qualname__", type(respond).__qualname__)
    code = getattr(inspect.unwrap(respond), "__code__", None)
    place = f" at {_shown(code.co_filename)}:{code.co_firstlineno}" if code else ""
    return f"from the responder {name}{place}"


def _shown(file: str) -> str:
    """Return the path from the current folder if the file is there, otherwise the whole path."""
    path, folder = Path(file), Path.cwd()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file
