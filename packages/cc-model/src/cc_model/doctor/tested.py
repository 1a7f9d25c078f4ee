"""The versions of the CLI that are exact with each login, oldest first; written by `scripts/check_cli_versions.py`."""

__all__ = ["TESTED_CLIS"]

TESTED_CLIS = (
    "2.1.139",
    "2.1.176",
    "2.1.191",
    "2.1.211",
    "2.1.214",
    "2.1.235",
    "2.1.275",
    "2.1.306",
    "2.1.329",
    "2.1.332",
)
