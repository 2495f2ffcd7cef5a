"""Bounds: drops the oldest records of a destination, within what --keep-undo allows."""

from __future__ import annotations

from rdc.errors import FileError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import KeepUndo
    from rdc.undoing.store import UndoStore

__all__ = ["Bounds"]

DAY_SECONDS = 86_400


class Bounds:
    """The records of earlier syncs, seen from one that keeps an undo itself.

    The record of the sync itself always stays whole, even if it is larger than the bound: to drop a part of
    it would lose what was just replaced. `finish` says so, and the next sync drops it.
    """

    def __init__(self, store: UndoStore, keep: KeepUndo, seconds: int) -> None:
        """`seconds`: the present time since 1970. Raises RdcError."""
        self._store = store
        self._keep = keep
        self._seconds = seconds
        self._older = store.numbers()
        self._sizes: dict[int, int] = {}
        if keep.size is not None:
            self._sizes = {number: self._size(number) for number in self._older}

    def make_room(self, own: int) -> None:
        """Drops records until `own` bytes of this sync fit beside them, or none is left. Raises RdcError."""
        size = self._keep.size
        while size is not None and self._older and own + sum(self._sizes.values()) > size:
            self._drop()

    def finish(self, own: int) -> list[str]:
        """Drops what is too large or too old at the end of a sync that keeps `own` bytes. Returns notices."""
        self.make_room(own)
        days = self._keep.days
        while days is not None and self._older and self._age(self._older[0]) > days * DAY_SECONDS:
            self._drop()
        if self._keep.size is not None and own > self._keep.size:
            shown = printable(self._store.shown)
            return [
                f"{shown}: this sync alone keeps {own:,} bytes to be undone, more than --keep-undo allows"
                f" ({self._keep.size:,}): it stays whole until the next sync with --keep-undo"
            ]
        return []

    def _drop(self) -> None:
        number = self._older.pop(0)
        self._sizes.pop(number, None)
        self._store.drop(number)

    def _size(self, number: int) -> int:
        record = self._store.stored(number)
        try:
            finished, ended, _ = record.state()
            if ended is not None:
                return ended.bytes
            return record.size() if finished is None else finished.bytes
        except FileError:
            return record.size()  # a damaged journal: it keeps what it has until its turn
        finally:
            record.close()

    def _age(self, number: int) -> int:
        """Seconds since the sync began; negative if the clock was set back."""
        record = self._store.stored(number)
        try:
            head = record.head()
            # A journal that lost its head keeps what it has until its turn, too.
            return self._seconds - (record.made if head is None else head.seconds)
        except FileError:
            return self._seconds - record.made
        finally:
            record.close()
