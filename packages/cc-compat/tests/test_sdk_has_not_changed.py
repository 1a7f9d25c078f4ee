"""Facts about the installed SDK that the patch depends on. When a test fails, read `cc_compat.patch` again."""

import ast
import importlib
import inspect
import sys
from pathlib import Path

import claude_agent_sdk
import pytest

import cc_compat
from cc_compat.wrapper import is_wrapped

ROOT = Path(claude_agent_sdk.__file__).parent


def uses_of_the_parser() -> set[tuple[str, str]]:
    """Return every file of the SDK that names the parser, with the matching text."""
    uses: set[tuple[str, str]] = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if "parse_message" in (getattr(node, attribute, None) for attribute in ("name", "id", "attr")):
                uses.add((path.relative_to(ROOT).as_posix(), type(node).__name__))
    return uses


def test_the_sdk_uses_its_parser_in_the_known_places() -> None:
    """SDK-ADD-09: the patch may cover a new place as well, but a person should check."""
    assert uses_of_the_parser() == {
        ("_internal/message_parser.py", "FunctionDef"),
        ("_internal/client.py", "alias"),
        ("_internal/client.py", "Name"),
        ("client.py", "alias"),
        ("client.py", "Name"),
    }


def test_no_module_of_the_sdk_holds_the_bare_parser() -> None:
    """SDK-ADD-09"""
    parser = importlib.import_module("claude_agent_sdk._internal.message_parser").parse_message
    original = inspect.unwrap(parser)

    holders = [
        name
        for name, module in sys.modules.copy().items()
        if name.startswith("claude_agent_sdk")
        and original in [value for value in vars(module).values() if callable(value)]
    ]

    assert is_wrapped(parser)
    assert holders == []


def test_the_installed_sdk_is_patched_and_skips_by_itself() -> None:
    """SDK-ADD-10, SDK-US3-3, ARCH-32"""
    status = cc_compat.status()

    assert status.applied
    assert status.sdk_skips_unknown is True
    assert status.sdk_version == claude_agent_sdk.__version__
    assert status.patched == (
        "claude_agent_sdk._internal.client.parse_message",
        "claude_agent_sdk._internal.message_parser.parse_message",
    )


@pytest.mark.parametrize("phrase", ["issues/599", "before 0.1.44", "Delete it when"])
def test_the_patch_names_the_issue_the_versions_and_its_removal(phrase: str) -> None:
    """SDK-DP-4"""
    assert phrase in (importlib.import_module("cc_compat.patch").__doc__ or "")
