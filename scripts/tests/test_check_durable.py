"""scripts/check_durable.py, as far as it is pure, and the input files."""

from check_durable import OVERRIDES, PINS, read_requirements
from workspace import required_name


def test_each_engine_has_one_exact_version() -> None:
    pins = read_requirements(PINS)
    names = [required_name(pin) for pin in pins]

    assert all("==" in pin for pin in pins)
    assert sorted(set(names)) == names
    assert {"dbos", "prefect", "temporalio"} <= set(names)


def test_no_file_of_requirements_names_an_index() -> None:
    for path in (PINS, OVERRIDES, PINS.with_suffix(".in")):
        assert "://" not in path.read_text(encoding="utf-8")
