"""The snapshots of a store as `rdc store list` shows them: those that can be read, and why not the others."""

from __future__ import annotations

from rdc.errors import FileError, printable
from rdc.lean.records import Record
from rdc.store.place import PackStore
from rdc.store.records import SnapshotInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class SnapshotList(Record):
    """All snapshots of a store."""

    found: tuple[SnapshotInfo, ...]
    """The readable snapshots, by their numbers."""
    errors: tuple[FileError, ...]
    """The errors of the others, and of trees that cannot be read, if they were looked at."""


def list_snapshots(store: bytes, *, alone: bool) -> SnapshotList:
    """Return the snapshots of a store. `alone`: count what each one alone needs, for which trees are read.

    That stays unknown if one cannot be read, which may need the same. Raises RdcError if there is no store.
    """
    with PackStore.open(store) as opened:
        opened.hold()
        readable = opened.readable()
        found, errors = readable.snapshots, tuple(readable.errors.values())
        sizes: Sequence[int | None] = [None] * len(found)
        if alone and found and not readable.errors:
            from rdc.store.marking import bytes_alone
            from rdc.store.reader import StoreReader

            reader = StoreReader(opened)
            try:
                sizes = bytes_alone(reader, found)
            finally:
                reader.close()
            unread = [one.number for one, size in zip(found, sizes, strict=True) if size is None]
            if unread:
                sizes = [None] * len(found)
                errors = (_unread(store, unread),)
    infos = [
        SnapshotInfo(
            one.number,
            one.seconds,
            one.series,
            one.host,
            one.path,
            one.entries,
            one.files,
            one.size,
            one.stored,
            size,
            one.problems,
        )
        for one, size in zip(found, sizes, strict=True)
    ]
    return SnapshotList(tuple(infos), errors)


def _unread(store: bytes, numbers: Sequence[int]) -> FileError:
    """Return the error of snapshots that are listed, but whose trees cannot be read."""
    which = f"snapshot {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} of the snapshots"
    return FileError(
        store,
        f"{printable(store)}: the tree of {which} cannot be read, so what each one takes alone is not known;"
        " rdc store verify names what is missing or damaged",
    )
