"""Checks of arguments where an agent is built: each error has the value and what to write in its place.

cc-session checks paths, and cc-messages the spelling of tool names.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from types import NoneType
from typing import Any, cast, get_args

from pydantic_ai.models import KnownModelName

from cc_session import Policy, PoolLimits, Timeouts

from .request_log import RequestLog

PREFIX = "claude-code:"
"""The provider in a pydantic-ai model id."""

# Entries that look like a group of tools.
_GROUPS = frozenset({"all", "any", "default", "none"})


@dataclass(frozen=True, slots=True)
class _Rule:
    types: tuple[type, ...]
    advice: str
    is_valid: Callable[[Any], bool] = lambda _: True


_PATH = _Rule((str, PathLike, NoneType), "write a path as a text or a Path, or leave it out")
_RULES = {
    "cli_path": _PATH,
    "cwd": _PATH,
    "limit_thresholds": _Rule(
        (Collection,),
        "write shares above 0 and at most 1, such as (0.8, 0.95)",
        lambda shares: all(isinstance(share, int | float) for share in shares),
    ),
    "log": _Rule((str, PathLike, RequestLog, NoneType), "write a file's path, or a RequestLog"),
    "max_retries": _Rule((int,), "write a whole number from 0 on, such as 2", lambda number: number >= 0),
    "max_retry_wait": _Rule(
        (int, float, NoneType),
        "write a number of seconds from 0 on, or None for no limit",
        lambda seconds: seconds is None or seconds >= 0,
    ),
    "max_turns": _Rule(
        (int, NoneType),
        "write a whole number from 1 on, or None for no limit",
        lambda number: number is None or number > 0,
    ),
    "on_limit": _Rule((cast(type, Callable), NoneType), "write a function with the parameters `window` and `limits`"),
    "policy": _Rule((Policy, NoneType), "write a Policy, such as Policy.read_only()"),
    "pool": _Rule(
        (int, PoolLimits),
        "write a number of processes from 1 on, such as 8, or PoolLimits(size=8)",
        lambda limits: isinstance(limits, PoolLimits) or limits > 0,
    ),
    "timeouts": _Rule((Timeouts, NoneType), "write Timeouts(turn=30), with seconds for each limit"),
}


def check_arguments(**arguments: object) -> None:
    """Check arguments by their names in the public interface."""
    for name, value in arguments.items():
        rule = _RULES[name]
        message = f"{name}={value!r} cannot be used: {rule.advice}"
        if isinstance(value, bool) or not isinstance(value, rule.types):
            raise TypeError(message)
        if not rule.is_valid(value):
            raise ValueError(message)


def check_env(env: object) -> None:
    """Check environment variables. Errors show no text, which may be a secret."""
    if env is None:
        return
    if not isinstance(env, Mapping):
        raise TypeError(f"env is of type {type(env).__name__}: write variables by name, such as {{'TZ': 'UTC'}}")
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str):
            raise TypeError(f"env has the name {name!r}: write {str(name)!r}")
        start, equals, _ = name.partition("=")
        if equals or not name:
            raise ValueError(
                f"env has the name {start + (equals and '=…')!r}: write names and values like {{'TZ': 'UTC'}}"
            )
        match value:
            case str():
                continue
            case None:
                problem = "None: write '' to empty the variable"
            case int() | float():
                problem = f"{value!r}: write {str(value)!r}"
            case _:
                problem = f"of type {type(value).__name__}: write its value as a text"
        raise TypeError(f"env[{name!r}] is {problem}")


def check_names(option: str, names: object) -> None:
    """Check names of tools (`tools`) or skills (`skills`). cc-messages refuses a single text."""
    example = "['Read', 'Bash(git *)']" if option == "tools" else "['pdf']"
    if not isinstance(names, Collection) or isinstance(names, Mapping | bytes):
        corrected = [*cast("Mapping[object, object]", names)] if isinstance(names, Mapping) else example
        raise TypeError(f"{option}={names!r} is not a list of names: write {option}={corrected}")
    for name in cast("Collection[object]", names):
        if not isinstance(name, str):
            raise TypeError(f"{option} has {name!r}, which is not a name: write texts, such as {option}={example}")
        if option == "tools" and name.lower() in _GROUPS:
            raise ValueError(f"{name!r} is not a tool: write each tool, such as tools={example}; all others are denied")
        if option == "tools" and name.endswith("()"):
            raise ValueError(f"{name!r} is a rule without a pattern: write {name[:-2]!r} to allow all calls")


def checked_model_name(model_name: object) -> str:
    """Return a model name without `claude-code:`."""
    example = "write a model id or an alias, such as 'claude-sonnet-5' or 'sonnet'"
    if not isinstance(model_name, str):
        raise TypeError(f"model_name={model_name!r} is not a text: {example}")
    name = model_name.removeprefix(PREFIX)
    provider, colon, rest = name.partition(":")
    model = rest if colon and provider in _providers() else name.strip()
    if model and model == name:
        return name
    if "claude" in model or (model and not colon):
        example = f"write {model!r}"
    raise ValueError(f"model_name={model_name!r} is not a name of a Claude model: {example}")


@cache
def _providers() -> frozenset[str]:
    """Return the providers in pydantic-ai's model ids, such as `anthropic`."""
    return frozenset(str(name).partition(":")[0] for name in get_args(KnownModelName.__value__)) | {PREFIX[:-1]}
