"""The check for prose and names, on a file with a single fault."""

from pathlib import Path

import pytest

from check_prose import main


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"""What it does."""\n', "begins with 'What'"),
        ('"""Return the end of the list of the names of all."""\n', "too often for 'of'"),
        ("# Its name, its value.\n", "too often for 'its'"),
        ("def f(found):\n    return found.told\n", "too often for 'participles'"),
        ("# They are names.\nvalue = 1  # which\n", "2: a comment begins with 'which'"),
        ('"""It is no\nlonger a tool, and is no\nnumber."""\n', "1: write 'is not …' instead of 'is no number'"),
    ],
)
def test_each_fault_is_named(text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.py"
    file.write_text(text, encoding="utf-8")
    assert main([str(file)]) == 1
    assert problem in capsys.readouterr().out
    file.write_text('"""Return a value."""\nvalue = 1\n', encoding="utf-8")
    assert main([str(file)]) == 0
