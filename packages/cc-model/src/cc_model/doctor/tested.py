"""The versions of the CLI that are exact with each login, oldest first; written by `scripts/check_cli_versions.py`."""

__all__ = ["TESTED_CLIS"]

TESTED_CLIS = ("2.1.329",)
