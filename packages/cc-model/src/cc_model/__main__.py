"""Entry point for `python -m cc_model`."""

import sys

from .command_line import main

if __name__ == "__main__":
    sys.exit(main())
