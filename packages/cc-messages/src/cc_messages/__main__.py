"""`python -m cc_messages`."""

if __name__ == "__main__":
    import sys

    from .server.command_line import main

    sys.exit(main())
