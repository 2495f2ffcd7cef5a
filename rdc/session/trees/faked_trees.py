"""--fake-super at the destination, and what it does not go with."""

from __future__ import annotations

import os

from rdc.errors import UsageError
from rdc.files.root.faked_root import FakedRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.sync import SyncOptions

__all__ = ["check_faked", "faked_root"]


def faked_root(root: Root, options: SyncOptions) -> Root:
    """Returns what takes the place of `root`: it keeps in attributes what may not be set. Raises UsageError
    beside what does not go with it."""
    check_faked(options)
    faked = FakedRoot(os.dup(root.fileno()), root.label)
    root.release()
    return faked


def check_faked(options: SyncOptions) -> None:
    """Raises UsageError for options that do not go with `fake_super`."""
    excluded = (
        ("--inplace and --append", options.overwrites),
        ("--link-dest and its like", options.alternates is not None),
        ("--keep-undo", options.keep_undo is not None),
        ("--keep-dirlinks", options.keep_dirlinks),
        ("-L, -k and --copy-unsafe-links", options.follows is not None),
    )
    for names, given in excluded:
        if given:
            raise UsageError(f"--fake-super goes with no {names}: leave one of them out")
