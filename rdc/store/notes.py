"""Notes that speed up work on a store: which directories the last put saw, and when each pack was read.

They lie in the directory of the user's catalog and are about one store each. Nothing depends on them: without
them, directories are looked at file by file, and other packs are read first. A note that somebody else could
have written is not read.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from blake3 import blake3

from rdc.catalog.file_state import boot, is_racy, is_unsettled
from rdc.files.facts.file_systems import file_system_of
from rdc.model.entries import LINKED, little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.store.snapshots import Snapshot
    from rdc.tree.walk import WalkedDirectory

NOTE_BYTES = 256 << 20
"""Most bytes of one note: STATE_BYTES of 16 million directories."""

STATE_BYTES = 16
"""Bytes that a note keeps of a directory."""

_TREE_BYTES = 32
_UNKNOWN = bytes(STATE_BYTES)
_ONE_NAME = (1).to_bytes(4, "little")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_note(directory: bytes, name: bytes) -> bytes:
    """Return a note; b"" if there is none, or it is not this user's alone to write."""
    with suppress(OSError):
        fd = os.open(os.path.join(directory, name), _READ)
        try:
            found = os.fstat(fd)
            is_own = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if is_own and stat.S_ISREG(found.st_mode) and found.st_size <= NOTE_BYTES:
                with open(fd, "rb", closefd=False) as file:
                    return file.read(NOTE_BYTES)
        finally:
            os.close(fd)
    return b""


def write_note(directory: bytes, name: bytes, data: bytes) -> None:
    """Write a note, whole or not at all. A failure is no problem."""
    path = os.path.join(directory, name)
    aside = b"%s.%d.new" % (path, os.getpid())
    with suppress(OSError):
        os.makedirs(directory, 0o700, exist_ok=True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(aside, flags, 0o600), "wb") as file:
                file.write(data)
            os.replace(aside, path)
        finally:
            with suppress(OSError):
                os.unlink(aside)


class SeenDirectories:
    """The state in which puts of one series saw each directory: its entries, their inodes and their ctimes.

    A directory that still has the state of the last put has the same record in the tree, so none of its files
    is looked at. A state is remembered by the catalog's rule (rdc.catalog.file_state): only if every later
    change of an entry moves its ctime. Directories with hard links are not remembered, because the numbers of
    their groups differ from put to put.
    """

    def __init__(self, place: bytes | None, store: bytes, series: bytes, kinds: int, root: int) -> None:
        """`place`: where notes are; None: none are kept. `store`: its id. `kinds`: of the extended attributes
        that are read. `root`: descriptor of the directory that is put."""
        self._place = place
        self._name = b"store-%s-%s.seen" % (
            store.hex().encode(),
            blake3(series).digest(8).hex().encode(),
        )
        self._kinds = b"%d" % kinds
        self._device = os.fstat(root).st_dev
        self._times = file_system_of(root).change_times
        self._known = memoryview(b"")
        self._found = bytearray()
        self._was = b""

    def take(self, snapshot: Snapshot) -> None:
        """Read what is known of the directories of a snapshot."""
        if self._place is None or self._times.proves_nothing:
            return
        self._was = read_note(self._place, self._name)
        if self._was[:_TREE_BYTES] == _tree_digest(snapshot):
            self._known = memoryview(self._was)[_TREE_BYTES:]

    def is_as_seen(self, number: int, walked: WalkedDirectory) -> bool:
        """Return whether a directory is as directory `number` of the snapshot was."""
        known = self._known[STATE_BYTES * number : STATE_BYTES * (number + 1)]
        if len(known) < STATE_BYTES or known == _UNKNOWN:
            return False
        state = self._state(walked)
        return known == self._settled(state, unsettled=False) or known == self._settled(state, unsettled=True)

    def keep(self, first: int, stop: int) -> None:
        """Remember directories [first, stop) of the snapshot, which are as seen, as the next ones of this
        put."""
        self._found += self._known[STATE_BYTES * first : STATE_BYTES * stop]

    def note(self, walked: WalkedDirectory | None, began: int) -> None:
        """Remember the next directory of this put, whose files were read from `began` on, in nanoseconds.

        None: one that has no record as it was walked.
        """
        if self._place is None:
            return
        self._found += _UNKNOWN if walked is None else self._final_state(walked, began)

    def write(self, snapshot: Snapshot) -> None:
        """Keep what is known for the next put, whose old snapshot this one will be."""
        if self._place is None or self._times.proves_nothing:
            return
        data = _tree_digest(snapshot) + self._found
        if data != self._was:
            write_note(self._place, self._name, data)

    def _final_state(self, walked: WalkedDirectory, began: int) -> bytes:
        """Return the state of a directory that no change leaves as it is; else _UNKNOWN."""
        newest = max(little_endian_integers("q", walked.inodes.ctimes), default=began - (1 << 62))
        if is_racy(newest, began, self._times) or linked_rows(walked):
            return _UNKNOWN
        device = self._device.to_bytes(8, "little")
        if walked.inodes.devices != device * walked.listing.count:
            return _UNKNOWN
        return self._settled(self._state(walked), unsettled=is_unsettled(newest, began))

    def _state(self, walked: WalkedDirectory) -> bytes:
        listing, inodes = walked.listing, walked.inodes
        columns = (
            listing.names,
            listing.kinds,
            listing.modes,
            listing.sizes,
            listing.mtimes,
            listing.uids,
            listing.gids,
            listing.targets,
            inodes.devices,
            inodes.inodes,
            inodes.links,
            inodes.ctimes,
        )
        # A path has no NUL, and the counts say where each column ends.
        head = b"%s\0%s\0%d\0%d\0" % (walked.path, self._kinds, listing.count, len(listing.names))
        return blake3(head + b"".join(columns)).digest()

    def _settled(self, state: bytes, *, unsettled: bool) -> bytes:
        """Return what is kept of a state. `unsettled`: it is valid in this boot only."""
        return blake3(b"rdc store seen" + (boot() if unsettled else b"") + state).digest(STATE_BYTES)


def _tree_digest(snapshot: Snapshot) -> bytes:
    tree = snapshot.tree
    return blake3(b"%d %d " % (tree.size, tree.level) + tree.keys).digest()


def linked_rows(walked: WalkedDirectory) -> Sequence[int]:
    """Return the rows of a directory whose files have several names."""
    count, kinds = walked.listing.count, walked.listing.kinds
    if walked.inodes.links == _ONE_NAME * count:  # most directories
        return ()
    links = little_endian_integers("I", walked.inodes.links)
    return [row for row, names in enumerate(links) if names > 1 and kinds[row] in LINKED]
