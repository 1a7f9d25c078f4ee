"""The type for structured answers."""

from pydantic import BaseModel


class City(BaseModel):
    """A city."""

    name: str
    people: int
