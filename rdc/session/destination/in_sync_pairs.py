"""Pairs of trees that differ although no run has anything to do.

A destination may have extraneous entries, and a source may have special files, which rdc never transfers.
Comparing such a pair again would cost a descent in each run.
"""

from __future__ import annotations

from blake3 import blake3

from rdc.lean.typed import Protocol
from rdc.model.entries import Kind
from rdc.model.sync import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from rdc.files.root.root import Root
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Manifest

__all__ = ["InSyncPair", "InSyncStore"]


class InSyncStore(Protocol):
    """Remembers keys between runs. It is a cache: a run works without it."""

    def is_in_sync(self, key: bytes) -> bool:
        """Whether the store has the key."""

    def remember_in_sync(self, key: bytes) -> None:
        """Stores the key as the latest."""


class InSyncPair:
    """The pair of trees of one run.

    A pair is stored only if comparing exactly these two manifests finds nothing to do. A later run that meets
    the same two manifests may therefore skip the comparison, whatever happened in between.
    """

    def __init__(
        self,
        in_sync_store: InSyncStore | None,
        root: Root,
        start: Start,
        options: SyncOptions,
        filters: FilterList,
        *,
        preserved: Preserved,
    ) -> None:
        self._store = in_sync_store
        self._root = root
        self._start = start
        self._options = options
        self._filters = filters
        self._preserved = preserved
        self._mount_points: set[bytes] = set()

    @property
    def mount_points(self) -> AbstractSet[bytes]:
        """Mount points that the source did not enter."""
        return self._mount_points

    def note_mount_points(self, paths: Sequence[bytes]) -> None:
        """Adds mount points that the source did not enter."""
        self._mount_points.update(paths)

    def is_in_sync(self, source_root: bytes, own_root: bytes) -> bool:
        """Whether an earlier run found that trees with these manifest roots need nothing."""
        return self._store is not None and self._store.is_in_sync(self._key(source_root, own_root))

    def again(self, source_root: bytes, own_root: bytes) -> None:
        """Marks a known pair as the latest one in the store."""
        if self._store is not None and source_root != own_root:
            self._store.remember_in_sync(self._key(source_root, own_root))

    def remember_in_sync(
        self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]
    ) -> None:
        """Stores the pair after a run without problems, if the trees need nothing now.

        `wanted`: the source's manifest. `before`: the destination's manifest as this run compared it; all
        directories except `changed` are still the same. None: all directories are read again.
        """
        if self._store is None:
            return
        from rdc.plan.compare import difference
        from rdc.session.destination.in_sync_tree import InSyncTree

        tree = InSyncTree(self._root, self._start, self._options, self._filters, preserved=self._preserved)
        own = tree.read(wanted, before, changed)
        if own is None:
            return
        top = None if self._start.only else self._root.metadata(b"")
        source_metadata = None if self._start.only else self._start.metadata
        if top is not None and difference(
            Kind.DIRECTORY, self._start.metadata, top, preserved=self._preserved
        ):
            return
        source_root = wanted.root(source_metadata, self._preserved)
        own_root = own.root(top, self._preserved)
        if source_root != own_root:
            self._store.remember_in_sync(self._key(source_root, own_root))

    def _key(self, source_root: bytes, own_root: bytes) -> bytes:
        """The store's key: both roots and the options that a comparison depends on.

        The roots cover the effect of filter rules.
        """
        asked = [
            (name, value)
            for name, declared in OPTIONS.items()
            if declared.pair and (value := getattr(self._options, name)) != declared.default
        ]
        options = repr((asked, self._preserved, self._start.only)).encode()
        if self._options.one_file_system:
            options += repr(sorted(self._mount_points)).encode()
        return blake3(b"rdc in sync 2" + source_root + own_root + options).digest()
