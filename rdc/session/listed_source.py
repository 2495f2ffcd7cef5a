"""The tree of a source on this machine of which the far side's list selects some (--files-from=:FILE).

The names are no more trusted than any other message: they are bounded and plain, and are opened below SRC
without following a symlink.
"""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial

from rdc.files.root.root import Root
from rdc.session.trees.selected_tree import open_selected
from rdc.session.trees.sites import ServedDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.selection import SelectedPaths
    from rdc.model.sync import SyncOptions
    from rdc.session.trees.source_tree import SourceTree

__all__ = ["open_listed"]


def open_listed(path: bytes, selected: Sequence[SelectedPaths], options: SyncOptions) -> SourceTree:
    """Opens the tree at `path` with what is selected below it. Raises FileError if that is missing, or all
    of it is behind symlinks."""
    with closing(Root.open(path)) as top:
        site = ServedDirectory(partial(os.dup, top.fileno()), "SRC", path)
        return open_selected(selected, options, site)
