"""The options of how content is written: what it goes into."""

from __future__ import annotations

import os

from rdc.cli.options.table import Option, OptionGroup
from rdc.errors import UsageError
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words
    from rdc.model.sync import SyncOptions

__all__ = ["WRITING_GROUP", "read_allocate", "read_append", "read_sparse", "with_temporaries"]

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
        Option(("-S", "--sparse"), "make holes of all blocks of zeros (default: of long runs of them)"),
        Option(("--no-sparse", "--no-S"), "make no holes: write all zeros"),
        Option(("--delay-updates",), "put new files and new content in place at the end, when all is there"),
        Option(
            ("--partial-dir",),
            "keep the part of a file that could not be finished in this directory, beside the file",
            "DIR",
        ),
        Option(
            ("-T", "--temp-dir"),
            "write new content in this directory until it is complete, relative to DST",
            "DIR",
        ),
        Option(("--preallocate",), "reserve the space of a file before it comes, and make no holes"),
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


def with_temporaries(options: SyncOptions, words: Words) -> SyncOptions:
    """Returns `options` with the choices of where new content waits, and how long."""
    if not words.has("--delay-updates", "--temp-dir", "--partial-dir"):
        return options
    return replace(
        options,
        delay_updates=words.has("--delay-updates"),
        temp_dir=_directory(words, "--temp-dir"),
        partial_dir=_directory(words, "--partial-dir"),
    )


def _directory(words: Words, name: str) -> bytes:
    last = words.last(name)
    if last is not None and not last.value:
        raise UsageError(f"{name} needs a directory, such as: {name}=.parts")
    return b"" if last is None else os.fsencode(last.value.rstrip("/") or "/")


def read_sparse(words: Words) -> bool:
    """Returns whether all blocks of zeros become holes."""
    last = words.last("--sparse", "--no-sparse")
    return last is not None and last.key == "--sparse"


def read_allocate(words: Words) -> bool:
    """Returns whether all zeros are written."""
    last = words.last("--sparse", "--no-sparse", "--preallocate")
    return last is not None and last.key != "--sparse"
