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

__all__ = [
    "COUNTS", "MOST", "TOTAL_COUNTS", "Record", "clean_record", "clean_totals", "clean_usage", "count", "fast_decoder",
    "validator_class",
]  # fmt: skip

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
    "entrypoint", "version", "claude_code_version", "requestedModel",
)  # fmt: skip
_STATE_VALUES = ("totalCostUSD", "totalDuration", "startTime")
TOTAL_COUNTS = (
    "inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens",
    "cacheCreationEphemeral1hInputTokens", "thinkingTokens", "webSearchRequests",
)  # fmt: skip
_FORK_TEXTS = ("sessionId",)
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

    def optional(schema: _Schema) -> _Schema:
        return {"type": "typed-dict-field", "schema": {"type": "nullable", "schema": schema}, "required": False}

    def fields(members: dict[str, _Schema]) -> _Schema:
        return {"type": "typed-dict", "fields": members, "extra_behavior": "ignore"}

    text, number = optional({"type": "str"}), optional({"type": "int", "strict": True, "ge": 0, "le": MOST})
    nested = {name: optional(fields(dict.fromkeys(names, number))) for name, names in _NESTED_COUNTS.items()}
    usage = fields(
        {**dict.fromkeys(COUNTS, number), **dict.fromkeys(_USAGE_TEXTS, text), **nested}
        | {"iterations": optional({"type": "list"})}
    )
    message = fields(dict.fromkeys(_MESSAGE_TEXTS, text) | {"usage": optional(usage)})
    record = dict.fromkeys(_RECORD_TEXTS, text) | {"message": optional(message)}
    record |= {"forkedFrom": optional(fields(dict.fromkeys(_FORK_TEXTS, text)))}
    record |= {"isApiErrorMessage": optional({"type": "bool", "strict": True})}
    cost: _Schema = {"type": "float", "strict": True, "ge": 0, "le": MOST, "allow_inf_nan": False}
    record |= {"costUSD": optional(cost)}
    total = fields(dict.fromkeys(TOTAL_COUNTS, number) | {"costUSD": optional(cost)})
    # Of `cost-state`, the CLI's own total.
    record |= dict.fromkeys(_STATE_VALUES, optional({"type": "any"}))
    record |= {"modelUsage": optional({"type": "dict", "keys_schema": {"type": "str"}, "values_schema": total})}
    # Only pydantic's core: building models would take longer than reading a small log.
    return validator_class()(cast("Any", fields(record))).validate_json


def count(value: object) -> int:
    """Return a value as a count; 0 if it is not a count."""
    if type(value) is int:
        return value if 0 <= value <= MOST else 0
    if isinstance(value, bool):
        return int(value)
    return int(value) if isinstance(value, float) and 0 <= value <= MOST else 0


def clean_record(record: Record) -> tuple[Record, str | None]:
    """Return a record with valid fields only, and the name of an invalid count, if there is one.

    Unusable and unknown fields are left out.
    """
    clean = _texts(record, _RECORD_TEXTS)
    if "timestamp" not in clean and (moment := _from_number(record.get("timestamp"))):
        clean["timestamp"] = moment
    if record.get("isApiErrorMessage") is True:
        clean["isApiErrorMessage"] = True
    if isinstance(forked := record.get("forkedFrom"), dict):
        clean["forkedFrom"] = _texts(cast("Record", forked), _FORK_TEXTS)
    cost = record.get("costUSD")
    if isinstance(cost, int | float) and 0 <= cost <= MOST:
        clean["costUSD"] = float(cost)
    message, odd = record.get("message"), None
    if isinstance(message, dict):
        clean["message"], odd = _clean_message(cast("Record", message))
    return clean, odd


def _clean_message(message: Record) -> tuple[Record, str | None]:
    clean = _texts(message, _MESSAGE_TEXTS)
    content, usage, odd = message.get("content"), message.get("usage"), None
    if isinstance(content, list):
        blocks = cast("list[object]", content)
        clean["content"] = [_texts(cast("Record", block), _BLOCK_TEXTS) for block in blocks if isinstance(block, dict)]
    if isinstance(usage, dict):
        clean["usage"], odd = clean_usage(cast("Record", usage))
    return clean, odd


def clean_usage(usage: Record) -> tuple[Record, str | None]:
    """Return a usage with numbers as counts, and the name of an invalid count, if there is one."""
    clean = _texts(usage, _USAGE_TEXTS)
    clean |= {name: count(usage.get(name)) for name in COUNTS}
    odd = next((name for name in COUNTS if usage.get(name) is not None and clean[name] != usage[name]), None)
    for name, counts in _NESTED_COUNTS.items():
        nested = usage.get(name)
        if isinstance(nested, dict):
            fields = cast("Record", nested)
            clean[name] = {field: count(fields.get(field)) for field in counts}
    if isinstance(usage.get("iterations"), list):
        clean["iterations"] = usage["iterations"]
    return clean, odd


def clean_totals(usage: object) -> dict[str, Record]:
    """Return any `modelUsage` with numbers as counts and costs."""
    totals: dict[str, Record] = {}
    for model, value in cast("Record", usage).items() if isinstance(usage, dict) else ():
        if isinstance(value, dict):
            fields = cast("Record", value)
            totals[model] = {name: count(fields[name]) for name in TOTAL_COUNTS if name in fields}
            cost = fields.get("costUSD")
            if isinstance(cost, int | float) and 0 <= cost <= MOST:
                totals[model]["costUSD"] = float(cost)
    return totals


def _texts(fields: Record, names: tuple[str, ...]) -> Record:
    return {name: value for name in names if isinstance(value := fields.get(name), str)}


def _from_number(value: object) -> str | None:
    """Return a timestamp from a number, in seconds or in milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e14:
        return None
    seconds = value / 1000 if value > 1e11 else value
    return datetime.fromtimestamp(seconds, UTC).isoformat()
