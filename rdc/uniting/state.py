"""The state of a two-way sync, in `.rdc-unite` at each root: ids, locks, ancestors, journals (STATE.md).

Whatever is missing, damaged, copied from elsewhere or older than the other side's costs the ancestor, or a
part of it. That adds conflicts and entries that come back. It never deletes, and never locks a user out.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
from contextlib import suppress
from zlib import crc32

from blake3 import blake3

from rdc.errors import ExitCode, RdcError, printable
from rdc.files.base.paths import UNITE_NAME
from rdc.files.base.taking_names import sync_directory_at
from rdc.files.own.record_log import (
    RecordError,
    complete_lines,
    encoded,
    path_of,
    relative_path_of,
    signed,
    value_of,
)
from rdc.lean.records import dataclass
from rdc.limits import UNITE_FILE_BYTES
from rdc.uniting.ancestor_file import DamagedError, OwnAncestor, decode
from rdc.uniting.rows import LEFT, NO_STAMP, RIGHT, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from rdc.files.root.root import Root
    from rdc.uniting.plan import Intent

ID_BYTES = 16
NO_GENERATION = bytes(8)
"""The generation of a pair without an ancestor."""

_ROOT_MAGIC = b"RDCROOT\x01"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ANCESTOR, _OLDER, _NEW = b"ancestor", b"ancestor.1", b"ancestor.new"
_JOURNAL, _OPEN = b"journal", b"open"
JOURNAL_VERSION = 1


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """What an interrupted run was about to do."""

    generation: bytes
    """That of the ancestor that it began with."""
    intents: Mapping[bytes, Intent]
    renames: frozenset[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class OpenConflict:
    """One conflict that the last run left, for `rdc unite --status`."""

    path: bytes
    about: str
    sizes: tuple[int, int]
    mtimes_ns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Base:
    """The ancestors that both sides have of one run; None: there are none that can be trusted."""

    ancestors: tuple[OwnAncestor, OwnAncestor] | None
    plans: tuple[OpenPlan, ...]
    notice: str
    """Why there is no ancestor, or only an older one; "" if all is well or this is the first run."""

    @property
    def generation(self) -> bytes:
        """The generation of the ancestors."""
        return self.ancestors[LEFT].head.generation if self.ancestors else NO_GENERATION


class RootState:
    """The directory `.rdc-unite` of one root. A context manager that unlocks and closes it."""

    def __init__(self, root: Root, *, write: bool) -> None:
        """Open the directory, and make and lock it if the run writes. Raises RdcError."""
        self._root = root
        self._writes = write
        self.shown = root.shown(UNITE_NAME)
        self._fd = self._lock = -1
        self.id: bytes | None = None
        """None: the root has none yet, or it is a copy of another one."""
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
                    with suppress(PermissionError):  # a directory of another user keeps the new time
                        os.utime(b".", dir_fd=top, ns=(before.st_atime_ns, before.st_mtime_ns))
                    sync_directory_at(b".", top)
            try:
                self._fd = os.open(UNITE_NAME, _DIRECTORY, dir_fd=top)
            except FileNotFoundError:
                return
            found = os.fstat(self._fd)
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                raise RdcError(
                    f"{printable(self.shown)}: cannot use it: expected a directory that only you can write,"
                    f" found one of user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}; run as"
                    " its owner, or move it away",
                    code=ExitCode.FILE_IO,
                )
            if write:
                self._take_lock()
            self.id = self._read_id()
            if self.id is None and write:
                self.id = self._make_id()

    def _take_lock(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._lock = os.open(b"lock", flags, 0o600, dir_fd=self._fd)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._lock, 40, 0).decode("ascii", "replace").strip()
            raise RdcError(
                f"{printable(self._root.label)}: another run of rdc unite works here now (process"
                f" {holder or 'unknown'}); run again when it has ended",
                code=ExitCode.BUSY,
            ) from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)

    def _read_id(self) -> bytes | None:
        data = _read(self._fd, b"root", 64)
        if data is None or len(data) != len(_ROOT_MAGIC) + ID_BYTES + 8 + 4:
            return None
        body, check = data[:-4], data[-4:]
        inode = os.fstat(self._root.fileno()).st_ino
        if not body.startswith(_ROOT_MAGIC) or crc32(body).to_bytes(4, "little") != check:
            return None
        # In a copy of the tree the inode number is another one: a copy is a root of its own.
        return body[len(_ROOT_MAGIC) : -8] if body[-8:] == inode.to_bytes(8, "little") else None

    def renew(self) -> None:
        """Give the root another id, as one that has none: it is a copy. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            self.id = self._make_id() if self._writes else None

    def _make_id(self) -> bytes:
        made = secrets.token_bytes(ID_BYTES)
        body = _ROOT_MAGIC + made + os.fstat(self._root.fileno()).st_ino.to_bytes(8, "little")
        _replace(self._fd, b"root", [body, crc32(body).to_bytes(4, "little")])
        return made

    def pairs(self) -> list[PairDirectory]:
        """The pairs that this root is part of. The caller closes them. Raises RdcError."""
        if self._fd < 0:
            return []
        with _failing(self.shown, "list it"):
            names = sorted(os.fsencode(name) for name in os.listdir(self._fd))
        found = [PairDirectory.open(self, name) for name in names if len(name) == 16]
        return [pair for pair in found if pair is not None]

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


class PairDirectory:
    """What one root keeps of its pair with another root."""

    def __init__(self, shown: bytes, name: bytes, fd: int, above: int) -> None:
        self.shown = shown
        self._name = name
        self._fd = fd
        self._above = above

    @classmethod
    def open(cls, state: RootState, name: bytes, *, make: bool = False) -> Self | None:
        """Open the directory `name` of a root's state; None if there is none. Raises RdcError."""
        shown = state.shown + b"/" + name
        with _failing(shown, "use it"):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=state.fd)
            try:
                fd = os.open(name, _DIRECTORY, dir_fd=state.fd)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return cls(shown, name, fd, state.fd)

    # Ancestors

    def ancestors(self) -> tuple[list[OwnAncestor], list[str]]:
        """The ancestors that can be read, the latest first, and what is wrong with others."""
        found: list[OwnAncestor] = []
        wrong: list[str] = []
        for name in (_ANCESTOR, _OLDER):
            try:
                with _failing(self.shown + b"/" + name, "read it"):
                    data = _read(self._fd, name, UNITE_FILE_BYTES)
                if data is not None:
                    found.append(decode(data))
            except DamagedError as error:
                wrong.append(f"{printable(self.shown)}/{name.decode()}: damaged: expected {error}")
            except RdcError as error:
                wrong.append(str(error))
        return found, wrong

    def prepare(self, data: bytes) -> None:
        """Write the next ancestor beside the present one, on disk. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            _replace(self._fd, _NEW, [data])

    def commit(self) -> None:
        """Make the prepared ancestor the present one. Raises RdcError."""
        with _failing(self.shown, "write in it"):
            with suppress(FileNotFoundError):
                os.rename(_ANCESTOR, _OLDER, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            os.rename(_NEW, _ANCESTOR, src_dir_fd=self._fd, dst_dir_fd=self._fd)
            sync_directory_at(b".", self._fd)

    # The journal

    def begin(self, plan: OpenPlan) -> None:
        """Append what a run is about to do, on disk before this returns. Raises RdcError."""
        lines = [signed(_json(["rdc unite", JOURNAL_VERSION, plan.generation.hex()]))]
        lines += [
            signed(_json(["path", encoded(path).decode(), *(_stamp_items(side) for side in intent)]))
            for path, intent in plan.intents.items()
        ]
        lines += [
            signed(_json(["rename", encoded(old).decode(), encoded(new).decode()]))
            for old, new in sorted(plan.renames)
        ]
        lines.append(signed(_json(["begin"])))
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with _failing(self.shown, "write the journal in it"):
            fd = os.open(_JOURNAL, flags, 0o600, dir_fd=self._fd)
            try:
                # Empty lines are between two plans, also where the last one was cut off in a line.
                os.lseek(fd, 0, os.SEEK_END)
                _write(fd, [b"\n\n", *lines])
                os.fsync(fd)
            finally:
                os.close(fd)
            sync_directory_at(b".", self._fd)
            sync_directory_at(b".", self._above)

    def plans(self) -> tuple[list[OpenPlan], bool]:
        """The plans that no ancestor has closed, and whether all of the journal could be read.

        A plan that was not written whole was not begun.
        """
        with _failing(self.shown, "read the journal in it"):
            data = _read(self._fd, _JOURNAL, UNITE_FILE_BYTES)
        if data is None:
            return [], True
        return read_plans(data)

    def end(self) -> None:
        """Remove the journal: both sides have the new ancestor. Raises RdcError."""
        with _failing(self.shown, "end the journal in it"), suppress(FileNotFoundError):
            os.unlink(_JOURNAL, dir_fd=self._fd)

    # Conflicts, for --status

    def open_conflicts(self) -> list[OpenConflict]:
        """The conflicts that the last run left."""
        with _failing(self.shown, "read the conflicts in it"):
            data = _read(self._fd, _OPEN, UNITE_FILE_BYTES) or b""
        found = []
        for line in complete_lines(data):
            with suppress(RecordError):
                found.append(_read_conflict(value_of(line)))
        return found

    def note_conflicts(self, conflicts: Sequence[OpenConflict]) -> None:
        """Keep the conflicts for --status. Writes nothing if they are the same. Raises RdcError."""
        lines = [
            signed(_json([encoded(each.path).decode(), each.about, *each.sizes, *each.mtimes_ns]))
            for each in conflicts
        ]
        with _failing(self.shown, "note the conflicts in it"):
            before = _read(self._fd, _OPEN, UNITE_FILE_BYTES)
            if (before or b"") != b"".join(lines):
                _replace(self._fd, _OPEN, lines)

    def forget(self) -> None:
        """Remove everything that is kept of the pair. Raises RdcError."""
        with _failing(self.shown, "remove it"):
            for name in os.listdir(self._fd):
                os.unlink(name, dir_fd=self._fd)
            os.rmdir(self._name, dir_fd=self._above)

    def close(self) -> None:
        """Close the directory. May be called again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _read_conflict(items: object) -> OpenConflict:
    if not isinstance(items, list) or len(items) != 6 or not all(type(each) is int for each in items[2:]):
        raise RecordError("a path, what it is about, and four numbers")
    left, right, one, other = items[2:]
    return OpenConflict(path_of(items[0]), str(items[1]), (left, right), (one, other))


def pair_name(ids: Iterable[bytes]) -> bytes:
    """Return the name of the directory of a pair of roots, the same at both."""
    return blake3(b"".join(sorted(ids))).hexdigest(8).encode()


def common_base(
    pairs: Sequence[PairDirectory | None], roots: Sequence[RootState], inodes: Sequence[int]
) -> Base:
    """Return what both sides had in common, from what each keeps. Raises RdcError."""
    plans: list[OpenPlan] = []
    found: list[list[OwnAncestor]] = [[], []]
    wrong: list[str] = []
    whole = True
    for side in (LEFT, RIGHT):
        pair = pairs[side]
        if pair is None:
            continue
        ancestors, damage = pair.ancestors()
        wrong += damage
        ids = roots[side].id, roots[1 - side].id
        found[side] = [
            each for each in ancestors
            if (each.head.own, each.head.other) == ids and each.head.inode == inodes[side]
        ]  # fmt: skip
        more, readable = pair.plans()
        plans += more
        whole &= readable
    if not whole:
        return Base(None, (), "the journal of an interrupted run is damaged")
    latest = [side[0] if side else None for side in found]
    left, right = latest
    if left and right and left.head.generation == right.head.generation:
        if left.shared != right.shared:
            return Base(None, (), "the two sides remember different things of their last run")
        return Base((left, right), _counting(plans, left), "; ".join(wrong))
    # A run that was killed between the two ends has left its plan in a journal.
    for one in found[LEFT]:
        for other in found[RIGHT]:
            counting = _counting(plans, one)
            if one.head.generation == other.head.generation and one.shared == other.shared and counting:
                return Base((one, other), counting, "the last run was interrupted at its end")
    if not any(found) and not wrong:
        return Base(None, (), "")
    which = "; ".join(wrong) or "what one side remembers is missing, or older than what the other one does"
    return Base(None, (), which)


def _counting(plans: Sequence[OpenPlan], ancestor: OwnAncestor) -> tuple[OpenPlan, ...]:
    return tuple(plan for plan in plans if plan.generation == ancestor.head.generation)


def read_plans(data: bytes) -> tuple[list[OpenPlan], bool]:
    """Read a journal: its plans, and whether all of it says what rdc wrote.

    A plan whose writing was cut off was not begun. It has no last line, and its last one may be cut.
    """
    plans: list[OpenPlan] = []
    for block in data.split(b"\n\n"):
        lines = [line for line in block.split(b"\n") if line]
        try:
            plan = _read_plan(lines)
        except (RecordError, ValueError):
            try:
                plan = _read_plan(lines[:-1])
            except (RecordError, ValueError):
                return [], False
            if plan is not None:
                return [], False  # begun, and damaged after that
        if plan is not None:
            plans.append(plan)
    return plans, True


def _read_plan(lines: Sequence[bytes]) -> OpenPlan | None:
    """The plan of these lines; None if it was not begun. Raises RecordError, ValueError."""
    if not lines:
        return None
    head = value_of(lines[0])
    if not isinstance(head, list) or len(head) != 3 or head[:2] != ["rdc unite", JOURNAL_VERSION]:
        raise RecordError(f"a journal of version {JOURNAL_VERSION}")
    generation = bytes.fromhex(str(head[2]))
    intents: dict[bytes, Intent] = {}
    renames: set[tuple[bytes, bytes]] = set()
    for number, line in enumerate(lines[1:], 2):
        match value_of(line):
            case ["path", path, left, right]:
                intents[relative_path_of(path)] = _stamp_of(left), _stamp_of(right)
            case ["rename", old, new]:
                renames.add((relative_path_of(old), relative_path_of(new)))
            case ["begin"] if number == len(lines):
                return OpenPlan(generation, intents, frozenset(renames))
            case _:
                raise RecordError("a path, a rename or the end of the plan")
    return None


def _stamp_items(stamp: Stamp | None) -> object:
    if stamp is None:
        return None
    return [] if stamp == NO_STAMP else list(stamp)


def _stamp_of(items: object) -> Stamp | None:
    if items is None:
        return None
    if items == []:
        return NO_STAMP
    if not isinstance(items, list) or len(items) != 5 or not all(type(each) is int for each in items):
        raise RecordError("five numbers of an entry")
    return Stamp(*items)


def _json(items: list[object]) -> bytes:
    return json.dumps(items, separators=(",", ":")).encode()


def _read(directory: int, name: bytes, most: int) -> bytes | None:
    """The content of a file that only the effective user can have written; None if there is none."""
    try:
        fd = os.open(name, _READ, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return b""  # a link in its place is worth nothing
        raise
    try:
        found = os.fstat(fd)
        mine = found.st_uid == os.geteuid() and not found.st_mode & 0o022
        if not (stat.S_ISREG(found.st_mode) and mine) or found.st_size > most:
            return b""
        with open(fd, "rb", closefd=False) as file:
            return file.read(found.st_size)
    finally:
        os.close(fd)


def _replace(directory: int, name: bytes, parts: Sequence[bytes]) -> None:
    aside = name + b".part"
    with suppress(FileNotFoundError):
        os.unlink(aside, dir_fd=directory)
    fd = os.open(aside, _WRITE, 0o600, dir_fd=directory)
    try:
        _write(fd, parts)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
    sync_directory_at(b".", directory)


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
            raise RdcError(
                f"{printable(self._shown)}: cannot {self._doing}: {error.strerror}", code=ExitCode.FILE_IO
            ) from error
