"""Entry point for `python -m cc_demo`."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
