"""Names of MCP servers and tools."""

import pytest

from cc_session.mcp.names import check_server_name


@pytest.mark.parametrize("server", ["", "a b", "a.b", "a__b", "a_", "_a", "-a", "x" * 65, "a\n"])
def test_an_ambiguous_or_changed_server_name_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an MCP server"):
        check_server_name(server)
