"""Reads what a burst of events touched, compares it with the record, and returns the changes to announce."""

from __future__ import annotations

import time
from collections import OrderedDict

from rdc.errors import ExitCode, FileError
from rdc.files.base.paths import join
from rdc.lean.records import Record
from rdc.limits import RETRIED_FILES
from rdc.model.entries import Kind, Listing, PackedListing, strings
from rdc.progress import Problem
from rdc.protocol.messages import Renamed
from rdc.session.source.turns import Changes, DirectoryChange
from rdc.tree.walk import Walk
from rdc.watching.announced_tree import AnnouncedTree, InodeStamps, difference, possibly_changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.progress import Event, Reporter
    from rdc.session.trees.source_tree import SourceTree
    from rdc.tree.filters import FilterList
    from rdc.watching.events import Batch, MoveSeen, TreeEvents


RACY_NS = 20_000_000
"""Nanoseconds. A file that changed this shortly before its listing may change again with the same mtime,
whose granularity is a tick of the kernel's clock, at most 10 ms. It is checked again."""

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 30.0
"""Longest wait in seconds before a file that is being written is tried again; each wait doubles."""


class _Retry(Record, frozen=False):
    due: float
    delay: float


class Retries:
    """Files that the destination did not get, because they changed during the read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._files: OrderedDict[bytes, _Retry] = OrderedDict()

    def __contains__(self, path: bytes) -> bool:
        return path in self._files

    def add(self, path: bytes) -> None:
        """Record a failure of a file."""
        before = self._files.pop(path, None)
        delay = FIRST_RETRY_SECONDS if before is None else min(2 * before.delay, LAST_RETRY_SECONDS)
        self._files[path] = _Retry(self._clock() + delay, delay)
        if len(self._files) > RETRIED_FILES:
            self._files.popitem(last=False)

    def rename(self, old: bytes, new: bytes) -> None:
        """Follow a rename, including files below a renamed directory."""
        below = old + b"/"
        for path in [path for path in self._files if path.startswith(below)]:
            self._files[new + path[len(old) :]] = self._files.pop(path)

    def drop(self, paths: Iterable[bytes]) -> None:
        """Forget these files, which the destination has."""
        for path in paths:
            self._files.pop(path, None)

    def waits(self, path: bytes) -> bool:
        """Return whether it is too early to try the file again."""
        retry = self._files.get(path)
        return retry is not None and retry.due > self._clock()

    def due(self) -> list[bytes]:
        """Return the files whose wait is over."""
        now = self._clock()
        return [path for path, retry in self._files.items() if retry.due <= now]

    @property
    def seconds(self) -> float | None:
        """Seconds until the next file is due; None without one."""
        if not self._files:
            return None
        return max(0.0, min(retry.due for retry in self._files.values()) - self._clock())

    def clear(self) -> None:
        self._files.clear()


class ReadChanges:
    """One reading of the source. `announced` holds the files that the turn announces."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        record: AnnouncedTree,
        events: TreeEvents,
        retries: Retries,
        reporter: Reporter,
    ) -> None:
        self._tree = tree
        self._filters = filters.at_source(tree.filtered)
        self._record = record
        self._events = events
        self._retries = retries
        self._report = reporter
        self._start = tree.only or b""
        self._found: dict[bytes, PackedListing] = {}
        self._stamps: dict[bytes, InodeStamps] = {}
        self._moved_away: dict[bytes, set[bytes]] = {}
        """Old names of renamed files per directory, announced as gone as well in case a rename fails."""
        self._moved_here: set[bytes] = set()
        self._disturbed: set[bytes] = set()
        """Directories whose mtimes the destination's renames change, even where one clock tick hides that at
        the source."""
        self.read_errors = 0
        self.announced: list[bytes] = []

    def changes(self, batch: Batch, *, rename: bool) -> Changes | None:
        """Return the changes to announce, or None; the record then counts them as announced. rename: announce
        renames as such."""
        moves = self._moves(batch.moves) if rename and not batch.overflow else []
        self.read(batch)
        for path in self._disturbed.difference(self._found):
            if path or not self._start:
                self._walk(path, deep=False)
        directories = [change for path in sorted(self._found, key=_order) if (change := self._change(path))]
        if not moves and not directories:
            return None
        return Changes(moves, directories, self._record.entries, self._record.files, self.read_errors)

    @property
    def emptied(self) -> bool:
        """Return whether the tree is empty now although entries were announced."""
        listing = self._found.get(self._start)
        return listing is not None and not listing.count and bool(self._record.of(self._start).count)

    # Reading

    def read(self, batch: Batch) -> None:
        """Read what a batch of events touched, once. Raises FileError."""
        if self._found:
            return
        trees = {self._start} if batch.overflow else batch.trees
        for path in sorted(trees, key=_order):
            if path not in self._found and not self._hidden(path):
                self._walk(path, deep=True)
        retried = {path.rpartition(b"/")[0] for path in self._retries.due()}
        for path in sorted(batch.directories | retried, key=_order):
            if path not in self._found and not (path == b"" and self._start):
                self._walk(path, deep=False)

    def _hidden(self, path: bytes) -> bool:
        """Return whether a filter rule excludes the directory, or one above it."""
        if path == self._start:
            return False
        parts = path.split(b"/")
        above = (b"/".join(parts[: count + 1]) for count in range(len(parts)))
        return bool(self._filters) and any(self._filters.excluded(one, True) for one in above if one)

    def _walk(self, path: bytes, *, deep: bool) -> None:
        root = self._tree.root

        def watch(directory: bytes) -> None:
            self._events.watch(root, directory)

        walk = Walk(
            root,
            self._filters,
            self._problem,
            start=path,
            known=watch if deep else None,
        )
        try:
            for found in walk:
                self._found[found.path] = found.listing
                self._stamps[found.path] = InodeStamps.of(found.listing, found.inodes)
                if not deep:
                    break
        except FileError as error:
            if path == self._start:
                raise
            # The entries of its parent announce that it is gone.
            self._problem(Problem(error.code, path, str(error)))

    def _problem(self, event: Event) -> None:
        if isinstance(event, Problem):
            if event.code is ExitCode.VANISHED:
                return
            if event.code is not ExitCode.OK:
                self.read_errors += 1
                self._events.missed(event.path_bytes)
        self._report(event)

    # Comparing

    def _change(self, path: bytes) -> DirectoryChange | None:
        """Return the changes to announce in one directory."""
        if path != self._start and self._record.kind(path) is not Kind.DIRECTORY:
            # The parent's entries, read a moment ago or announced before, do not contain it: it came or went
            # meanwhile. Both are read again.
            parent = path.rpartition(b"/")[0]
            self._events.touch(parent)
            self._events.touch(path, tree=True)
            return None
        try:
            metadata = self._tree.root.metadata(path)
        except FileError:
            return None
        before, now, stamps = self._record.of(path), self._found[path], self._stamps[path]
        retried, moved = self._marked(path, self._retries), self._marked(path, self._moved_here)
        # A file tried again may have been listed in the clock tick in which it changed again.
        doubted = {*retried, *possibly_changed(before, self._record.stamps_of(path), now, stamps, moved)}
        listing, gone = difference(before, now, {*moved, *doubted})
        listing = self._ready(path, listing)
        gone = tuple(sorted({*gone, *(self._moved_away.get(path, set()) - set(strings(now.names)))}))
        same = metadata == self._record.metadata(path) and path not in self._disturbed
        self._record.put(path, now, stamps)
        self._record.set_metadata(path, metadata)
        if not listing and not gone and same:
            return None
        self.announced += [
            join(path, name)
            for name, kind in zip(listing.names, listing.kinds, strict=True)
            if kind == Kind.FILE
        ]
        kinds = zip(listing.names, listing.kinds, strict=True)
        rows = [row for row, (name, kind) in enumerate(kinds) if name in doubted and kind == Kind.FILE]
        return DirectoryChange(path, metadata, listing, gone, tuple(rows))

    def _marked(self, path: bytes, paths: Retries | set[bytes]) -> list[bytes]:
        names = strings(self._found[path].names)
        if not paths:
            return []
        return [name for name in names if join(path, name) in paths]

    def _ready(self, path: bytes, listing: Listing) -> Listing:
        """Return `listing` without files that are still being written."""
        now = time.time_ns()
        ready = []
        for row, name in enumerate(listing.names):
            entry = join(path, name)
            if listing.kinds[row] == Kind.FILE:
                if self._retries.waits(entry):
                    continue
                if 0 <= now - listing.mtimes[row] < RACY_NS and entry not in self._retries:
                    self._retries.add(entry)
                    continue
            ready.append(row)
        return listing if len(ready) == len(listing) else listing.rows(ready)

    # Renames

    def _moves(self, moves: Iterable[MoveSeen]) -> list[Renamed]:
        """Return the renames that the destination can repeat. The record follows them."""
        return [renamed for move in moves if (renamed := self._move(move)) is not None]

    def _move(self, move: MoveSeen) -> Renamed | None:
        # long because each pair of places that a move leads from and to is a case
        record, parent = self._record, move.new.rpartition(b"/")[0]
        found = record.entry(move.old)
        if found is None or record.entry(move.new) is not None or move.old in self._retries:
            return None
        kind, size, metadata = found
        if kind is not (Kind.DIRECTORY if move.directory else Kind.FILE):
            return None
        if parent != self._start and record.kind(parent) is not Kind.DIRECTORY:
            return None
        if self._hidden_entry(move.new, kind) or (move.directory and move.new.startswith(move.old + b"/")):
            return None
        record.rename(move.old, move.new)
        self._retries.rename(move.old, move.new)
        below = move.old + b"/"
        moved = {path for path in self._disturbed if path == move.old or path.startswith(below)}
        self._disturbed -= moved
        self._disturbed |= {move.new + path[len(move.old) :] for path in moved}
        self._disturbed |= {parent, move.old.rpartition(b"/")[0]}
        if kind is Kind.FILE:
            self._moved_here.discard(move.old)
            self._moved_here.add(move.new)
            directory, _, name = move.old.rpartition(b"/")
            self._moved_away.setdefault(directory, set()).add(name)
        return Renamed(move.old, move.new, kind, size, metadata)

    def _hidden_entry(self, path: bytes, kind: Kind) -> bool:
        return bool(self._filters) and self._filters.excluded(path, kind is Kind.DIRECTORY)


def _order(path: bytes) -> list[bytes]:
    """Sort key that puts parents before their children."""
    return path.split(b"/") if path else []
