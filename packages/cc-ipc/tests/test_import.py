"""The cost of an import of the bridge."""

import json
import subprocess
import sys


def test_importing_the_package_of_the_bridge_loads_nothing_else() -> None:
    """IPC-P-31, IPC-R-09: running the bridge imports the package first."""
    script = (
        "import sys, json; before = set(sys.modules); import cc_ipc_bridge; "
        "print(json.dumps(list(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=20)
    assert set(json.loads(run.stdout)) == {"cc_ipc_bridge"}
