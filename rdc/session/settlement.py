"""Pairs of trees that need nothing although they differ.

A destination may have more than its source, and a source special files that no destination gets. To compare
such a pair again would cost a descent each time.
"""

from __future__ import annotations

from blake3 import blake3

from rdc.model.entries import Kind
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rdc.files.confined import Root
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Manifest

__all__ = ["Settlement", "Settlements"]


class Settlements(Protocol):
    """Remembers keys between runs: a cache, never needed."""

    def is_settled(self, key: bytes) -> bool: ...

    def settle(self, key: bytes) -> None: ...


class Settlement:
    """One run's view of them.

    A pair is settled only when comparing exactly these two manifests finds nothing to do, so that a later run
    that meets them again may skip the comparison: what it would find is known, whatever happened in between.
    """

    def __init__(
        self,
        settlements: Settlements | None,
        root: Root,
        start: Start,
        options: SyncOptions,
        filters: FilterList,
        *,
        kept: Kept,
    ) -> None:
        self._settlements = settlements
        self._root = root
        self._start = start
        self._options = options
        self._filters = filters
        self._kept = kept
        self.mount_points: set[bytes] = set()
        """What the source did not go into."""

    def is_settled(self, source_root: bytes, own_root: bytes) -> bool:
        """Whether the trees with these manifest roots need nothing."""
        return self._settlements is not None and self._settlements.is_settled(
            self._key(source_root, own_root)
        )

    def again(self, source_root: bytes, own_root: bytes) -> None:
        """Remembers a pair that was met again as the latest."""
        if self._settlements is not None and source_root != own_root:
            self._settlements.settle(self._key(source_root, own_root))

    def settle(self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]) -> None:
        """After a run without any problem: settles the pair where it can be.

        `before`: our tree as this run compared it; its directories but `changed` are as they were, since
        nothing was to do in them. None: all are read.
        """
        if self._settlements is None:
            return
        from rdc.plan.compare import difference
        from rdc.session.settled_tree import SettledTree

        tree = SettledTree(self._root, self._start, self._options, self._filters, kept=self._kept)
        own = tree.read(wanted, before, changed)
        if own is None:
            return
        top = None if self._start.only else self._root.metadata(b"")
        theirs = None if self._start.only else self._start.metadata
        if top is not None and difference(Kind.DIRECTORY, self._start.metadata, top, kept=self._kept):
            return
        source_root = wanted.root(theirs, self._kept)
        own_root = own.root(top, self._kept)
        if source_root != own_root:
            self._settlements.settle(self._key(source_root, own_root))

    def _key(self, source_root: bytes, own_root: bytes) -> bytes:
        """What is compared depends on the options named here; what the filter rules leave is in the roots."""
        asked = self._options
        options = repr((asked.delete, self._kept, self._start.only)).encode()
        if asked.narrows:
            options += repr((asked.update, asked.existing, asked.ignore_existing)).encode()
        if asked.bounds_sizes:
            options += repr((asked.min_size, asked.max_size)).encode()
        if asked.one_file_system:
            options += repr(sorted(self.mount_points)).encode()
        return blake3(b"rdc settled 1" + source_root + own_root + options).digest()
