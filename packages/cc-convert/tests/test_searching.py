"""Search in bytes, with vector instructions and without."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_convert.log_files.scan import finders, plain_finders

letters = st.binary(max_size=300).map(lambda data: bytes(byte % 3 for byte in data))


@given(st.data())
def test_both_searches_find_the_same_places(data: st.DataObject) -> None:
    """LOG-54: so the extra `fast` changes only a report's speed."""
    pytest.importorskip("stringzilla")
    content = bytearray(data.draw(letters))
    needle = data.draw(letters.filter(bool))[:5]
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, len(content)))

    places = [[find(needle, start, stop) for find in both(content)] for both in (finders, plain_finders)]

    assert finders is not plain_finders
    assert places[0] == places[1]
