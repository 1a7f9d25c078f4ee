"""Base class and field types for the wire format: frozen, read by either name, unknown fields kept."""

from typing import Annotated, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic.fields import FieldInfo


class WireModel(BaseModel):
    """A value that the CLI sends.

    Fields are read under their Python name or the CLI's, and written under the CLI's. Unknown fields are kept in
    `model_extra` and written back.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="allow", frozen=True, serialize_by_alias=True, validate_by_name=True
    )
    # pydantic looks here for the type of unknown fields; the base class declares it with `Any`.
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)  # pyright: ignore[reportIncompatibleVariableOverride]


def null_as(default: object) -> BeforeValidator:
    """Return a validator that reads `null` as `default`."""
    return BeforeValidator(lambda value: default if value is None else value)


Count = Annotated[int, null_as(0), Field(ge=0)]
"""A count. The API writes `null` where nothing was counted; that is read as 0."""

USDollars = Annotated[float, Field(allow_inf_nan=False)]
"""An amount in US dollars."""


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {
            _without_surrogates(key): _without_surrogates(member)
            for key, member in cast("dict[object, object]", value).items()
        }
    if isinstance(value, list):
        return [_without_surrogates(member) for member in cast("list[object]", value)]
    return value


Whole: BeforeValidator = BeforeValidator(_without_surrogates)
"""Text without lone surrogates: JavaScript can cut a string inside a character, and such text cannot be encoded."""

JsonObject = Annotated[dict[str, JsonValue], Whole]
"""A JSON object from the model or from a tool, with any content."""


def on_the_wire(name: str) -> FieldInfo:
    """Declare a field name in the CLI. Not with `alias=`, which would hide the Python name from type checkers."""
    return FieldInfo(validation_alias=name, serialization_alias=name)
