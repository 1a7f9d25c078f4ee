"""scripts/pin.py, as far as it is pure: the blocks in pyproject.toml, and their pins."""

import tomllib

import pytest

from pin import replace_block

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


@pytest.mark.parametrize("pins", [[], ["c==3", "d==4 ; os_name == 'nt'"]])
def test_replaced_pins_read_back_and_leave_the_rest_byte_for_byte(pins: list[str]) -> None:
    replaced, before = replace_block(TEXT, "workspace", pins)

    assert before == ["a==1", "b==2 ; sys_platform == 'win32'"]
    assert replace_block(replaced, "workspace", before) == (TEXT, pins)
    assert tomllib.loads(replaced)["tool"]["uv"]["constraint-dependencies"] == ["by-hand<2", *pins]
