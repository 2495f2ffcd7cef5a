"""The options of how content is written: what it goes into."""

from __future__ import annotations

from rdc.cli.options.table import Option, OptionGroup
from rdc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cli.options.table import Words

__all__ = ["WRITING_GROUP", "read_inplace"]

WRITING_GROUP = OptionGroup(
    "How files are written",
    (
        Option(
            ("--inplace",),
            "write what differs into the file that is there; a killed run leaves a mixture until the next",
        ),
        Option(("-S", "--sparse"), "make holes where files hold zeros"),
        Option(("--preallocate",), "reserve the space of a file before it comes; always on but with -S"),
    ),
)


def read_inplace(words: Words) -> bool:
    """Returns whether files are written into. Raises UsageError beside options that would pass over the
    mixture that a killed run leaves."""
    if not words.has("--inplace"):
        return False
    for name in ("--update", "--size-only"):
        if words.has(name):
            raise UsageError(
                f"--inplace and {name} exclude each other: a file that a killed run left half written would"
                " be passed over by the next"
            )
    return True
