"""`uv run scripts/soak`: see `command.py`."""

import sys
from pathlib import Path

# For a run as a folder: the first path is this folder, and not the parent that has it as a package.
sys.path[0] = str(Path(__file__).parents[1])

from soak.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
