"""Watches one side between two runs, and tells whether it is other than the last run left it.

Events alone would not do: those of rdc's own steps look like any user's. So each directory with an event is
listed and compared with the ancestor of its own side, which has the stamp of every entry that a run left or
made there. Only a difference that no run has seen yet asks for a run: no echo, and no edit is missed that
comes while a run works.
"""

from __future__ import annotations

import os

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.base.paths import is_reserved, join
from rdc.lean.typed import NamedTuple
from rdc.progress import Problem
from rdc.tree import filter_list
from rdc.tree.walk import Walk
from rdc.uniting.file_systems import lasting_walk
from rdc.uniting.pair_rules import NO_RULES
from rdc.uniting.rows import DIRECTORY, FILE, Stamp, listed_rows
from rdc.uniting.state import PairDirectory, RootState
from rdc.watching.events import TreeEvents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rdc.files.root.root import Root
    from rdc.progress import Event
    from rdc.tree.filters import FilterList
    from rdc.tree.walk import WalkedDirectory
    from rdc.uniting.ancestor_file import OwnAncestor
    from rdc.uniting.columns import SharedRow
    from rdc.uniting.pair_rules import PairRules
    from rdc.watching.events import Batch


NOWHERE = (0, 0)


class Seen(NamedTuple):
    """One entry as a sentry lists it."""

    kind: int
    target: bytes
    """A symlink's; b"" of others."""
    stamp: Stamp

    def is_as(self, row: SharedRow, stamp: Stamp) -> bool:
        """Return whether the entry is as its side's ancestor says. An unknown change time is like none."""
        if (self.kind, self.target) != (row.kind, row.target):
            return False
        if self.kind == FILE:
            return self.stamp == stamp
        if self.kind == DIRECTORY:
            # Its times change with each entry that comes or goes.
            return (self.stamp.mode, self.stamp.inode) == (stamp.mode, stamp.inode)
        return (self.stamp.inode, self.stamp.ctime_ns) == (stamp.inode, stamp.ctime_ns)


class Sentry:
    """The events of one side, and what of it no run has seen yet.

    Nothing is kept open in the tree between two calls, so that it can be unmounted.
    """

    def __init__(
        self,
        open_root: Callable[[], Root],
        pair: bytes,
        *,
        make_events: Callable[[bytes], TreeEvents] = TreeEvents,
    ) -> None:
        """`open_root`: opens the side's directory; the caller releases it. `pair`: the name of the pair's
        state there."""
        self._open = open_root
        self._pair = pair
        self._make_events = make_events
        self._events: TreeEvents | None = None
        self._place = NOWHERE
        """Device and inode number of the directory whose events these are."""
        self._rules: PairRules = NO_RULES
        self._noted: dict[bytes, Seen | None] = {}
        """The reported differences from the ancestor, None for an entry that is missing. The next run sees
        it, and what it leaves as a conflict asks for no further one."""

    @property
    def bell(self) -> int | None:
        """A descriptor that becomes readable with the first event of a burst; None before the first look."""
        return None if self._events is None else self._events.bell

    @property
    def limit(self) -> str | None:
        """Return why some directories are not watched; None if all are."""
        return None if self._events is None else self._events.limit

    def due(self) -> float | None:
        """Return the seconds until it is time to look; None if nothing happened."""
        return 0.0 if self._events is None else self._events.due()

    def quiet(self) -> None:
        """Stop the bell. The burst goes on, and `due` says until when."""
        if self._events is not None:
            self._events.quiet()

    def close(self) -> None:
        """End the events. May be called again."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def is_stirred(self) -> bool:
        """Look, if it is time to, and return whether the side is other than a run has seen it.

        The first look watches every directory. So does each look at another directory than before, with other
        rules of the pair, and after lost events. If the side cannot be looked at, the next run says why.
        """
        due = self.due()
        if due is None or due > 0:
            return False
        try:
            root = self._open()
        except RdcError:
            self.close()
            return True
        try:
            return self._look(root)
        except (RdcError, OSError):
            self.close()
            return True
        finally:
            root.release()

    def forget_settled(self) -> None:
        """Forget what was told and is now as the ancestor says: a run has come to its end."""
        if not self._noted:
            return
        try:
            root = self._open()
        except RdcError:
            return  # the next look says so
        try:
            ancestor, _ = self._remembered(root)
        finally:
            root.release()
        if ancestor is None:
            return
        rows = {
            path: (row, stamp)
            for path, row, stamp in zip(ancestor.paths, ancestor.rows, ancestor.stamps, strict=True)
            if path in self._noted
        }
        self._noted = {
            path: seen
            for path, seen in self._noted.items()
            if (path in rows if seen is None else path not in rows or not seen.is_as(*rows[path]))
        }

    def _look(self, root: Root) -> bool:
        top = os.fstat(root.fileno())
        ancestor, rules = self._remembered(root)
        place = (top.st_dev, top.st_ino)
        if place != self._place:
            self.close()
        batch = None
        if self._events is None:
            self._events = self._make_events(b"")
        else:
            batch = self._events.take()
            if batch.overflow or rules != self._rules:
                batch = None
        is_lost = batch is None and self._place != NOWHERE
        self._place, self._rules = place, rules
        found = _Reading(root, filter_list(rules.filters), self._events).read(batch)
        return self._compare(found, ancestor, whole=batch is None) or is_lost

    def _remembered(self, root: Root) -> tuple[OwnAncestor | None, PairRules]:
        """Return what this side's last run kept of the pair."""
        with RootState(root, write=False) as state:
            pair = PairDirectory.open(state, self._pair) if state.fd >= 0 else None
            if pair is None:
                return None, NO_RULES
            try:
                latest = pair.latest()
                kept = pair.rules()
            finally:
                pair.close()
        return latest.read() if latest is not None else None, kept.rules if kept is not None else NO_RULES

    def _compare(
        self, found: Mapping[bytes, Mapping[bytes, Seen]], ancestor: OwnAncestor | None, *, whole: bool
    ) -> bool:
        """Note what differs in the directories of `found`, and return whether no run has seen some of it."""
        known: dict[bytes, tuple[SharedRow, Stamp]] = {}
        if ancestor is not None:
            for path, row, stamp in zip(ancestor.paths, ancestor.rows, ancestor.stamps, strict=True):
                if path.rpartition(b"/")[0] in found:
                    known[path] = row, stamp
        differs: dict[bytes, Seen | None] = {}
        is_there = set()
        for directory, entries in found.items():
            for name, seen in entries.items():
                path = join(directory, name)
                is_there.add(path)
                if path not in known or not seen.is_as(*known[path]):
                    differs[path] = seen
        differs.update(dict.fromkeys(known.keys() - is_there))
        noted = self._noted
        before = {path: seen for path, seen in noted.items() if whole or path.rpartition(b"/")[0] in found}
        news = any(path not in noted or noted[path] != seen for path, seen in differs.items())
        # What a run settled is not noted any more. What else went was a user's.
        news = news or any(
            seen is not None and path not in known and path not in is_there for path, seen in before.items()
        )
        for path in before:
            del noted[path]
        noted.update(differs)
        return news


class _Reading:
    """Lists directories with events, and watches new ones before they are listed."""

    def __init__(self, root: Root, filters: FilterList, events: TreeEvents) -> None:
        self._root = root
        self._filters = filters
        self._events = events
        self._device = os.fstat(root.fileno()).st_dev
        self._found: dict[bytes, dict[bytes, Seen]] = {}

    def read(self, batch: Batch | None) -> Mapping[bytes, Mapping[bytes, Seen]]:
        """Return the entries of each directory that a batch of events names, by name; None: of all."""
        if batch is None:
            self._walk(b"", deep=True)
            return self._found
        for path in sorted(batch.trees):
            if path not in self._found and not self._is_hidden(path):
                self._walk(path, deep=True)
        for path in sorted(batch.directories):
            # Other rules than before may exclude what is still watched.
            if path not in self._found and not self._is_hidden(path):
                self._walk(path, deep=False)
        return self._found

    def _is_hidden(self, path: bytes) -> bool:
        """Return whether the directory, or one above it, is rdc's own or excluded by the rules."""
        parts = path.split(b"/") if path else []
        if any(map(is_reserved, parts)):
            return True
        above = [b"/".join(parts[: count + 1]) for count in range(len(parts))]
        return bool(self._filters) and any(self._filters.excluded(each, True) for each in above)

    def _walk(self, path: bytes, *, deep: bool) -> None:
        def watch(directory: bytes) -> None:
            self._events.watch(self._root, directory)

        walk = Walk(
            self._root,
            self._filters,
            self._note,
            start=path,
            on_temporaries=_nothing,
            on_special=_nothing,
            known=watch if deep else None,
            descend=self._is_of_this_device,
        )
        try:
            for directory in lasting_walk(walk, self._root.stable):
                self._found[directory.path] = self._entries(directory)
                if not deep:
                    break
        except FileError:
            if not path:
                raise
            # The entries of its parent show that it is gone.

    def _is_of_this_device(self, device: int, _inode: int) -> bool:
        return device == self._device

    def _note(self, event: Event, /) -> None:
        # The run that follows reports such problems.
        if isinstance(event, Problem) and event.code not in (ExitCode.OK, ExitCode.VANISHED):
            self._events.missed(event.path_bytes)

    def _entries(self, directory: WalkedDirectory) -> dict[bytes, Seen]:
        entries = {}
        for each in listed_rows(directory, self._device):
            if each.kind == FILE:
                stamp = Stamp(each.size, each.mode, each.mtime_ns, each.inode, each.ctime_ns)
            elif each.kind == DIRECTORY:
                stamp = Stamp(0, each.mode, 0, each.inode, 0)
            else:
                stamp = Stamp(0, 0, 0, each.inode, each.ctime_ns)
            entries[each.name] = Seen(each.kind, each.target, stamp)
        return entries


def _nothing(_path: bytes, _names: Sequence[bytes] = (), /) -> None:
    """Take no notice: a run does."""
