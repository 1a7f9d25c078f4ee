"""scripts/pin.py, as far as it is pure: the blocks in pyproject.toml, and their pins."""

import tomllib

import pytest

from pin import PinError, differences, replace_block, unmarked
from workspace import required_name

TEXT = """\
[project]   # a comment that stays
name = "x"

[tool.uv]
constraint-dependencies = [
    "by-hand<2",  # stays too
    # pins of the workspace: begin (written by a script)
    "a==1",
    "b==2 ; sys_platform == 'win32'",
    # pins of the workspace: end
]
build-constraint-dependencies = [
    # pins of the build: begin
    # pins of the build: end
]
odd   =   [ 1,2 ]
"""


def test_only_a_name_with_several_versions_keeps_its_environment_markers() -> None:
    forks = ["fork==1 ; python_full_version < '3.12'", "fork==2 ; python_full_version >= '3.12'"]

    assert unmarked(["colorama==0.4.6 ; sys_platform == 'win32'", *forks]) == ["colorama==0.4.6", *forks]


@pytest.mark.parametrize("pins", [[], ["c==3", "d==4 ; os_name == 'nt'"]])
def test_replaced_pins_read_back_and_leave_the_rest_byte_for_byte(pins: list[str]) -> None:
    replaced, before = replace_block(TEXT, "workspace", pins)

    assert before == ["a==1", "b==2 ; sys_platform == 'win32'"]
    assert replace_block(replaced, "workspace", before) == (TEXT, pins)
    assert tomllib.loads(replaced)["tool"]["uv"]["constraint-dependencies"] == ["by-hand<2", *pins]


@pytest.mark.parametrize(
    "broken",
    [
        TEXT.replace("# pins of the build: end", ""),
        TEXT.replace("# pins of the build: begin", ""),
        TEXT + "# pins of the build: end\n",
        "# pins of the build: end\n# pins of the build: begin\n",
    ],
)
def test_block_without_its_two_markers_is_rejected(broken: str) -> None:
    with pytest.raises(PinError, match="pins of the build: begin"):
        replace_block(broken, "build", [])


def test_differences_name_both_sides_and_the_block_and_ignore_environment_markers() -> None:
    assert differences("build", ["a==1", "b==1"], ["a==1", "b==2"]) == ["build: - b==1", "build: + b==2"]
    assert differences("build", ["a==1 ; x > '3.12'"], ["a==1 ; (x > '3.12' and y) or (not y)"]) == []


@pytest.mark.parametrize(
    ("requirement", "name"),
    [("cc-types>=0.1,<0.2", "cc-types"), ("Pydantic_AI.slim[anthropic]>=2", "pydantic-ai-slim"), ("a ; x == '1'", "a")],
)
def test_requirement_names_its_distribution(requirement: str, name: str) -> None:
    assert required_name(requirement) == name == required_name(name)
