"""Run the command `cc-convert` by `python -m cc_convert`."""

from .cli import run

if __name__ == "__main__":
    run()
