"""The `rdc` command, also as `python -m rdc`."""

import signal


def main() -> None:
    """Run this process's command line and exit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is at work before the command is loaded: Ctrl-C then ends it without a word, not with the
        # traceback of an import. `entry` takes over.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rdc.cli.main import entry

    entry()


if __name__ == "__main__":
    main()
