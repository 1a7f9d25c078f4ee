"""How a case ended: from the exception to the category for the verdict."""

import asyncio
import errno
import time
from collections.abc import Awaitable, Coroutine
from typing import Any

from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelOverloadedError, ModelRateLimitError

from .faults import INJECTED
from .verdict import CONNECTION, NO_DESCRIPTOR, OTHER, RIGHT, TOOL, Ended
from .work import Case, Kind, ToolFailedError

# Seconds. A case takes well below a second alone, and some seconds among others and with new processes; after this time
# it hangs.
RUN_SECONDS = 120
# Seconds. A cancelled run ends within milliseconds.
_CANCEL_SECONDS = 20.0
# The text after it may be about earlier requests.
_STDERR = "The end of its stderr"


class HangsError(Exception):
    """A case that does not end."""


async def ended(name: str, kind: Kind, case: Case) -> Ended:
    """Run the case, and return the outcome."""
    begun = time.monotonic()
    error, message = await _error(_bounded(kind(case), case))
    if name.startswith("cli-") and error == "500" and INJECTED not in message.partition(_STDERR)[0]:
        # A tool's side effects must not be repeated, so a later connection error is reported as an API error.
        error = CONNECTION
    return Ended(name, case.mark, begun, time.monotonic(), error, message[:500], case.runs)


async def _error(running: Awaitable[None]) -> tuple[str, str]:
    try:
        await running
    except ModelHTTPError as error:
        return str(error.status_code), str(error)
    except ModelRateLimitError as error:
        return "429", str(error)
    except ModelOverloadedError as error:
        return "529", str(error)
    except ModelConnectionError as error:
        return CONNECTION, str(error)
    except ToolFailedError as error:
        return TOOL, str(error)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.EMFILE:
            return NO_DESCRIPTOR, str(error)
        return OTHER, f"{type(error).__name__}: {error}"
    return RIGHT, ""


async def _bounded(running: Coroutine[Any, Any, None], case: Case) -> None:
    """Await a case with a time limit. Only seconds count in which this process could use the processor."""
    task = asyncio.ensure_future(running)
    try:
        for _ in range(RUN_SECONDS):
            if (await asyncio.wait({task}, timeout=1.0))[0]:
                return task.result()
        raise HangsError(f"no end after {RUN_SECONDS} s; {case.provider.transport!r}, {case.other.transport!r}")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
