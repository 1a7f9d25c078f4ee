import pytest

import cc_loopback


def test_every_public_name_is_there() -> None:
    for name in cc_loopback.__all__:
        assert getattr(cc_loopback, name) is not None


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="'cc_loopback' has no attribute 'Server'"):
        print(getattr(cc_loopback, "Server"))  # noqa: B009
