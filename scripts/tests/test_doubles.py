"""Tests run the real CLI, SDK, client and framework."""

import re

from workspace import ROOT

FOLDERS = ("packages/*/tests", "integration-tests", "scripts/tests", "examples")
# Test doubles of messages are the subject of the first one; the second one undoes a change that the demo makes.
ALLOWED = {
    ("test_mocks.py", "from unittest.mock import MagicMock"),
    ("test_failure.py", "setattr(pydantic_ai"),
}
_DOUBLE = re.compile(
    r"from unittest\.mock import (?!ANY$).*|^import (?:unittest\.)?mock|\bmocker\b"
    r"|setattr\(\s*[\"']?(?:claude_agent_sdk|anthropic|pydantic_ai)\b",
    flags=re.MULTILINE,
)


def test_nothing_of_the_cli_the_sdk_the_client_or_the_framework_is_replaced() -> None:
    """ARCH-37"""
    paths = [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py") if path.name != "test_doubles.py"]
    found = {(path.name, double) for path in paths for double in _DOUBLE.findall(path.read_text(encoding="utf-8"))}
    assert len(paths) > 100
    assert found == ALLOWED
