"""List of models, `/v1/models`: the models that Claude Code lists, as the API would list them.

A few models have an alias, each with the id; clients can request both. Claude Code has no dates and limits, so those
fields are absent: the official client returns None for them.
"""

from collections.abc import Mapping, Sequence

from cc_types import APIError, JsonValue

from .response import invalid

Model = dict[str, JsonValue]

_DEFAULT_LIMIT = "20"
_MAX_LIMIT = 1000


def catalogue(listed: JsonValue) -> list[Model]:
    """Return the models in a CLI's `initialize` answer: first the aliases, then their ids."""
    aliases: dict[str, Model] = {}
    ids: dict[str, Model] = {}
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or not isinstance(alias := entry.get("value"), str):
            continue
        name, stands_for = str(entry.get("displayName") or alias), entry.get("resolvedModel")
        aliases[alias] = _model(alias, name)
        if isinstance(stands_for, str):
            # An alias such as `default` is not a name for the model itself.
            ids.setdefault(stands_for, _model(stands_for, stands_for))
    return [*aliases.values(), *(model for name, model in ids.items() if name not in aliases)]


def resolve(listed: JsonValue, name: str) -> str:
    """Return the model id for an id or an alias."""
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, dict) and entry.get("value") == name:
            return str(entry.get("resolvedModel") or name)
    return name


def find(models: Sequence[Model], name: str) -> Model:
    """Return the model with an id or an alias."""
    for model in models:
        if model["id"] == name:
            return model
    raise APIError(status=404, message=f"model: {name}")


def page(models: Sequence[Model], query: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the page that `limit`, `after_id` and `before_id` select."""
    text = query.get("limit", _DEFAULT_LIMIT)
    if not text.isdecimal() or not 1 <= (limit := int(text)) <= _MAX_LIMIT:
        raise invalid(f"limit: must be a number from 1 to {_MAX_LIMIT}")
    ids = [model["id"] for model in models]
    for field in {"after_id", "before_id"} & query.keys():
        if query[field] not in ids:
            raise invalid(f"{field}: there is no model {query[field]!r}")
    if "before_id" in query:
        rest = models[: ids.index(query["before_id"])]
        chosen = rest[-limit:]
    else:
        rest = models[ids.index(query["after_id"]) + 1 :] if "after_id" in query else models
        chosen = rest[:limit]
    return {
        "data": [*chosen],
        "has_more": len(rest) > len(chosen),
        "first_id": chosen[0]["id"] if chosen else None,
        "last_id": chosen[-1]["id"] if chosen else None,
    }


def _model(identity: str, name: str) -> Model:
    return {"type": "model", "id": identity, "display_name": name, "lifecycle": "active"}
