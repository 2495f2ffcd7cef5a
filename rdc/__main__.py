"""The `rdc` command, also as `python -m rdc`."""

import gc


def main() -> None:
    """Run this process's command line and exit."""
    # What rdc keeps are buffers and columns, not cycles. A start makes 20,000 objects that stay, which the
    # default of 700 would search for garbage thirty times; a large file's recipe makes as many more. If
    # 100,000 were all garbage they would take some 10 MB.
    gc.set_threshold(100_000, 20, 20)
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is at work before the command is loaded: Ctrl-C then ends it without a word, not with the
        # traceback of an import. `entry` takes over.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from rdc.cli.main import entry

    entry()


if __name__ == "__main__":
    main()
