"""The options of `rdc sync` about which files are compared, and how changed ones come."""

from __future__ import annotations

from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import UsageError
from rdc.limits.sessions import WINDOW_SECONDS

__all__ = ["COMPARING_GROUP", "read_modify_window", "read_whole_file"]

COMPARING_GROUP = OptionGroup(
    "Comparing",
    (
        Option(("-I", "--ignore-times"), "compare the content of all files, also of those of equal time"),
        Option(
            ("-@", "--modify-window"),
            "take times as equal that are so many seconds apart (default: -1, to the nanosecond)",
            "SECONDS",
        ),
        Option(("-y", "--fuzzy"), "make new files of what resembles them at DST; always on, but for -W"),
        Option(("-W", "--whole-file"), "fetch changed files whole, without a search at DST"),
        Option(("--no-whole-file", "--no-W"), "search for what DST has (default, here and far away)"),
    ),
)


def read_whole_file(words: Words) -> bool:
    """Whether changed files come whole. Raises UsageError beside --append, which fetches a rest."""
    last = words.last("--whole-file", "--no-whole-file")
    whole = last is not None and last.key == "--whole-file"
    if whole and words.has("--append", "--append-verify"):
        raise UsageError("--whole-file and --append exclude each other: --append fetches only a rest")
    return whole


def read_modify_window(words: Words) -> int | None:
    """Seconds; None for times to the nanosecond, which rsync writes as a negative number."""
    given = words.last("--modify-window")
    if given is None:
        return None
    text = given.value.removeprefix("-")
    # isascii() excludes the digits of other scripts. The length bounds the time of int().
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError(f"--modify-window={given.value}: a number of seconds is expected, such as 1")
    return None if given.value.startswith("-") else min(int(text), WINDOW_SECONDS)
