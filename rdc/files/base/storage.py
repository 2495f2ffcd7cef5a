"""Storage: what is known of the file system that a tree is written to, and so what a run sets of its entries.

Each Root has one. Without a sync everything is set, and a failure is an error. A sync says what both ends
preserve (`agree`), and learns what the file system keeps before its first write (`learn`).
"""

from __future__ import annotations

from functools import partial

from rdc.files.base.metadata import kind_of, metadata_of
from rdc.files.base.shortfalls import STOPS_THE_RUN, Shortfalls, strictly
from rdc.lean.records import replace
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import (
    ALL_MODES,
    EVERYTHING,
    EXACT,
    PLAIN,
    FileSystemFacts,
    Preserved,
    granularity_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from rdc.files.base.shortfalls import Attempt, Shortfall

__all__ = ["Storage"]


class Storage:
    """The facts of one tree's file system, and the parts of metadata that are set there."""

    def __init__(self) -> None:
        self.facts: FileSystemFacts = PLAIN
        self.is_learned = False
        """The facts were found out by this run, not by an earlier one or from the type."""
        self.shortfalls: dict[Shortfall, Shortfalls] = {}
        self.preserved: Preserved = EVERYTHING
        """What both ends preserve, as far as is known."""
        self._made: Preserved = EVERYTHING
        """What is set of an entry that the run makes. Bits of a mode that only the source lacks are."""
        self._asked: Preserved | None = None
        self._source: Preserved = EVERYTHING
        self._insists = False
        self.unsynced = 0
        """The errno with which a file system that does not sync refused it; 0: none did."""
        self.borrowed: dict[bytes, int] = {}
        """The modes of directories in which the owner borrowed permissions, by path."""

    def agree(self, asked: Preserved, source: Preserved, *, insists: bool) -> None:
        """Take note of what the options ask to preserve, and of what the source preserves. `insists`: owners
        are set whatever the file system is known to keep."""
        self._asked, self._source, self._insists = asked, source, insists
        self._decide()

    def rely_on(self, facts: FileSystemFacts, *, learned: bool) -> None:
        """Take `facts` as those of the file system."""
        self.facts, self.is_learned = facts, learned
        self._decide()

    def _decide(self) -> None:
        if self._asked is None:
            return
        keeps = replace(self.facts.keeps, owner=self.facts.keeps.owner or self._insists)
        self.preserved = self._asked.also(keeps).both(self._source)
        every = replace(self._asked, modes=ALL_MODES, directory_modes=ALL_MODES)
        # What a new entry gets is set as it is: its own time is no multiple yet.
        self._made = replace(every.also(keeps), granularity=EXACT)

    @property
    def is_agreed(self) -> bool:
        """Whether a sync writes here, so that content arrives although a part of the metadata does not."""
        return self._asked is not None

    @property
    def is_plain(self) -> bool:
        """Whether everything is set of new entries, and each call does what it says."""
        made = self._made
        return self.facts.is_plain and made.keeps_all_modes and made.group and not made.untimed

    @property
    def sets_found_whole(self) -> bool:
        """Whether all of the metadata is set of entries that were there, but for owners that nobody sets."""
        both = self.preserved
        return both.keeps_all_modes and both.keeps_all_times and (both.group or not both.owner)

    # What is set

    def of_made(self, wanted: Metadata, now: os.stat_result) -> Metadata:
        """What is set of an entry that the run has made, of which `now` is the stat."""
        if self._asked is None:
            return wanted
        return self._made.onto(wanted, metadata_of(now), kind_of(now.st_mode))

    def of_settled(self, wanted: Metadata, now: os.stat_result) -> Metadata:
        """What is still to be set of an entry that was given `wanted` and has now the stat `now`."""
        wanted = self.of_made(wanted, now)
        as_kept = self.facts.keeps.granularity.alike(wanted.mtime_ns, now.st_mtime_ns)
        return replace(wanted, mtime_ns=now.st_mtime_ns) if as_kept else wanted

    def of_found(self, wanted: Metadata, now: os.stat_result) -> Metadata:
        """What is set of an entry that was there, of which `now` is the stat."""
        return self.onto_found(wanted, metadata_of(now), kind_of(now.st_mode))

    def onto_found(self, wanted: Metadata, now: Metadata, kind: int) -> Metadata:
        """What is set of an entry that was there, of this Kind and with the metadata `now`."""
        return wanted if self._asked is None else self.preserved.onto(wanted, now, kind)

    def of_directory(self, path: bytes, wanted: Metadata, now: os.stat_result) -> Metadata:
        """What is set of the directory at `path` when the work in it is done: as `of_found`, and it gets back
        the mode that it had before its owner borrowed permissions."""
        if self._asked is None:
            return wanted
        mode = self.borrowed.pop(path, None)
        before = metadata_of(now) if mode is None else replace(metadata_of(now), mode=mode)
        return self.preserved.onto(wanted, before, Kind.DIRECTORY)

    def times_made(self, kind: int) -> bool:
        """Whether entries of this Kind get mtimes when they are made."""
        return self._made.is_timed(kind)

    # What failed

    def attempts(self, path: bytes) -> Attempt:
        """Return an Attempt that notes what fails for the entry at `path`, unless all entries would fail."""
        return strictly if self._asked is None else partial(self._attempt, path)

    def _attempt(self, path: bytes, what: Shortfall, call: Callable[[], None]) -> bool:
        try:
            call()
        except OSError as error:
            if error.errno in STOPS_THE_RUN:
                raise
            self.note(what, path, error.errno or 0)
            return False
        return True

    def note(self, what: Shortfall, path: bytes, number: int) -> None:
        """Note that `what` failed for the entry at `path`, with this errno."""
        known = self.shortfalls.get(what)
        if known is None:
            self.shortfalls[what] = Shortfalls(1, path, number)
        else:
            self.shortfalls[what] = replace(known, count=known.count + 1)

    def learn_from(self, wanted: Metadata, now: os.stat_result, *, owner: bool) -> None:
        """Take note of the stat that an entry has after `wanted` was set, uid and gid with `owner`: what is
        not as it was set is not kept."""
        found, kind = metadata_of(now), kind_of(now.st_mode)
        keeps = self.facts.keeps
        lost = (wanted.mode ^ found.mode) & ALL_MODES
        if lost and kind is Kind.DIRECTORY:
            keeps = replace(keeps, directory_modes=keeps.directory_modes & ~lost)
        elif lost and kind is not Kind.SYMLINK:
            keeps = replace(keeps, modes=keeps.modes & ~lost)
        if owner and (wanted.uid, wanted.gid) != (found.uid, found.gid):
            keeps = replace(keeps, owner=False)
        if not keeps.granularity.alike(wanted.mtime_ns, found.mtime_ns) and keeps.is_timed(kind):
            coarser = granularity_of(((wanted.mtime_ns, found.mtime_ns),), keeps.granularity.step)
            if coarser is None:
                apart = kind if kind in (Kind.DIRECTORY, Kind.SYMLINK) else Kind.FILE
                keeps = replace(keeps, untimed=keeps.untimed | {apart})
            else:
                keeps = replace(keeps, granularity=coarser)
        if keeps != self.facts.keeps:
            self.rely_on(replace(self.facts, keeps=keeps), learned=self.is_learned)
