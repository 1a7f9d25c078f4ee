"""Type for any JSON value: pydantic's own alias, so that nested values are validated as well."""

from pydantic import JsonValue

__all__ = ["JsonValue"]
