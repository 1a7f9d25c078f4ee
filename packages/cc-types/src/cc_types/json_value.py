"""What JSON can say, as one type: pydantic's own alias, so that a field of this type is validated all the way down."""

from pydantic import JsonValue

__all__ = ["JsonValue"]
