"""scripts/check_durable.py, as far as it is pure, and the input files."""

from pathlib import Path

from check_durable import OVERRIDES, PINS, UNREACHABLE, merged, read_requirements
from workspace import required_name


def test_comments_and_empty_lines_are_no_requirements(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("# of use\n\na==1  # because\nb==2 ; python_version < '3.13'\n", encoding="utf-8")

    assert read_requirements(path) == ["a==1", "b==2 ; python_version < '3.13'"]


def test_each_engine_has_one_exact_version() -> None:
    pins = read_requirements(PINS)
    names = [required_name(pin) for pin in pins]

    assert all("==" in pin for pin in pins)
    assert sorted(set(names)) == names
    assert {"dbos", "prefect", "temporalio"} <= set(names)


def test_overrides_are_pinned() -> None:
    names = {required_name(pin) for pin in read_requirements(PINS)}
    assert {required_name(override) for override in read_requirements(OVERRIDES)} <= names


def test_a_pin_of_the_engines_replaces_that_of_the_workspace() -> None:
    assert merged(["a==1", "b==1 ; python_version < '3.13'"], ["b==2", "c==3"]) == ["a==1", "b==2", "c==3"]


def test_no_file_of_requirements_names_an_index() -> None:
    for path in (PINS, OVERRIDES, PINS.with_suffix(".in")):
        assert "://" not in path.read_text(encoding="utf-8")


def test_only_an_unreachable_index_skips_the_check() -> None:
    assert UNREACHABLE.search("Caused by: dns error: failed to lookup address information")
    assert UNREACHABLE.search("error: Failed to fetch\n  Caused by: error sending request for url")
    assert not UNREACHABLE.search("Because there is no version of dbos==99 and you require dbos==99")
