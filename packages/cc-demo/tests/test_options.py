"""Command line of `cc-demo`, up to the start of the demo."""

import pytest

from cc_demo import main


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--model", ""], "argument --model: must not be empty"),
        (["--model", "  "], "argument --model: must not be empty"),
        (["--prompt", ""], "argument --prompt: must not be empty"),
        (["--prompt", "  "], "argument --prompt: must not be empty"),
        (["--online"], "unrecognized arguments: --online"),
        (["--offline", "--login"], "not allowed with argument --offline"),
    ],
)
def test_wrong_options_are_refused(options: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(options)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_help_names_every_option_and_the_default_model(capsys: pytest.CaptureFixture[str]) -> None:
    """ARCH-34."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    for option in ("--prompt", "--model", "--offline", "--login", "--debug", "--version"):
        assert option in output
    assert "claude-sonnet-5" in output


def test_version_names_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("cc-demo 0.")
