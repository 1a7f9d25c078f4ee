"""The command line of `cc-demo`, up to where it would start."""

import sys

import pytest

from cc_model.demo import main


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("option", ["--model", "--prompt"])
@pytest.mark.parametrize("value", ["", "  "])
def test_empty_text_is_refused(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"argument {option}: must not be empty" in refused(capsys, option, value)


def test_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unrecognized arguments: --online" in refused(capsys, "--online")


def test_offline_and_login_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert "not allowed with argument --offline" in refused(capsys, "--offline", "--login")


def test_help_names_every_option_and_the_default_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    for option in ("--prompt", "--model", "--offline", "--login", "--debug", "--version"):
        assert option in output
    assert "claude-sonnet-5" in output


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("cc-demo 0.")


def test_missing_extra_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["--offline"]) == 1
    assert 'pip install "cc-model[demo]"' in capsys.readouterr().err
