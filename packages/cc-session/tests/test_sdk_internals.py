"""Notices changes in the private parts of the SDK that `sdk.py` touches. SES-78."""

import inspect
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from anyio.abc import Process
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport, client
from claude_agent_sdk._errors import MessageParseError as SDKMessageParseError
from claude_agent_sdk._internal import query
from claude_agent_sdk._internal.sdk_mcp_bridge import SdkMcpBridge
from claude_agent_sdk._internal.transport import subprocess_cli
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

import cc_session
from cc_session import Session
from cc_session.process.cli_process import CLIProcess
from cc_session.process.sdk_errors import translated
from cc_session.process.sdk_messages import QUESTIONS
from cc_types import CLIConnectionError, ControlTimeoutError, MessageParseError

from .conftest import FakeCLI


def test_one_module_alone_touches_private_parts_of_the_sdk() -> None:
    folder = Path(cc_session.__file__).parent
    private = re.compile(r"claude_agent_sdk\._[a-z]|\._query\b")
    users = [path for path in folder.rglob("*.py") if private.search(path.read_text("utf-8"))]
    assert users == [folder / "sdk.py"]


async def nothing() -> AsyncIterator[dict[str, Any]]:
    return
    yield {}


async def test_the_transport_has_its_process_and_the_reader_of_stderr(fake_cli: FakeCLI) -> None:
    lines: list[str] = []
    options = fake_cli("print('first\\nsecond', file=sys.stderr)")
    options.stderr = lines.append
    transport = SubprocessCLITransport(prompt=nothing(), options=options)
    assert (transport._process, transport._stderr_task) == (None, None)  # pyright: ignore[reportPrivateUsage]

    await transport.connect()

    process = transport._process  # pyright: ignore[reportPrivateUsage]
    assert isinstance(process, Process)
    assert process in subprocess_cli._ACTIVE_CHILDREN  # pyright: ignore[reportPrivateUsage]
    assert process.stdout is not None
    assert transport._stderr_task is not None  # pyright: ignore[reportPrivateUsage]
    await transport._stderr_task.wait()  # pyright: ignore[reportPrivateUsage]
    assert lines == ["first", "second"]
    await transport.close()
    assert transport._process is None  # pyright: ignore[reportPrivateUsage]
    assert process not in subprocess_cli._ACTIVE_CHILDREN  # pyright: ignore[reportPrivateUsage]


def test_the_cli_process_hides_no_part_of_the_transport_that_it_extends() -> None:
    """Except the three methods that it overrides."""
    transport = SubprocessCLITransport(prompt=nothing(), options=ClaudeAgentOptions())
    parts = {name for name in dir(transport) if not name.startswith(("__", "_abc_"))}
    assert parts & vars(CLIProcess).keys() == {"close", "connect", "read_messages"}
    assert not parts & {*CLIProcess.__init__.__code__.co_names}


def test_the_transport_the_client_and_the_options_have_the_expected_parts() -> None:
    """So `Link` sees all frames."""
    assert issubclass(SubprocessCLITransport, Transport)
    assert [*inspect.signature(SubprocessCLITransport).parameters] == ["prompt", "options"]
    assert [*inspect.signature(ClaudeSDKClient).parameters] == ["options", "transport"]
    assert Transport.__abstractmethods__ == {
        "close", "connect", "end_input", "is_ready", "read_messages", "write",
    }  # fmt: skip
    for setting in ("permission_prompt_tool_name", "mcp_servers", "settings", "extra_args", "env"):
        assert hasattr(ClaudeAgentOptions(), setting)


def test_the_parser_s_error_is_in_its_private_module() -> None:
    """As soon as the SDK exports it, `sdk.py` can take it from there."""
    assert issubclass(SDKMessageParseError, claude_agent_sdk.ClaudeSDKError)
    assert not hasattr(claude_agent_sdk, "MessageParseError")


def test_an_answer_of_the_sdk_begins_with_the_id_of_the_request() -> None:
    """So that `process/observer.py` recognizes it."""
    source = inspect.getsource(query.Query)
    assert '"type": "control_response",\n                "response": {\n' in source
    assert source.count('"request_id": request_id,') >= 3


async def test_the_errors_of_the_sdk_are_of_the_kinds_that_are_translated(fake_cli: FakeCLI) -> None:
    """A message that lacks a field."""
    options = fake_cli("initialize()\nfor frame in frames(): send(type='result')")
    async with await Session.open(options) as session:
        with pytest.raises(MessageParseError) as raised:
            await session.add_user("Hello.")
        assert raised.value.data == {"type": "result"}


def test_an_unanswered_sdk_request_is_recognized_by_its_text() -> None:
    """The SDK waits for `initialize` a minute at least, and stops before us if our limit is longer."""
    assert 'f"Control request timeout: {request.get(' in inspect.getsource(query)
    with pytest.raises(ControlTimeoutError) as raised, translated():
        raise Exception("Control request timeout: initialize")
    assert (raised.value.subtype, raised.value.seconds) == ("initialize", 60.0)


def test_an_error_without_text_is_reported_by_the_name_of_its_cause() -> None:
    """SES-71."""
    with pytest.raises(CLIConnectionError, match=r"^Failed to start Claude Code: NotImplementedError, without a"):
        with translated():
            raise claude_agent_sdk.CLIConnectionError("Failed to start Claude Code: ") from NotImplementedError()
    with pytest.raises(CLIConnectionError, match=r"^Claude Code cannot be used: ConnectionResetError, without"):
        with translated():
            raise ConnectionResetError


async def test_the_table_of_servers_of_this_process_is_where_it_is_joined() -> None:
    """So `mcp_bridges()` gives the table: entries get each message, and are closed with the client."""
    assert "self._sdk_mcp_bridges.get(server_name)" in inspect.getsource(query)
    assert "for bridge in self._sdk_mcp_bridges.values():" in inspect.getsource(query)
    assert [*inspect.signature(SdkMcpBridge).parameters] == ["name", "server"]
    assert inspect.iscoroutinefunction(SdkMcpBridge.handle)
    assert inspect.iscoroutinefunction(SdkMcpBridge.aclose)
    assert ClaudeSDKClient()._query is None  # pyright: ignore[reportPrivateUsage]


async def test_the_client_calls_a_hook_by_its_id_in_a_public_table(own_session: Session) -> None:
    """So `add_hook()` adds the hook that answers questions."""
    sdk_client = own_session._core.link.client  # pyright: ignore[reportPrivateUsage]
    sdk_query = sdk_client._query  # pyright: ignore[reportPrivateUsage]
    assert sdk_query is not None
    assert QUESTIONS in sdk_query.hook_callbacks
    assert "callback = self.hook_callbacks.get(callback_id)" in inspect.getsource(query)
    assert query._convert_hook_output_for_cli({"action": "x"}) == {"action": "x"}  # pyright: ignore[reportPrivateUsage]


def test_a_server_of_the_mcp_package_has_a_low_level_one() -> None:
    """For `low_level_server()`; the SDK accepts no other."""
    assert isinstance(MCPServer("x")._lowlevel_server, Server)  # pyright: ignore[reportPrivateUsage]


def test_the_client_warns_of_permission_callbacks_by_its_options_alone() -> None:
    """So entries removed for a policy have no effect."""
    source = inspect.getsource(client) + inspect.getsource(query)
    for name in ("permission_mode", "allowed_tools"):
        assert f"options.{name}" not in source
