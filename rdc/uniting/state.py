"""The state of a two-way sync, in `.rdc-unite` at each root: ids, locks, ancestors, journals (STATE.md).

Whatever is missing, damaged, copied from elsewhere or older than the other side's costs the ancestor, or a
part of it. That adds conflicts and entries that come back. It never deletes, and never locks a user out.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress
from zlib import crc32

from blake3 import blake3

from rdc.errors import ExitCode, RdcError, printable
from rdc.files.base.directory_descriptors import honours_no_replace
from rdc.files.base.paths import UNITE_NAME
from rdc.files.base.syscalls import birth_time, rename_no_replace_between
from rdc.files.base.taking_names import create_temporary, flush, sync_directory_at
from rdc.files.own.record_log import (
    RecordError,
    complete_lines,
    encoded,
    line_of,
    path_of,
    time_of,
    value_of,
)
from rdc.files.root.root import Root
from rdc.lean.records import Record
from rdc.limits import NAME_BYTES, RULES_BYTES, UNITE_EDGES, UNITE_FILE_BYTES, UNITE_UNITS
from rdc.model.preserved import nearest_time, packed_time
from rdc.uniting.ancestor_file import DamagedError, StoredAncestor
from rdc.uniting.file_systems import is_private
from rdc.uniting.journal import OpenPlan, plan_lines, read_plans
from rdc.uniting.pair_rules import decode_rules, encode_rules
from rdc.uniting.rings import EDGE_BYTES, edge_of, is_at, pack_edges, same_place, unpack_edges
from rdc.uniting.rows import LEFT, PROCESS_CLOCK, RIGHT, clock_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from rdc.files.root.root import Root
    from rdc.uniting.ancestor_file import EncodedAncestor
    from rdc.uniting.pair_rules import KeptRules

ID_BYTES = 16
MARK_DIGEST_BYTES = 16
"""Bytes of the digest of what both sides have in common by which they compare it."""

NO_GENERATION = bytes(8)
"""The generation of a pair without an ancestor."""

_ROOT_MAGIC = b"RDCROOT\x01"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ANCESTOR, _OLDER, _NEW = b"ancestor", b"ancestor.1", b"ancestor.new"
_MARK = b"mark"
_EDGES, _EDGES_MAGIC = b"edges", b"RDCEDGE\x01"
_JOURNAL, _OPEN, _RULES = b"journal", b"open", b"rules"
_LOCK = b"lock"
_NO_JOURNAL = b"not rdc's\nnot rdc's\n"
"""Stands for what is in the place of a journal: read_plans takes it for damage."""
_TRIED = b"try", b"try.1"
RULES_FILE_BYTES = 2 * RULES_BYTES + 2 * UNITE_UNITS * NAME_BYTES
"""The longest file of rules that is read, in base64."""


class OpenConflict(Record):
    """One conflict that the last run left, for `rdc unite --status`."""

    path: bytes
    about: str
    sizes: tuple[int, int]
    """The sizes at the left side, and at the right one. Each side keeps its own first, as it does the
    times."""
    mtimes_ns: tuple[int, int]

    def seen_from(self, side: int) -> OpenConflict:
        """Return the conflict with that side first."""
        if side == LEFT:
            return self
        return OpenConflict(self.path, self.about, self.sizes[::-1], self.mtimes_ns[::-1])


class Base(Record):
    """The ancestors that both sides have of one run; None: there are none that can be trusted."""

    ancestors: tuple[StoredAncestor, StoredAncestor] | None
    plans: tuple[OpenPlan, ...]
    notice: str
    """Why there is no ancestor, or only an older one; "" if all is well or this is the first run."""

    @property
    def generation(self) -> bytes:
        """The generation of the ancestors."""
        return self.ancestors[LEFT].head.generation if self.ancestors else NO_GENERATION


class RootState:
    """The directory `.rdc-unite` of one root. A context manager that unlocks and closes it."""

    def __init__(self, root: Root, *, write: bool, learn: Callable[[], None] | None = None) -> None:
        """Open the directory, and make and lock it if the run writes. Raises RdcError.

        `root` relies on what is known of its file system. `learn`: finds out more, in a first meeting.
        """
        self._root = root
        self._writes = write
        self._learn = learn
        self.shown = root.shown(UNITE_NAME)
        self._fd = self._lock = -1
        self.id: bytes | None = None
        """None: the root has none yet, or it is a copy of another one."""
        self.damage = ""
        """The fault of the file of the id, by which the pair loses its ancestor; "" for none."""
        self.clock = PROCESS_CLOCK
        """The clock of the file system, once the lock is taken."""
        try:
            self._open(write=write)
        except BaseException:
            self.close()
            raise

    def _open(self, *, write: bool) -> None:
        top = self._root.fileno()
        with _failing(self.shown, "use it"):
            if write:
                before = os.fstat(top)
                with suppress(FileExistsError):
                    os.mkdir(UNITE_NAME, 0o700, dir_fd=top)
                    with suppress(OSError):  # a directory of another user keeps the new time
                        os.utime(b".", dir_fd=top, ns=(before.st_atime_ns, before.st_mtime_ns))
                    sync_directory_at(b".", top)
            try:
                self._fd = os.open(UNITE_NAME, _DIRECTORY, dir_fd=top)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                    raise
                raise self._not_usable("something else", "move it away") from error
            found = os.fstat(self._fd)
            if not self._is_private(found):
                raise self._not_usable(
                    f"one of user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}",
                    "run as its owner, or move it away",
                )
            if write:
                self._take_lock()
            self.id = self._read_id()
            if self.id is None and write:
                if self._learn is not None:
                    self._learn()
                self.id = self._make_id()

    @property
    def files(self) -> _Files:
        """The files of the directory, once it is open."""
        return self.files_of(self._fd)

    def files_of(self, fd: int) -> _Files:
        """Return the files of an open directory in it."""
        return _Files(fd, self._root)

    def _is_private(self, found: os.stat_result) -> bool:
        if not is_private(found, self._root) and self._writes and self._learn is not None:
            self._learn()
        return is_private(found, self._root)

    def _not_usable(self, found: str, advice: str) -> RdcError:
        return RdcError(
            f"{printable(self.shown)}: cannot use it: expected a directory that only you can write, found"
            f" {found}; {advice}",
            code=ExitCode.FILE_IO,
        )

    def _take_lock(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self.files.make_way(_LOCK)
        self._lock = os.open(_LOCK, flags, 0o600, dir_fd=self._fd)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 40, 0).decode("ascii", "replace").strip()
            raise RdcError(
                f"{printable(self._root.label)}: another run of rdc unite works here now (process"
                f" {holder or 'unknown'}); run again when it has ended",
                code=ExitCode.BUSY,
            ) from error
        except OSError as error:
            raise RdcError(
                f"{printable(self.shown)}: cannot lock it: {error.strerror}; rdc unite needs a file system"
                " with locks, so that two runs never work at once",
                code=ExitCode.FILE_IO,
            ) from error
        os.ftruncate(self._lock, 0)
        before = time.time_ns()
        os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)
        self.clock = clock_of(os.fstat(self._lock).st_ctime_ns, before, time.time_ns())

    def _read_id(self) -> bytes | None:
        data = self.files.read(b"root", 64)
        if data is None:
            return None
        body, check = data[:-4], data[-4:]
        whole = len(data) == len(_ROOT_MAGIC) + ID_BYTES + 16 + 4
        if not (whole and body.startswith(_ROOT_MAGIC) and crc32(body).to_bytes(4, "little") == check):
            self.damage = f"{printable(self.shown)}/root: damaged: expected the id of the directory"
            return None
        return body[len(_ROOT_MAGIC) : -16] if body[-16:] == self._bound_to() else None

    def _bound_to(self) -> bytes:
        """Return what no copy of the tree has: a copy is a root of its own, also one that got the inode
        number of a directory that is gone. Where nothing of that lasts, a copy has the same id, and is the
        same directory at an older state."""
        if not self._root.stable.inode:
            return bytes(16)
        top = self._root.fileno()
        made = birth_time(top)
        if not made:
            with suppress(FileNotFoundError):
                made = -os.stat(_MARK, dir_fd=self._fd, follow_symlinks=False).st_ctime_ns
        return os.fstat(top).st_ino.to_bytes(8, "little") + made.to_bytes(8, "little", signed=True)

    def renew(self) -> None:
        """Give the root another id, as one that has none: it is a copy. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            self.id = self._make_id() if self._writes else None

    def _make_id(self) -> bytes:
        made = os.urandom(ID_BYTES)
        if self._root.stable.inode and not birth_time(self._root.fileno()):
            self.files.replace(_MARK, [])
        body = _ROOT_MAGIC + made + self._bound_to()
        self.files.replace(b"root", [body, crc32(body).to_bytes(4, "little")])
        return made

    @property
    def inode(self) -> int:
        """The root's inode number; 0 where its file system may give it another one."""
        return os.fstat(self._root.fileno()).st_ino if self._root.stable.inode else 0

    def can_rename(self) -> bool:
        """Return whether the file system renames an entry without replacing another one. It is tried here; a
        run that writes nothing only asks whether the system knows such a rename."""
        if not honours_no_replace(self._root.fileno()):
            return False
        if not self._writes:
            return True
        try:
            for name in _TRIED:
                self.files.make_way(name)
                with suppress(FileExistsError):
                    os.close(os.open(name, _WRITE, 0o600, dir_fd=self._fd))
            try:
                rename_no_replace_between(_TRIED[0], self._fd, _TRIED[1], self._fd)
            except FileExistsError:
                os.unlink(_TRIED[1], dir_fd=self._fd)
                rename_no_replace_between(_TRIED[0], self._fd, _TRIED[1], self._fd)
                return True
            return False
        except OSError:
            return False
        finally:
            for name in _TRIED:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=self._fd)

    def pairs(self) -> list[PairDirectory]:
        """Return the pairs that this root is part of. The caller closes them. Raises RdcError."""
        if self._fd < 0:
            return []
        with _failing(self.shown, "list it"):
            names = sorted(os.fsencode(name) for name in os.listdir(self._fd))
        found = [PairDirectory.open(self, name) for name in names if len(name) == 16]
        return [pair for pair in found if pair is not None]

    def known_at(self, place: bytes) -> int:
        """Return how many entries this side remembers of a directory at `place`. Raises RdcError."""
        known = 0
        for pair in self.pairs():
            try:
                latest = pair.latest()
            finally:
                pair.close()
            if latest is not None and same_place(latest.head.place, place):
                known = max(known, latest.count)
        return known

    def edges(self, place: bytes, location: bytes) -> frozenset[bytes]:
        """Return the pairs that this root is part of, and those that it heard of. Raises RdcError.

        `place`: where the directory is that it meets for the first time; `location`: the same as the other
        machine names it, b"" if unknown. A pair with one at the same place is over: that directory had
        another id before its state was lost.
        """
        found: set[bytes] = set()
        if self.id is None:
            return frozenset()
        for pair in self.pairs():
            try:
                latest = pair.latest()
            finally:
                pair.close()
            head = latest.head if latest is not None else None
            if (
                head is not None
                and head.own == self.id
                and not same_place(head.place, place)
                and (not location or head.location != location)
            ):
                found.add(edge_of(self.id, head.other))
        with _failing(self.shown, "read the edges in it"):
            data = self.files.read(_EDGES, len(_EDGES_MAGIC) + UNITE_EDGES * EDGE_BYTES + 4) or b""
        body, check = data[:-4], data[-4:]
        if body.startswith(_EDGES_MAGIC) and crc32(body).to_bytes(4, "little") == check:
            with suppress(ValueError):
                heard = unpack_edges(body[len(_EDGES_MAGIC) :])
                found.update(edge for edge in heard if not is_at(edge, self.id))
        return frozenset(found)

    def note_edges(self, edges: Iterable[bytes]) -> None:
        """Keep the pairs of others, on disk. Raises RdcError."""
        own = self.id or b""
        heard = pack_edges(edge for edge in edges if not is_at(edge, own))
        body = _EDGES_MAGIC + heard
        data = body + crc32(body).to_bytes(4, "little")
        with _failing(self.shown, "note the edges in it"):
            before = self.files.read(_EDGES, len(data))
            if before != data and (heard or before is not None):
                self.files.replace(_EDGES, [data])

    @property
    def fd(self) -> int:
        """The descriptor of the directory; -1 if there is none."""
        return self._fd

    def close(self) -> None:
        """Unlock and close the directory. May be called again."""
        for fd in (self._lock, self._fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pair_of_roots(paths: Iterable[bytes]) -> bytes:
    """Return the name of the pair of two directories of this machine that have met. Raises RdcError."""
    ids = []
    for path in paths:
        root = Root.open(path)
        try:
            with RootState(root, write=False) as state:
                ids += [state.id] if state.id is not None else []
        finally:
            root.release()
    return pair_name(ids)


class PairDirectory:
    """The state of a pair that one root keeps."""

    def __init__(self, shown: bytes, name: bytes, fd: int, above: int, files: _Files) -> None:
        self.shown = shown
        self._name = name
        self._fd = fd
        self._above = above
        self._files = files

    @classmethod
    def open(cls, state: RootState, name: bytes, *, make: bool = False) -> Self | None:
        """Open the directory `name` of a root's state; None if there is none. Raises RdcError."""
        shown = state.shown + b"/" + name
        with _failing(shown, "use it"):
            if make:
                state.files.make_way(name, directory_wanted=True)
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=state.fd)
            try:
                fd = os.open(name, _DIRECTORY, dir_fd=state.fd)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return cls(shown, name, fd, state.fd, state.files_of(fd))

    # Ancestors

    def ancestors(self, *, rows: bool = False) -> tuple[list[StoredAncestor], list[str]]:
        """Return the ancestors that can be read, the most recent first, and what is wrong with the most
        recent.

        Without that the older one is worth nothing: it knows nothing of what was agreed since. `rows`: the
        rows are read, too, which costs a step for each.
        """
        found: list[StoredAncestor] = []
        for name in (_ANCESTOR, _OLDER):
            try:
                ancestor = self._ancestor(name)
                if ancestor is not None:
                    if rows:
                        _ = ancestor.table
                    found.append(ancestor)
            except DamagedError as error:
                wrong = f"{printable(self.shown)}/{name.decode()}: damaged: expected {error}"
            except RdcError as error:
                wrong = str(error)
            else:
                continue
            return found, [wrong] if name == _ANCESTOR else []
        return found, []

    def latest(self) -> StoredAncestor | None:
        """Return the most recent ancestor; None if it cannot be read, or there is none."""
        try:
            return self._ancestor(_ANCESTOR) or self._ancestor(_OLDER)
        except RdcError:
            return None

    def _ancestor(self, name: bytes) -> StoredAncestor | None:
        """Read one of the ancestors; None if it is not there. Raises RdcError, and DamagedError."""
        with _failing(self.shown + b"/" + name, "read it"):
            data = self._files.read(name, UNITE_FILE_BYTES)
        return None if data is None else StoredAncestor(data)

    def places(self) -> set[bytes] | None:
        """Return the places that the ancestors give for the other root; None: no ancestor can be read, and so
        nothing of the pair is worth anything."""
        found: set[bytes] = set()
        damaged = False
        for name in (_ANCESTOR, _OLDER):
            try:
                ancestor = self._ancestor(name)
                if ancestor is not None:
                    found.add(ancestor.head.place)
            except RdcError:
                damaged = True
        return None if damaged and not found else found

    def prepare(self, ancestor: EncodedAncestor) -> None:
        """Write the next ancestor beside the present one, on disk. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            self._files.replace(_NEW, ancestor.parts)

    def commit(self) -> None:
        """Make the prepared ancestor the present one. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            self._files.make_way(_ANCESTOR)
            self._files.make_way(_OLDER)
            with suppress(FileNotFoundError):
                self._files.rename(_ANCESTOR, _OLDER)
            self._files.rename(_NEW, _ANCESTOR)
            sync_directory_at(b".", self._fd)

    # The journal

    def begin(self, plan: OpenPlan) -> None:
        """Append what a run is about to do, on disk before this returns. Raises RdcError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with _failing(self.shown, "write the journal in it"):
            self._files.make_way(_JOURNAL)
            fd = os.open(_JOURNAL, flags, 0o600, dir_fd=self._fd)
            try:
                # Empty lines are between two plans, also where the last one was cut off in a line.
                os.lseek(fd, 0, os.SEEK_END)
                _write(fd, [b"\n\n", *plan_lines(plan)])
                flush(fd)
            finally:
                os.close(fd)
            sync_directory_at(b".", self._fd)
            sync_directory_at(b".", self._above)

    def plans(self) -> tuple[list[OpenPlan], bool]:
        """Return the plans that no ancestor has closed, and whether all of the journal could be read.

        A plan that was not written whole was not begun.
        """
        with _failing(self.shown, "read the journal in it"):
            data = self._files.read(_JOURNAL, UNITE_FILE_BYTES, instead=_NO_JOURNAL)
        if data is None:
            return [], True
        return read_plans(data)

    def end(self) -> None:
        """Remove the journal: both sides have the new ancestor. Raises RdcError."""
        with _failing(self.shown, "end the journal in it"), suppress(FileNotFoundError):
            self._files.make_way(_JOURNAL)
            os.unlink(_JOURNAL, dir_fd=self._fd)

    # Conflicts, for --status

    def open_conflicts(self) -> list[OpenConflict]:
        """Return the conflicts that the last run left."""
        with _failing(self.shown, "read the conflicts in it"):
            data = self._files.read(_OPEN, UNITE_FILE_BYTES) or b""
        found = []
        for line in complete_lines(data):
            with suppress(RecordError):
                found.append(_read_conflict(value_of(line)))
        return found

    def note_conflicts(self, conflicts: Sequence[OpenConflict], side: int) -> None:
        """Keep the conflicts for --status, as `side` sees them. Writes nothing if they are the same. Raises
        RdcError."""
        lines = _conflict_lines(conflicts, side)
        with _failing(self.shown, "note the conflicts in it"):
            if not self.has_noted(conflicts, side):
                self._files.replace(_OPEN, lines)

    def has_noted(self, conflicts: Sequence[OpenConflict], side: int) -> bool:
        """Return whether these are the conflicts that are kept. Raises RdcError."""
        with _failing(self.shown, "read the conflicts in it"):
            before = self._files.read(_OPEN, UNITE_FILE_BYTES) or b""
        return before == b"".join(_conflict_lines(conflicts, side))

    # Rules

    def rules(self) -> KeptRules | None:
        """Return the rules of the pair as this side keeps them; None: none, or none that can be read."""
        with _failing(self.shown, "read the rules in it"):
            data = self._files.read(_RULES, RULES_FILE_BYTES)
        try:
            return decode_rules(data) if data else None
        except RecordError:
            return None

    def keep_rules(self, kept: KeptRules) -> None:
        """Keep the rules of the pair, on disk. Raises RdcError."""
        with _failing(self.shown, "keep the rules in it"):
            self._files.replace(_RULES, [encode_rules(kept)])

    # Texts, for merges

    def kept_names(self, prefix: bytes) -> set[bytes]:
        """Return the names of files that begin with `prefix`. Raises RdcError."""
        with _failing(self.shown, "list it"):
            return {name for name in map(os.fsencode, os.listdir(self._fd)) if name.startswith(prefix)}

    def kept(self, name: bytes, most: int) -> bytes | None:
        """Return the content of a file, of at most `most` bytes; None if there is none. Raises RdcError."""
        with _failing(self.shown, "read it"):
            return self._files.read(name, most)

    def keep(self, name: bytes, parts: Sequence[bytes]) -> None:
        """Write a file. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            self._files.replace(name, parts)

    def drop(self, name: bytes) -> None:
        """Remove a file. Raises RdcError."""
        with _failing(self.shown, "write in it"), suppress(FileNotFoundError):
            self._files.make_way(name)
            os.unlink(name, dir_fd=self._fd)

    def forget(self) -> None:
        """Remove everything that is kept of the pair. A directory that somebody put there stays. Raises
        RdcError."""
        with _failing(self.shown, "remove it"):
            for name in os.listdir(self._fd):
                with suppress(IsADirectoryError):
                    os.unlink(name, dir_fd=self._fd)
            try:
                os.rmdir(self._name, dir_fd=self._above)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise

    def close(self) -> None:
        """Close the directory. May be called again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _conflict_lines(conflicts: Sequence[OpenConflict], side: int) -> list[bytes]:
    seen = [each.seen_from(side) for each in conflicts]
    return [
        line_of([encoded(each.path).decode(), each.about, *each.sizes, *map(nearest_time, each.mtimes_ns)])
        for each in seen
    ]


def _read_conflict(items: object) -> OpenConflict:
    if not isinstance(items, list) or len(items) != 6 or not all(type(each) is int for each in items[2:]):
        raise RecordError("a path, what it is about, and four numbers")
    left, right, one, other = items[2:]
    return OpenConflict(
        path_of(items[0]),
        str(items[1]),
        (left, right),
        (packed_time(time_of(one)), packed_time(time_of(other))),
    )


def pair_name(ids: Iterable[bytes]) -> bytes:
    """Return the name of the directory of a pair of roots, the same at both."""
    return blake3(b"".join(sorted(ids))).hexdigest(8).encode()


class Known(Record):
    """The knowledge of one side about the pair: whether it can be trusted depends on the other side."""

    marks: tuple[tuple[bytes, bytes], ...]
    """Generation and shared digest of each ancestor, the latest first."""
    plans: tuple[bytes, ...]
    """The generations with which the plans in its journal began."""
    is_whole: bool
    """True if all of its journal could be read."""
    wrong: str
    """The damaged part; "" for none."""


class Related(Record):
    """The ancestors that two sides have in common."""

    numbers: tuple[int, int] | None
    """The number of the ancestor at each side; None: there is none that can be trusted."""
    notice: str
    """The notice, as in Base."""


def relate(left: Known, right: Known) -> Related:
    """Return what two sides have in common. Pure, and the same at both sides."""
    if not (left.is_whole and right.is_whole):
        return Related(None, "the journal of an interrupted run is damaged")
    plans = frozenset(left.plans + right.plans)
    wrong = "; ".join(filter(None, (left.wrong, right.wrong)))
    if left.marks and right.marks and left.marks[0][0] == right.marks[0][0]:
        if left.marks[0][1] != right.marks[0][1]:
            return Related(None, "the two sides remember different things of their last run")
        return Related((0, 0), wrong)
    # A run that was killed between the two ends has left its plan in a journal.
    for number, one in enumerate(left.marks):
        for other_number, other in enumerate(right.marks):
            if one == other and one[0] in plans:
                return Related((number, other_number), "the last run was interrupted at its end")
    if not (left.marks or right.marks or wrong):
        return Related(None, "")
    missing = "what one side remembers is missing, or older than what the other one does"
    return Related(None, wrong or missing)


class OwnMemory:
    """The state of a pair at one side, read once."""

    def __init__(
        self,
        pair: PairDirectory | None,
        ids: tuple[bytes | None, bytes | None],
        inode: int,
        *,
        rows: bool = False,
        damage: str = "",
    ) -> None:
        """`ids`: of this root and of the other one. `inode`: of this root, 0 where that does not last.
        `damage`: of RootState. `rows`: an ancestor with rows that rdc does not write is damaged. Otherwise
        that is left to whoever needs the rows. Raises RdcError."""
        self.ancestors: list[StoredAncestor] = []
        self.plans: list[OpenPlan] = []
        wrong = [damage] if damage else []
        whole = True
        if pair is not None:
            found, damaged = pair.ancestors(rows=rows)
            wrong += damaged
            self.ancestors = [
                each for each in found if (each.head.own, each.head.other) == ids and each.head.inode == inode
            ]
            self.plans, whole = pair.plans()
        marks = tuple((each.head.generation, each.shared[:MARK_DIGEST_BYTES]) for each in self.ancestors)
        self.known = Known(marks, tuple(plan.generation for plan in self.plans), whole, "; ".join(wrong))

    def only(self, related: Related, side: int) -> StoredAncestor | None:
        """Return the ancestor in common, and hold no other one: each takes as much memory as its file. None:
        there is none that can be trusted. `side`: this one."""
        if related.numbers is None:
            return None
        self.ancestors = [self.ancestors[related.numbers[side]]]
        return self.ancestors[0]

    def counting(self, generation: bytes) -> tuple[OpenPlan, ...]:
        """Return the plans that began with the ancestor of this generation."""
        return tuple(plan for plan in self.plans if plan.generation == generation)


def common_base(
    pairs: Sequence[PairDirectory | None],
    roots: Sequence[RootState],
    inodes: Sequence[int],
    *,
    rows: bool = False,
) -> Base:
    """Return what both sides had in common, from what each keeps. `rows`: as in OwnMemory. Raises
    RdcError."""
    left, right = (
        OwnMemory(
            pairs[side],
            (roots[side].id, roots[1 - side].id),
            inodes[side],
            rows=rows,
            damage=roots[side].damage,
        )
        for side in (LEFT, RIGHT)
    )
    related = relate(left.known, right.known)
    if related.numbers is None:
        return Base(None, (), related.notice)
    ancestors = left.ancestors[related.numbers[LEFT]], right.ancestors[related.numbers[RIGHT]]
    generation = ancestors[LEFT].head.generation
    plans = (
        *(plan.seen_from(LEFT) for plan in left.counting(generation)),
        *(plan.seen_from(RIGHT) for plan in right.counting(generation)),
    )
    return Base(ancestors, plans, related.notice)


class _Files:
    """The files of one open directory of the state."""

    def __init__(self, fd: int, root: Root) -> None:
        self._fd = fd
        self._root = root

    def is_own(self, found: os.stat_result) -> bool:
        """Return whether an entry is a file that only the effective user can have written, as far as its file
        system can tell."""
        return stat.S_ISREG(found.st_mode) and is_private(found, self._root)

    def read(self, name: bytes, most: int, *, instead: bytes = b"") -> bytes | None:
        """Return the content of a file that only the effective user can have written; None if there is none,
        and `instead` if it is anything else."""
        try:
            fd = os.open(name, _READ, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                return instead  # a link, or a socket
            raise
        try:
            found = os.fstat(fd)
            if not self.is_own(found) or found.st_size > most:
                return instead
            with open(fd, "rb", closefd=False) as file:
                return file.read(found.st_size)
        finally:
            os.close(fd)

    def make_way(self, name: bytes, *, directory_wanted: bool = False) -> None:
        """Take away what is at a name of the state and is not the state's: nothing that somebody put there
        stops a run. A directory with entries in it gets a free name beside instead. Raises OSError."""
        try:
            found = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        is_directory = stat.S_ISDIR(found.st_mode)
        if is_directory if directory_wanted else self.is_own(found):
            return
        if not is_directory:
            os.unlink(name, dir_fd=self._fd)
            return
        try:
            os.rmdir(name, dir_fd=self._fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            aside = b"%s.aside-%s" % (name, os.urandom(8).hex().encode())
            os.rename(name, aside, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def replace(self, name: bytes, parts: Sequence[bytes]) -> None:
        """Write a file, on disk, in place of one that is there. Raises OSError."""
        aside = name + b".part"
        with suppress(FileNotFoundError):
            self.make_way(aside)
            os.unlink(aside, dir_fd=self._fd)
        fd = create_temporary(aside, self._fd)
        try:
            _write(fd, parts)
            flush(fd)
        finally:
            os.close(fd)
        self.make_way(name)
        self.rename(aside, name)
        sync_directory_at(b".", self._fd)

    def rename(self, old: bytes, new: bytes) -> None:
        """Rename a file, in place of another one. Where the file system refuses that, the other one goes
        first: after a kill in between, what it held counts as lost. Raises OSError."""
        try:
            os.rename(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except FileNotFoundError:
            raise
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(new, dir_fd=self._fd)
            os.rename(old, new, src_dir_fd=self._fd, dst_dir_fd=self._fd)


def _write(fd: int, parts: Sequence[bytes]) -> None:
    with open(fd, "wb", closefd=False) as file:
        file.writelines(parts)


class _failing:  # noqa: N801 - reads as a statement
    """Turns an OSError of the block into an RdcError about `shown`."""

    def __init__(self, shown: bytes, doing: str) -> None:
        self._shown = shown
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if isinstance(error, OSError):
            advice = _ADVICE.get(error.errno or 0, "mend what it tells, then run again")
            raise RdcError(
                f"{printable(self._shown)}: cannot {self._doing}: {error.strerror}; {advice}",
                code=ExitCode.FILE_IO,
            ) from error


_ADVICE = {
    errno.EACCES: "run as its owner, or give that user the rights to write there",
    errno.EPERM: "run as its owner, or give that user the rights to write there",
    errno.EROFS: "mount it so that it can be written",
    errno.ENOSPC: "make room there, then run again",
    errno.EDQUOT: "make room there, then run again",
}
"""The advice for an error, by its number."""
