"""`python -m cc_server`, as `cc-server`."""

if __name__ == "__main__":
    import sys

    from .command_line import main

    sys.exit(main())
