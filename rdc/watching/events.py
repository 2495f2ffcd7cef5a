"""Inotify events of a tree: directories with changes, collected until a burst is over.

watchdog reads and parses the events. Its observers are not used: they hold back a lone half of a rename for
half a second, name paths instead of the directories to read, and descend into filtered directories. watchdog
reports an overflow of the kernel's queue from version 7.1 on; earlier versions drop that event.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import select
import sys
import threading
import time
from contextlib import suppress

from watchdog.observers.inotify_c import InotifyConstants as Inotify
from watchdog.observers.inotify_c import InotifyFD, inotify_add_watch

from rdc.errors import FileError, RdcError
from rdc.files.base.paths import join
from rdc.lean.records import Record
from rdc.limits import TOUCHED_DIRECTORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from watchdog.observers.inotify_c import InotifyEvent

    from rdc.files.root.root import Root


# Bell: a descriptor that becomes readable when another thread rings.

_ONCE = (1).to_bytes(8, sys.byteorder)
"""The value that an eventfd takes. A pipe takes anything."""

_READ_BYTES = 4096
"""All that can have been written to a pipe: it is rung a few times at most before somebody looks."""


class Bell:
    """An eventfd, or a pipe where the system has none."""

    __slots__ = ("_striker", "fd")

    def __init__(self) -> None:
        """Open the descriptors of a bell that is silent. Raises OSError."""
        try:
            self.fd = self._striker = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.ENOSYS:
                raise
            self.fd, self._striker = os.pipe()
            os.set_blocking(self.fd, False)
            os.set_blocking(self._striker, False)

    def ring(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full of rings: one more tells nothing
            os.write(self._striker, _ONCE)

    def silence(self) -> None:
        """Make the descriptor unreadable until the next ring."""
        with suppress(BlockingIOError):
            os.read(self.fd, _READ_BYTES)

    def close(self) -> None:
        for fd in {self.fd, self._striker}:
            os.close(fd)


# The mounts below a tree, and notice of changed mounts, which inotify reports only in part.
#
# IN_UNMOUNT reports a file system that is unmounted for good. It reports neither a bind mount nor a file
# system detached while in use (umount -l).

_TABLE = "/proc/self/mountinfo"
_CHANGED = select.POLLPRI | select.POLLERR
"""The events of a changed mount table since the descriptor's last poll (proc(5))."""
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class Mounts:
    """The mounts below a directory. A mount that disappears is missed with its content, which would otherwise
    look deleted."""

    def __init__(self, top: bytes) -> None:
        """top: absolute path of the directory, without links. On a system without a mount table nothing is
        ever missed. Raises RdcError where the system has one and /proc is not mounted."""
        self._below = top.rstrip(b"/") + b"/"
        self._known: dict[int, bytes] = {}
        self._fd = -1
        self._missed: bytes | None = None
        try:
            self._fd = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if sys.platform == "linux":
                # The entries of an unmounted file system would be taken for deleted.
                raise RdcError(
                    f"cannot watch: {_TABLE} cannot be read ({error.strerror}); mount /proc and run again"
                ) from error
            return
        with contextlib.suppress(OSError):
            self._poll = select.poll()
            self._poll.register(self._fd, _CHANGED)
            self._poll.poll(0)
            self._known = self._read()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def missed(self) -> bytes | None:
        """Return the path, below the directory, of a mount that disappeared; None without one, or once it is
        mounted there again. Costs one system call if no mount changed."""
        if self._fd >= 0 and self._poll.poll(0):
            now = self._read()
            # By number, since the path of a mount changes when a directory above it is renamed.
            gone = [path for number, path in self._known.items() if number not in now]
            self._missed = next((path for path in gone if path not in now.values()), None)
            if self._missed is None:
                self._known = now
        return self._missed

    def _read(self) -> dict[int, bytes]:
        """Return the paths relative to the directory, by mount number."""
        found = {}
        os.lseek(self._fd, 0, os.SEEK_SET)
        with open(self._fd, "rb", closefd=False) as table:
            for line in table:
                number, _, _, _, point, *_ = line.split(b" ")
                path = _ESCAPE.sub(lambda escape: bytes((int(escape[1], 8),)), point)
                if path.startswith(self._below):
                    found[int(number)] = path[len(self._below) :]
        return found


class MountBell(threading.Thread):
    """Calls `ring`, from this thread, whenever the mount table changes."""

    def __init__(self, ring: Callable[[], None]) -> None:
        super().__init__(name="rdc mounts", daemon=True)
        self._ring = ring
        self._end = Bell()
        self.start()

    def stop(self) -> None:
        self._end.ring()
        self.join()
        self._end.close()

    def run(self) -> None:
        try:
            table = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        poll = select.poll()
        poll.register(table, _CHANGED)
        poll.register(self._end.fd, select.POLLIN)
        try:
            # The first poll of a descriptor only records the state of the table.
            poll.poll(0)
            while self._end.fd not in {fd for fd, _ in poll.poll()}:
                self._ring()
        finally:
            os.close(table)


QUIET_SECONDS = 0.08
"""Seconds without an event that end a burst: an editor's save takes some milliseconds."""

BURST_SECONDS = 0.3
"""Longest burst in seconds, counted from its first event."""

_MASK = (
    Inotify.IN_MODIFY
    | Inotify.IN_ATTRIB
    | Inotify.IN_CLOSE_WRITE
    | Inotify.IN_MOVED_FROM
    | Inotify.IN_MOVED_TO
    | Inotify.IN_CREATE
    | Inotify.IN_DELETE
    | Inotify.IN_DELETE_SELF
    | Inotify.IN_MOVE_SELF
    | Inotify.IN_ONLYDIR
    | Inotify.IN_EXCL_UNLINK
)
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES}
"""Errors of a directory that is gone, or that the next walk will report."""


class MoveSeen(Record):
    """A rename within the tree."""

    old: bytes
    new: bytes
    directory: bool


class Batch(Record):
    """The changes of one burst of events. Paths are relative to the tree's root."""

    directories: frozenset[bytes]
    """Directories whose entries or own metadata changed."""
    trees: frozenset[bytes]
    """Directories that are new at their paths, to be read with everything below them."""
    moves: tuple[MoveSeen, ...]
    """Renames in the order in which they happened."""
    overflow: bool
    """True if events were lost, so the whole tree must be read."""


class TreeEvents:
    """Watches the directories given to it. `bell` becomes readable when a burst begins."""

    def __init__(
        self, start: bytes, *, clock: Callable[[], float] = time.monotonic, running: bool = True
    ) -> None:
        """start: the top of the tree, whose removal also rings. clock: monotonic seconds. Without `running`,
        events stay in the kernel's queue until `run`."""
        self._bell = Bell()
        self.bell = self._bell.fd
        self.limit: str | None = None
        """Why some directories are not watched; None if all are."""
        self._start = start
        self._clock = clock
        self._lock = threading.Lock()
        self._paths: dict[int, bytes] = {}
        self._directories: set[bytes] = set()
        self._trees: set[bytes] = set()
        self._moves: list[MoveSeen] = []
        self._leaving: dict[int, bytes] = {}
        """Old paths of renames without their second half, by cookie."""
        self._missed: set[bytes] = set()
        """Directories that could not be read, for example for lack of permission."""
        self._overflow = False
        self._first: float | None = None
        self._last = 0.0
        self._reader: _Reader | None = None
        try:
            self._reader = _Reader(self._take_event)
        except OSError as error:
            self.limit = _limit(error.errno or 0)
        self._mounts = MountBell(self._mounts_changed)
        if running:
            self.run()

    def run(self) -> None:
        """Start to read events."""
        if self._reader is not None:
            self._reader.start()

    def close(self) -> None:
        self._mounts.stop()
        if self._reader is not None:
            self._reader.stop()
            if self._reader.is_alive():
                self._reader.join()
        self._bell.close()

    def watch(self, root: Root, path: bytes) -> None:
        """Watch the directory at `path`, or update its path if it is watched under another one.

        Call it before reading the directory, so later changes are reported.
        """
        if self._reader is None:
            return
        try:
            directory = root.directory(path, fresh=True)
        except FileError:
            return
        with self._lock:
            # The path through the descriptor follows no link to elsewhere and is never too long.
            number = inotify_add_watch(self._reader.descriptor, b"/proc/self/fd/%d" % directory.fd, _MASK)
            if number >= 0:
                self._paths[number] = path
                self._missed.discard(path)
                return
            code = ctypes.get_errno()
        if code not in _GONE:
            self.limit = self.limit or _limit(code)

    def missed(self, path: bytes) -> None:
        """Note that the directory at `path` could not be read: after an event on it, all below it is new."""
        with self._lock:
            self._missed.add(path)

    def due(self) -> float | None:
        """Return the seconds until the current burst should be taken; None without one."""
        with self._lock:
            if self._first is None:
                return None
            now = self._clock()
            return max(0.0, min(self._last + QUIET_SECONDS, self._first + BURST_SECONDS) - now)

    def touch(self, path: bytes, *, tree: bool = False) -> None:
        """Act as if the directory at `path` had changed, or (`tree`) anything below it."""
        with self._lock:
            (self._trees if tree else self._directories).add(path)
            self._ring()

    def take(self) -> Batch:
        """Return everything touched since the last call."""
        with self._lock:
            batch = Batch(
                frozenset(self._directories), frozenset(self._trees), tuple(self._moves), self._overflow
            )
            self._clear()
            self._overflow = False
            self._first = None
        self._bell.silence()
        return batch

    def quiet(self) -> None:
        """Stop the bell and keep what was touched."""
        self._bell.silence()

    def _clear(self) -> None:
        self._directories, self._trees, self._moves, self._leaving = set(), set(), [], {}

    def _ring(self) -> None:
        self._last = self._clock()
        if self._first is None:
            self._first = self._last
            self._bell.ring()

    # In other threads

    def _mounts_changed(self) -> None:
        """Ring, and do nothing else: the user of the batch checks that the tree's top is still there."""
        with self._lock:
            self._ring()

    def _take_event(self, event: InotifyEvent) -> None:
        with self._lock:
            if event.mask & Inotify.IN_Q_OVERFLOW:
                self._overflow = True
                self._clear()
            elif event.mask & Inotify.IN_IGNORED:
                self._paths.pop(event.wd, None)
                return
            elif event.wd not in self._paths or not self._sort(self._paths[event.wd], event):
                return
            if len(self._directories) + len(self._trees) + len(self._moves) > TOUCHED_DIRECTORIES:
                self._overflow = True
                self._clear()
            self._ring()

    def _sort(self, directory: bytes, event: InotifyEvent) -> bool:
        """Record an event. False: other events say the same."""
        mask = event.mask
        if mask & (Inotify.IN_UNMOUNT | Inotify.IN_DELETE_SELF | Inotify.IN_MOVE_SELF):
            # Only ring: the user of the batch checks that the tree's top is still there.
            return directory == self._start or bool(mask & Inotify.IN_UNMOUNT)
        self._directories.add(directory)
        if not event.name:
            if directory in self._missed:
                self._trees.add(directory)
            return True
        path, is_directory = join(directory, event.name), bool(mask & Inotify.IN_ISDIR)
        if mask & Inotify.IN_MOVED_FROM:
            self._leaving[event.cookie] = path
        elif mask & Inotify.IN_MOVED_TO:
            old = self._leaving.pop(event.cookie, None)
            if old is not None:
                self._moves.append(MoveSeen(old, path, is_directory))
        if is_directory and (mask & (Inotify.IN_CREATE | Inotify.IN_MOVED_TO) or path in self._missed):
            self._trees.add(path)
        return True


class _Reader(InotifyFD):
    """watchdog's reading thread, with a single receiver of its events."""

    def __init__(self, take: Callable[[InotifyEvent], None]) -> None:
        super().__init__()
        self._take = take

    @property
    def descriptor(self) -> int:
        return self._inotify_fd

    def handle_event(self, event: InotifyEvent) -> None:
        self._take(event)


def _limit(code: int) -> str:
    if code == errno.ENOSPC:
        return "fs.inotify.max_user_watches is reached (sysctl raises it)"
    if code == errno.EMFILE:
        return "fs.inotify.max_user_instances is reached (sysctl raises it)"
    return f"inotify: {os.strerror(code)}"
