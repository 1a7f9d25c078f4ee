"""`python -m cc_convert` is the command `cc-convert`."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
