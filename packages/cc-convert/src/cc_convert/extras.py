"""Optional dependencies, and the extras that install them."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

EXTRAS = {
    "rich": "rich",
    "markdown_it": "html",
    "duckdb": "sql",
    "stringzilla": "fast",
    "distributed": "dask",
    "fsspec": "dask",
}
"""Modules, each with the extra that installs it."""


class MissingExtraError(ImportError):
    """Raised if an extra's module is not installed."""

    def __init__(self, module: str, purpose: str) -> None:
        self.module = module
        self.purpose = purpose
        command = f'pip install "cc-convert[{EXTRAS[module]}]"'
        super().__init__(f"{purpose} needs {module}, which is not installed. Install it with: {command}")


def has_extra(module: str) -> bool:
    """Return true if a module is installed."""
    return find_spec(module) is not None


def need(module: str, purpose: str) -> ModuleType:
    """Import an extra's module, or raise `MissingExtraError`, whose text begins with the purpose."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module, purpose) from error
