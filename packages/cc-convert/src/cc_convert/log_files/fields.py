"""The relevant fields in a record, their types, and the conversion of any record to this form.

The fast decoder accepts only records in this form; all others are cleaned. So later code can rely on every
field.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Record: TypeAlias = dict[str, Any]
"""An object in a log, by field."""
_Schema: TypeAlias = dict[str, object]
_PACKAGE = "pydantic_core"
_EXTENSION = "pydantic_core._pydantic_core"

MOST = 10**12
"""More tokens than any request can have. A larger number is a defect, which must not spoil the sums."""

_RECORD_TEXTS = (
    "type", "subtype", "sessionId", "session_id", "requestSessionId", "cwd", "timestamp", "uuid", "requestId",
    "request_id", "agentId", "agent_id", "attributionAgent", "subagent_type", "parent_tool_use_id", "gitBranch",
    "entrypoint", "version", "claude_code_version", "requestedModel", "parentUuid",
)  # fmt: skip
_STATE_VALUES = ("totalCostUSD", "totalDuration", "startTime")
TOTAL_COUNTS = (
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens",
    "cacheCreationEphemeral1hInputTokens", "thinkingTokens", "webSearchRequests",
)  # fmt: skip
_FORK_TEXTS = ("sessionId", "messageUuid")
_MESSAGE_TEXTS = ("id", "model", "stop_reason")
_BLOCK_TEXTS = ("type", "name", "id")
COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_USAGE_TEXTS = ("service_tier", "inference_geo", "speed")
_NESTED_COUNTS: Mapping[str, tuple[str, ...]] = {
    "cache_creation": ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),
    "output_tokens_details": ("thinking_tokens",),
    "server_tool_use": ("web_search_requests",),
}


def validator_class() -> "type[SchemaValidator]":
    """Return `pydantic_core.SchemaValidator`.

    Importing the package also imports the Python functions that build schemas, in four times the time: 35 ms, a third
    of a report over small logs. A schema is a plain dict.
    """
    if _PACKAGE not in sys.modules and _EXTENSION not in sys.modules:
        package = find_spec(_PACKAGE)
        spec = PathFinder.find_spec(_EXTENSION, package.submodule_search_locations) if package else None
        if spec and spec.loader:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            # A later package import uses the same module.
            sys.modules[_EXTENSION] = module
    if _EXTENSION in sys.modules:
        return cast("type[SchemaValidator]", sys.modules[_EXTENSION].SchemaValidator)
    # Installed in another form, such as an archive.
    from pydantic_core import SchemaValidator

    return SchemaValidator


@cache
def fast_decoder() -> Callable[[bytes | bytearray], Record]:
    """Return the function that decodes a record's relevant fields, without content; `ValueError` for an unusual record.

    Measured against msgspec, which skips unrequested fields but also accepts invalid UTF-8: with a check for that,
    msgspec is no faster on short lines and slower on long ones.
    """
    return _validator("record", tolerant=False).validate_json


@cache
def _validator(part: str, *, tolerant: bool) -> "SchemaValidator":
    """Return the validator for a part; if tolerant, an invalid count is 0, and other invalid values are left out."""
    usable: _Schema = {"type": "default", "on_error": "omit"} if tolerant else {"type": "nullable"}
    number: _Schema = {"type": "int", "strict": True, "ge": 0, "le": MOST}
    if tolerant:
        number = {"type": "function-plain", "function": {"type": "no-info", "function": count}}
    zero: _Schema = {"default": 0} if tolerant else {}

    def optional(schema: _Schema, **more: object) -> _Schema:
        return {"type": "typed-dict-field", "schema": {**usable, "schema": schema, **more}, "required": False}

    def fields(members: dict[str, _Schema]) -> _Schema:
        return {"type": "typed-dict", "fields": members, "extra_behavior": "ignore", "strict": True}

    text, counted = optional({"type": "str", "strict": True}), optional(number, **zero)
    cost = optional({"type": "float", "strict": True, "ge": 0, "le": MOST, "allow_inf_nan": False})
    nested = {name: optional(fields(dict.fromkeys(names, counted))) for name, names in _NESTED_COUNTS.items()}
    usage = fields(
        {**dict.fromkeys(COUNTS, counted), **dict.fromkeys(_USAGE_TEXTS, text), **nested}
        | {"iterations": optional({"type": "list", "strict": True})}
    )
    message = dict.fromkeys(_MESSAGE_TEXTS, text) | {"usage": optional(usage)}
    total = fields(dict.fromkeys(TOTAL_COUNTS, optional(number)) | {"costUSD": cost})
    if tolerant:
        block = {**usable, "schema": fields(dict.fromkeys(_BLOCK_TEXTS, text))}
        message["content"] = optional({"type": "list", "strict": True, "items_schema": block})
        total = {**usable, "schema": total}
    totals: _Schema = {"type": "dict", "strict": True, "values_schema": total}
    record = dict.fromkeys(_RECORD_TEXTS, text) | {"message": optional(fields(message)), "costUSD": cost}
    record |= {"forkedFrom": optional(fields(dict.fromkeys(_FORK_TEXTS, text)))}
    record |= {"isApiErrorMessage": optional({"type": "bool", "strict": True})}
    # Of `cost-state`, the CLI total.
    record |= dict.fromkeys(_STATE_VALUES, optional({"type": "any"})) | {"modelUsage": optional(totals)}
    schema = {"record": fields(record), "usage": usage, "totals": totals}[part]
    # Only pydantic's core: building models would take longer than reading a small log.
    return validator_class()(cast("Any", schema))


def count(value: object) -> int:
    """Return a value as a count; 0 if it is not a count."""
    if type(value) is int:
        return value if 0 <= value <= MOST else 0
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and 0 <= value <= MOST else 0


def checked_record(record: Record) -> tuple[Record, str | None]:
    """Return a record with valid fields only, and the name of an invalid count, if there is one."""
    checked: Record = _validator("record", tolerant=True).validate_python(record)
    if "timestamp" not in checked and (moment := _from_number(record.get("timestamp"))):
        checked["timestamp"] = moment
    usage = checked["message"].get("usage") if "message" in checked else None
    return checked, None if usage is None else _odd_count(record["message"]["usage"], usage)


def checked_usage(usage: Record) -> tuple[Record, str | None]:
    """Return a usage with numbers as counts, and the name of an invalid count, if there is one."""
    checked: Record = _validator("usage", tolerant=True).validate_python(usage)
    return checked, _odd_count(usage, checked)


def checked_totals(usage: object) -> dict[str, Record]:
    """Return any `modelUsage` with numbers as counts and costs."""
    return _validator("totals", tolerant=True).validate_python(usage) if isinstance(usage, dict) else {}


def _odd_count(usage: Record, checked: Record) -> str | None:
    return next((name for name in COUNTS if usage.get(name) is not None and checked[name] != usage[name]), None)


def _from_number(value: object) -> str | None:
    """Return a timestamp from a number, in seconds or in milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    seconds = value / 1000 if value > 1e11 else value
    return datetime.fromtimestamp(seconds, UTC).isoformat()
