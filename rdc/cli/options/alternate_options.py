"""The options that name alternate directories: --link-dest, --compare-dest and --copy-dest."""

from __future__ import annotations

import os

from rdc.cli.options.table import Option, OptionGroup, Words
from rdc.errors import UsageError
from rdc.limits.sessions import ALTERNATE_DIRECTORIES
from rdc.model.sync import Alternates, AlternateUse

__all__ = ["ALTERNATES_GROUP", "read_alternates"]

ALTERNATES_GROUP = OptionGroup(
    "Using other copies at the destination (each may be given several times; DIR is relative to DST)",
    (
        Option(("--link-dest",), "make a file that DIR has unchanged a hard link to it", "DIR"),
        Option(("--copy-dest",), "make it a copy of the file in DIR", "DIR"),
        Option(("--compare-dest",), "leave it out of DST", "DIR"),
    ),
)

_USES = {f"--{use.value}-dest": use for use in AlternateUse}


def read_alternates(words: Words) -> Alternates | None:
    """Returns the alternate directories; None for none. Raises UsageError for a mix of options, and for too
    many directories."""
    given = [one for one in words.given if one.key in _USES]
    if not given:
        return None
    kinds = sorted({one.key for one in given})
    if len(kinds) > 1:
        raise UsageError(f"{kinds[0]} and {kinds[1]} exclude each other")
    (name,) = kinds
    for writing in ("--inplace", "--append", "--append-verify"):
        if name == "--link-dest" and words.has(writing):
            raise UsageError(
                f"{writing} and {name} exclude each other: writing into a link would change the file in DIR"
            )
    if len(given) > ALTERNATE_DIRECTORIES:
        raise UsageError(f"{name}: {len(given)} directories, the limit is {ALTERNATE_DIRECTORIES}")
    if not all(one.value for one in given):
        raise UsageError(f"{name} needs a directory, such as: {name}=../yesterday")
    return Alternates(_USES[name], tuple(os.fsencode(one.value) for one in given))
