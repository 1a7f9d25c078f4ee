"""What the package offers, and what its import costs."""

import json
import subprocess
import sys

import pytest

import cc_ipc

FIXED = """
    BridgeStartupError DEFAULT_TRANSPORT FrameDecoder IPCClient IPCConnectionError IPCError IPCMessageSizeError
    IPCServer IPCSession IPCToolExecutionError LENGTH_PREFIX_SIZE MAX_MESSAGE_SIZE SOCKET_PERMISSIONS
    ToolHandler ToolSchema TransportType encode_frame
""".split()


def test_every_public_name_can_be_had() -> None:
    assert set(cc_ipc.__all__) >= set(FIXED)
    assert len(set(cc_ipc.__all__)) == len(cc_ipc.__all__)
    assert all(getattr(cc_ipc, name) is not None for name in cc_ipc.__all__)
    assert set(cc_ipc.__all__) <= set(dir(cc_ipc))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        cc_ipc.nope  # type: ignore[attr-defined] # noqa: B018


def test_importing_the_package_loads_nothing_else() -> None:
    """IPC-P-31, IPC-R-09: running the bridge imports the package first."""
    script = (
        "import sys, json; before = set(sys.modules); import cc_ipc; print(json.dumps(list(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=20)
    assert set(json.loads(run.stdout)) == {"cc_ipc"}
