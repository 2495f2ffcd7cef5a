"""CopiedStore: a store as the source of its own copy.

A copy takes time, and puts and gc go on meanwhile. What is shown is one state: the snapshots that were listed
when the copy began, and at least the packs that they need. The list of snapshots is taken first, so a later
put only adds packs; the store's lock is held, so no gc removes one.
"""

from __future__ import annotations

import os

from rdc.errors import FileError
from rdc.files.base.store_guard import head_of
from rdc.files.root.root import Root
from rdc.model.entries import strings
from rdc.store.place import PackStore, StoreLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.depth import Looking
    from rdc.files.root.lister import Run
    from rdc.model.entries import Listed

_LISTS = (b"snapshots", b"forgotten")


class CopiedStore(Root):
    """The directory of a store, as it was when it was opened."""

    def __init__(self, root: Root) -> None:
        """Show what `root` shows, and share nothing with it. Raises FileError if the store is damaged."""
        super().__init__(os.dup(root.fileno()), root.label, root.reads, root.writes)
        self.store_head = head_of(self.fileno())
        self._lock = StoreLock(self.fileno())
        try:
            with PackStore(os.dup(self.fileno()), self.label) as store:
                self._numbers = frozenset((*store.numbers(), *store.forgotten_numbers()))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        super().release()
        self._lock.close()

    def list_many(self, todo: Sequence[bytes], *, looking: Looking) -> Run | None:
        """List nothing: each directory is listed for itself."""
        return None

    def restated(self, path: bytes, listed: Listed) -> Listed:
        """Leave out snapshots that came later."""
        listed = super().restated(path, listed)
        if path not in _LISTS:
            return listed
        names = strings(listed.listing.names)
        kept = [row for row, name in enumerate(names) if not name.isdigit() or int(name) in self._numbers]
        if len(kept) == len(names):
            return listed
        return listed.rows(kept)


def copied_store(root: Root) -> Root:
    """Return a store as the source of a copy, and release `root`. A damaged one stays as it is: its files
    are copied as those of any directory."""
    try:
        copied = CopiedStore(root)
    except FileError:
        return root
    root.release()
    return copied
