"""StagedClones: clones by which one thread hands whole files to another, which makes new files of them.

In a local sync the source clones a file, without a name, where the destination lies. It then reads the
clone in place of the file. The destination begins the new version as a clone of that clone, and hashes what
the source has read. Nobody else can write to it: what was hashed is what the new version holds.

A run has these before it knows of a file, so this module loads nothing that writes files.
"""

from __future__ import annotations

import os

from rdc.files.base.syscalls import LASTING_REFUSALS, clone_range, share_of_descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile


CLONED_FILE_BYTES = 128 << 10
"""Files from this size on are cloned. A smaller one is written in less time than its extents are shared."""

SINGLE_REFUSALS = 8
"""Refusals that may concern one pair of files, such as EINVAL for a file without checksums on btrfs. After so
many in a row the file system counts as one that cannot."""

STAGED_CLONES = 32
"""Clones under way at a time: as many as the messages between the threads can be about."""

_NAMELESS = getattr(os, "O_TMPFILE", 0)


class StagedClones:
    """Nameless clones of files, numbered as in the source's manifest. The threads may call at any time."""

    def __init__(self) -> None:
        import threading  # a millisecond: a destination needs the constants above alone

        self._lock = threading.Lock()
        self._directory = -1
        """A directory at the file system that clones are made on; -1: none."""
        self._staged: dict[int, SourceFile] = {}
        self._most = share_of_descriptors(STAGED_CLONES)
        self._refusals: dict[int, int] = {}
        """The number of times in a row that cloning from a device was refused."""

    def stage_at(self, root: Root) -> None:
        """Have clones made at the file system of this root from now on, unless its files are to be sparse, or
        to have no holes."""
        if _NAMELESS and root.writes.long_holes and not root.writes.sparse:
            self._directory = os.dup(root.fileno())

    def stage(self, number: int, source: SourceFile) -> SourceFile | None:
        """Clone a file. Return what reads the clone, which has the size that `source` had when it was opened.

        None: the file has to be read itself.
        """
        device = source.identity.device
        if self._directory < 0 or source.size < CLONED_FILE_BYTES:
            return None
        if self._refusals.get(device, 0) >= SINGLE_REFUSALS:
            return None
        source.rest()
        with self._lock:
            if len(self._staged) >= self._most:
                return None
        staged = self._clone(source, device)
        if staged is None:
            return None
        if staged.size != source.size:  # it changed since it was opened, as its reader will notice
            staged.close()
            return None
        try:
            twin = staged.again()
        except OSError:
            staged.close()
            return None
        with self._lock:
            before = self._staged.pop(number, None)
            self._staged[number] = twin
        if before is not None:
            before.close()
        return staged

    def _clone(self, source: SourceFile, device: int) -> SourceFile | None:
        try:
            fd = os.open(b".", _NAMELESS | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=self._directory)
        except OSError:
            self._refusals[device] = SINGLE_REFUSALS
            return None
        try:
            clone_range(source.fileno(), 0, 0, fd, 0)
        except OSError as error:
            lasting = error.errno in LASTING_REFUSALS
            self._refusals[device] = SINGLE_REFUSALS if lasting else self._refusals.get(device, 0) + 1
            os.close(fd)
            return None
        self._refusals[device] = 0
        return source.read_through(fd)

    def take(self, number: int) -> SourceFile | None:
        """Return the clone of a file, once, or None. Those staged before are not wanted any more."""
        with self._lock:
            if number not in self._staged:
                return None
            passed = []
            for one in list(self._staged):
                passed.append(self._staged.pop(one))
                if one == number:
                    break
        for unwanted in passed[:-1]:
            unwanted.close()
        return passed[-1]

    def close(self) -> None:
        """Release all clones that nobody took."""
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1
        with self._lock:
            left, self._staged = list(self._staged.values()), {}
        for one in left:
            one.close()
