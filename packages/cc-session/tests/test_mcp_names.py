"""Names of MCP servers and tools."""

import pytest

from cc_session.mcp.names import check_server_name, mcp_name, split_mcp_name


@pytest.mark.parametrize("server", ["", "a b", "a.b", "a__b", "a_", "_a", "-a", "x" * 65, "a\n"])
def test_an_ambiguous_or_changed_server_name_is_refused(server: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an MCP server"):
        check_server_name(server)


def test_other_characters_are_replaced_as_the_cli_does() -> None:
    assert mcp_name("my server", "read.file") == "mcp__my_server__read_file"


@pytest.mark.parametrize("name", ["Bash", "mcp__server", "server__tool"])
def test_other_names_have_no_server(name: str) -> None:
    assert split_mcp_name(name) is None
