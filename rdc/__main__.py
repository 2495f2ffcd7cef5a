"""The `rdc` command, also as `python -m rdc`."""

# `signal` makes enums of its numbers for 1.4 ms, in which Ctrl-C would show a traceback.
import _signal
import gc


def main() -> None:
    """Run this process's command line and exit."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        # Nothing is at work before the command is loaded: Ctrl-C then ends it without a word, not with the
        # traceback of an import. `entry` takes over.
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    # What rdc keeps are buffers and columns, not cycles. A start makes 20,000 objects that stay, which the
    # default of 700 would search for garbage thirty times; a large file's recipe makes as many more. If
    # 100,000 were all garbage they would take some 10 MB.
    gc.set_threshold(100_000, 20, 20)
    from rdc.cli.main import entry

    entry()


if __name__ == "__main__":
    main()
