"""A copy of a store at the destination: packs arrive before snapshots, and snapshots go before packs.

So after a kill at any moment, the copy has all packs of each snapshot that it lists. What lists (snapshots,
the trash, and the head that makes the directory a store) waits beside its place until every pack is in place
and durable. What SRC does not have any more is deleted in the other order, and the directories of snapshots
are synced in between.

A lock keeps a gc of the copy from removing packs whose snapshots are not there yet. Packs are removed under
an exclusive one, so that restores from the copy come to their end.
"""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.paths import join
from rdc.files.base.store_guard import comes_last
from rdc.model.entries import Kind
from rdc.progress import Problem
from rdc.store.pack_file import sync_directory
from rdc.store.place import StoreLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.files.root.root import Root
    from rdc.session.runtime.commands import EventRelay
    from rdc.session.transfer.commits import Extraneous, FileCommits
    from rdc.tree.manifest import Manifest


class StoreLanding:
    """The rules of a destination that becomes a copy of a store."""

    def __init__(self, root: Root, events: EventRelay, *, fsync: bool, store: bytes = b"") -> None:
        """`store`: the path of the copy below the root; b"": the root is the copy."""
        self._root = root
        self._events = events
        self._fsync = fsync
        self._store = store
        self._shown = printable(root.shown(store))
        self._lock = StoreLock.at(root.fileno(), store)
        self.missing: str | None = None
        """Why what lists was not brought; None: it was."""

    def close(self) -> None:
        """Give up the lock. May be called again."""
        self._lock.close()

    def comes_last(self, path: bytes) -> bool:
        """Return whether a file waits until all packs are there."""
        return comes_last(path, self._store)

    def land(self, landing: FileCommits, wanted: Manifest, withheld: str | None) -> None:
        """Put in place what lists, now that the packs are.

        `wanted`: SRC's entries, as far as directories differ. `withheld`: why not everything arrived; None:
        nothing is known to be missing.
        """
        self.missing = withheld or self._missing_pack(wanted)
        if self.missing is None:
            landing.land_late()
            return
        if landing.drop_late():
            text = f"{self._shown}: no snapshot was brought, as not all is there: {self.missing}"
            self._events.report(Problem(ExitCode.PARTIAL, b"", text + "; run again"))

    def _missing_pack(self, wanted: Manifest) -> str | None:
        """Return which pack did not arrive, whatever the reason; None: all did."""
        for row in range(len(wanted)):
            entry = wanted.entry(row)
            if entry.kind != Kind.FILE or self.comes_last(entry.path):
                continue
            try:
                if self._root.identity(entry.path).size == entry.size:
                    continue
            except FileError as error:
                return str(error)
            return f"{printable(self._root.shown(entry.path))} has another size than at SRC"
        return None

    def remove(self, remove: Callable[[Iterable[Extraneous]], bool], found: Iterable[Extraneous]) -> bool:
        """Delete entries that SRC lacks, packs last. Return whether all are gone.

        `remove`: deletes some, and returns whether they are gone.
        """
        entries = list(found)
        packs = [one for one in entries if not self.comes_last(one.path)]
        if not remove([one for one in entries if self.comes_last(one.path)]):
            return False
        if not packs:
            return True
        if self._fsync:
            self._sync()
        if self._lock.is_alone():
            return remove(packs)
        text = f"{self._shown}: {len(packs)} packs that SRC lacks stay, as the copy is in use"
        self._events.report(Problem(ExitCode.PARTIAL, b"", text + "; run again"))
        return False

    def _sync(self) -> None:
        for name in (b"snapshots", b"forgotten"):
            path = join(self._store, name) if self._store else name
            try:
                sync_directory(path, self._root.fileno())
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._root.failure(error, path, "make it durable") from error
