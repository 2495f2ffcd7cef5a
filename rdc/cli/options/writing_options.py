"""The options of how content is written: what it goes into."""

from __future__ import annotations

from rdc.cli.options.table import Option, OptionGroup
from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words

__all__ = ["WRITING_GROUP", "read_append"]

WRITING_GROUP = OptionGroup(
    "How files are written",
    (
        Option(
            ("--inplace",),
            "write what differs into the file that is there; a killed run leaves a mixture until the next",
        ),
        Option(
            ("--append", "--append-verify"),
            "the same, and change only files that are shorter at DST; what they hold is compared",
        ),
        Option(("-S", "--sparse"), "make holes where files hold zeros"),
        Option(("--preallocate",), "reserve the space of a file before it comes; always on but with -S"),
    ),
)


def read_append(words: Words) -> bool:
    """Returns whether files are only lengthened. Raises UsageError beside options that would pass over the
    mixture that a killed run leaves, here and with --inplace, and beside --checksum."""
    append = words.last("--append")
    given = words.last("--inplace") if append is None else append
    if given is None:
        return False
    for name in ("--update", "--size-only"):
        if words.has(name):
            raise UsageError(
                f"{given.key} and {name} exclude each other: a file that a killed run left half written"
                " would be passed over by the next"
            )
    if append is not None and words.has("--checksum"):
        raise UsageError(
            f"{append.key} and --checksum exclude each other: a file of the same length is left alone,"
            " whatever it holds"
        )
    return append is not None
