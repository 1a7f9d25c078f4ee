"""The list of models for `/v1/models`, with paging."""

from collections.abc import Mapping

from .types import JsonObject

_MODELS = {
    "claude-opus-5": ("Claude Opus 5", "2026-06-01T00:00:00Z"),
    "claude-sonnet-5": ("Claude Sonnet 5", "2026-05-01T00:00:00Z"),
    "claude-haiku-4-5": ("Claude Haiku 4.5", "2025-10-01T00:00:00Z"),
}
_DEFAULT_LIMIT = 20


def model_info(model: str) -> JsonObject | None:
    """Return a model of the list, or None."""
    if model not in _MODELS:
        return None
    name, created = _MODELS[model]
    return {
        "type": "model",
        "id": model,
        "display_name": name,
        "created_at": created,
        "lifecycle": "active",
        "deprecated_at": None,
        "line": None,
        "capabilities": None,
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
    }


def model_page(query: Mapping[str, str]) -> JsonObject:
    """Return the page that `limit`, `after_id` and `before_id` select.

    Raises:
        ValueError: `limit` is not a number, or a cursor is not a model id.
    """
    names = list(_MODELS)
    limit = int(query.get("limit", _DEFAULT_LIMIT))
    for field in ("before_id", "after_id"):
        if query.get(field, names[0]) not in names:
            raise ValueError(f"{field}: there is no model {query[field]!r}")
    if before_id := query.get("before_id"):
        earlier = names[: names.index(before_id)]
        page, more = earlier[-limit:], len(earlier) > limit
    else:
        after_id = query.get("after_id")
        later_names = names[names.index(after_id) + 1 :] if after_id else names
        page, more = later_names[:limit], len(later_names) > limit
    first_id, last_id = (page[0], page[-1]) if page else (None, None)
    return {"data": [model_info(name) for name in page], "has_more": more, "first_id": first_id, "last_id": last_id}
