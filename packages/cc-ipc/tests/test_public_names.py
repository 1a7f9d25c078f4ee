"""The names that the package exports, and what an import of the bridge costs."""

import json
import subprocess
import sys

import cc_ipc

FIXED = """
    BridgeStartupError DEFAULT_TRANSPORT FrameDecoder IPCClient IPCConnectionError IPCError IPCMessageSizeError
    IPCServer IPCSession IPCToolExecutionError LENGTH_PREFIX_SIZE MAX_MESSAGE_SIZE SOCKET_PERMISSIONS
    ToolHandler ToolSchema TransportType encode_frame
""".split()
FURTHER = """
    CurrentCall END_OF_STREAM Frame LocalProtocolError NEED_DATA RemoteProtocolError ToolNotFoundError
    ToolResult TransportChoice TransportUnavailableError check_bridge current_call resolve_transport
""".split()


def test_the_package_exports_these_names_and_no_others() -> None:
    """ARCH-28."""
    assert sorted(cc_ipc.__all__) == sorted([*FIXED, *FURTHER])
    assert all(getattr(cc_ipc, name) is not None for name in cc_ipc.__all__)


def test_importing_the_package_of_the_bridge_loads_nothing_else() -> None:
    """IPC-P-31, IPC-R-09: running the bridge imports the package first."""
    script = (
        "import sys, json; before = set(sys.modules); import cc_ipc_bridge; "
        "print(json.dumps(list(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=20)
    assert set(json.loads(run.stdout)) == {"cc_ipc_bridge"}
