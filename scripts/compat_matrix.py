"""Print a table of the behaviour of five versions of claude-agent-sdk, from the oldest that runs to the newest.

    python scripts/compat_matrix.py [VERSION ...]

Each version gets an environment of its own from its source distribution, which has no CLI; a wheel is 157 MB. Needs
`uv` and an index. The table in the README of cc-compat is the output of this script.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from commands import finish, run
from workspace import ROOT, find_uv

CHECK = Path(__file__).with_name("compat_matrix_check.py")
PACKAGES = ("cc-types", "cc-convert", "cc-compat")
# The oldest of all, the last published one with the defect, the first without it, the first of the next series, and the
# newest.
VERSIONS = ["0.0.23", "0.1.37", "0.1.44", "0.2.82", "newest"]


async def check(version: str) -> dict[str, Any]:
    """Return the row for one version."""
    sdk = "claude-agent-sdk" if version == "newest" else f"claude-agent-sdk=={version}"
    isolated = [*find_uv(), "run", "--quiet", "--isolated", "--no-project", "--no-binary-package=claude-agent-sdk"]
    packages = [word for name in PACKAGES for word in (f"--with={ROOT}/packages/{name}", f"--refresh-package={name}")]
    command = [*isolated, f"--python={sys.executable}", f"--with={sdk}", *packages, "python", str(CHECK)]
    # Outside the repository, since its pins would apply there.
    return json.loads((await run(command, Path(tempfile.gettempdir()))).splitlines()[-1])


async def work(versions: list[str]) -> list[str]:
    """Check versions, and print a table in Markdown."""
    rows = [await check(version) for version in versions]
    for line in (rows[0], ["---"] * len(rows[0]), *(row.values() for row in rows)):
        print(f"| {' | '.join(map(str, line))} |")
    return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=VERSIONS, help="of claude-agent-sdk")
    sys.exit(finish(work(parser.parse_args().versions)))
