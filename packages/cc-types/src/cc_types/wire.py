"""How every value off the wire is read and written: by either name, frozen, and with what it does not know kept."""

from typing import Annotated, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo

from .json_value import JsonValue

__all__ = ["Count", "JsonObject", "USDollars", "Whole", "WireModel", "on_the_wire"]


class WireModel(BaseModel):
    """A value that the CLI sends.

    Fields are accepted under their Python name and under the CLI's, and written under the CLI's. A field that this
    version does not know is kept in `model_extra` and written back.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", frozen=True, serialize_by_alias=True, validate_by_name=True
    )
    # The place where pydantic looks for the type of unknown fields; the base class declares it with `Any`.
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]


def _zero_if_null(value: object) -> object:
    return 0 if value is None else value


Count = Annotated[int, BeforeValidator(_zero_if_null), Field(ge=0)]
"""How many of something. The API writes `null` where nothing was counted; that is 0."""

USDollars = Annotated[float, Field(allow_inf_nan=False)]
"""An amount of money, in US dollars."""


def _whole(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(member) for key, member in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_whole(member) for member in cast("list[object]", value)]
    return value


Whole: BeforeValidator = BeforeValidator(_whole)
"""Whole characters only. Half of one, as cutting a JavaScript string leaves it, can be read but never written again."""

JsonObject = Annotated[dict[str, JsonValue], Whole]
"""An object of JSON that came from the model or from a tool, so that anything may be in it."""


def on_the_wire(name: str) -> FieldInfo:
    """The CLI's name for a field. Not `alias=`, which would take the Python name away from type checkers."""
    return FieldInfo(validation_alias=name, serialization_alias=name)
