"""The pure parts of scripts/pin.py: from a lock to pins, and the blocks in pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from pin import (
    BUILD_BLOCK,
    WORKSPACE_BLOCK,
    PinError,
    Pins,
    differences,
    parse_arguments,
    pins_of_lock,
    read_block,
    read_pins,
    released,
    replace_block,
    replace_pins,
)

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


def package(name: str, version: str, source: str = "registry", markers: list[str] | None = None) -> dict[str, Any]:
    written = {} if markers is None else {"resolution-markers": markers}
    return {"name": name, "version": version, "source": {source: "https://index.test/simple"}, **written}


def test_registry_packages_become_exact_pins_in_the_order_of_their_names() -> None:
    lock = {"package": [package("jsonschema-specifications", "2"), package("jsonschema", "4.26.0"), package("a", "1")]}

    assert pins_of_lock(lock) == ["a==1", "jsonschema==4.26.0", "jsonschema-specifications==2"]


@pytest.mark.parametrize("source", ["editable", "virtual", "directory", "git", "path", "url"])
def test_what_comes_from_elsewhere_has_no_pin(source: str) -> None:
    assert pins_of_lock({"package": [package("a", "1", source)]}) == []


def test_lock_without_packages_has_no_pins() -> None:
    assert pins_of_lock({"version": 1}) == []


def test_versions_of_a_fork_carry_where_they_apply() -> None:
    old = package("a", "1", markers=["python_version < '3.12'"])
    new = package("a", "2", markers=["python_version == '3.12'", "python_version > '3.12'"])

    assert pins_of_lock({"package": [new, old]}) == [
        "a==1 ; (python_version < '3.12')",
        "a==2 ; (python_version == '3.12') or (python_version > '3.12')",
    ]


def test_fork_that_does_not_say_where_it_applies_is_refused() -> None:
    with pytest.raises(PinError, match="several versions of a "):
        pins_of_lock({"package": [package("a", "1"), package("a", "2")]})


def test_pins_are_read_from_their_blocks_alone() -> None:
    assert read_pins(TEXT) == Pins(["a==1", "b==2 ; sys_platform == 'win32'"], [])


@pytest.mark.parametrize("pins", [Pins([], []), Pins(["c==3"], ["d==4 ; os_name == 'nt'", "e==5"])])
def test_replaced_pins_read_back_and_leave_the_rest_byte_for_byte(pins: Pins) -> None:
    replaced = replace_pins(TEXT, pins)

    assert read_pins(replaced) == pins
    assert replace_pins(replaced, read_pins(TEXT)) == TEXT
    assert tomllib.loads(replaced)["tool"]["uv"]["constraint-dependencies"] == ["by-hand<2", *pins.workspace]


def test_replacing_keeps_the_line_ends_of_the_file() -> None:
    replaced = replace_block(TEXT.replace("\n", "\r\n"), WORKSPACE_BLOCK, ["c==3", "d==4"])

    assert re.findall(r"(?<!\r)\n", replaced) == []
    assert read_block(replaced, WORKSPACE_BLOCK) == ["c==3", "d==4"]


@pytest.mark.parametrize(
    "broken",
    [
        TEXT.replace("# pins of the build: end", ""),
        TEXT.replace("# pins of the build: begin", ""),
        TEXT + "# pins of the build: end\n",
        "# pins of the build: end\n# pins of the build: begin\n",
    ],
)
def test_block_without_its_two_marks_is_refused(broken: str) -> None:
    with pytest.raises(PinError, match="pins of the build: begin"):
        replace_block(broken, BUILD_BLOCK, [])


def test_released_pins_are_gone_and_the_others_stay() -> None:
    pins = Pins(["a==1", "b-c==2", "b-c-d==2"], ["a==1", "e==5"])

    assert released(pins, {"a", "b-c"}) == Pins(["b-c-d==2"], ["e==5"])
    assert released(pins, None) == Pins([], [])
    assert released(pins, set()) == pins


def test_differences_name_both_sides_and_the_block() -> None:
    assert differences(Pins(["a==1", "b==1"], []), Pins(["a==1", "b==2"], ["c==3"])) == [
        "workspace: - b==1",
        "workspace: + b==2",
        "build: + c==3",
    ]


def test_spelling_of_a_marker_is_no_difference() -> None:
    assert differences(Pins(["a==1 ; (x > '3.12')"], []), Pins(["a==1 ; (x > '3.12' and y) or (not y)"], [])) == []


@pytest.mark.parametrize(
    ("words", "upgrade", "check"),
    [
        ([], None, False),
        (["--check"], None, True),
        (["--upgrade"], [], False),
        (["--upgrade", "a", "b"], ["a", "b"], False),
    ],
)
def test_command_line(words: list[str], upgrade: list[str] | None, check: bool) -> None:
    arguments = parse_arguments(words)

    assert (arguments.upgrade, arguments.check) == (upgrade, check)
