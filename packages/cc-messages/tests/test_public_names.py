"""The package's names, and the one that stands in a package above."""

import sys

import pytest

import cc_messages


def test_the_servers_name_says_which_package_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-40."""
    monkeypatch.setitem(sys.modules, "cc_server", None)
    with pytest.raises(ImportError, match=r"create_app\(\) is in the package cc-server: pip install cc-server"):
        getattr(cc_messages, "create_app")  # noqa: B009  the type checker knows that the name is not declared


def test_other_names_are_missing_as_usual() -> None:
    assert not hasattr(cc_messages, "create_application")
