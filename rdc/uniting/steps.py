"""The steps of a plan at both roots. Each checks right before it that the entry is still what was listed.

A step that finds another entry there does nothing, and neither do the steps that need it: the path is held
and named, and the next run looks at it again. Contents are copied to temporaries, verified to be of the
listed file, and renamed into place in groups (rdc.files.replace): a path is always wholly old or new.
"""

from __future__ import annotations

import os
from functools import partial

from blake3 import blake3

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.base.metadata import ANYTHING, identity_of, stat_entry
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.names.entry_names import Moved, make_durable, move_directory, move_file
from rdc.files.replace.cloning import copy_whole, may_clone
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root, WritePolicy
from rdc.lean.records import replace
from rdc.model.entries import Identity, Kind, Metadata
from rdc.model.preserved import packed_time
from rdc.progress import Problem
from rdc.uniting.ancestor_file import DIGEST_BYTES
from rdc.uniting.plan import Remove, SetFields, Write
from rdc.uniting.records import UniteItem
from rdc.uniting.renames import MakeDirectory, Rename
from rdc.uniting.rows import DIRECTORY, FILE, Row, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.options import KeepUndo
    from rdc.progress import StopSignal
    from rdc.uniting.plan import Plan, Step
    from rdc.uniting.records import UniteReporter

SIDES = ("left", "right")
"""The names of the sides."""

KNOWN_BYTES = 16 << 20
"""Bytes of the longest file whose content is known once it is copied. It is in memory then, so this costs the
hash alone; a later run knows by it whether a touched file was edited."""

_UNTIMED = frozenset({Kind.DIRECTORY, Kind.SYMLINK})
_NO_UNDO = "leave out --keep-undo"


def writable(root: Root, keep: KeepUndo | None, *, fsync: bool) -> Root:
    """Return `root` as the steps write it: it keeps what undoing the run needs, and sets no times of
    directories and links."""
    reads = replace(root.reads, untimed=_UNTIMED)
    if keep is None:
        return root.having(reads=reads, writes=WritePolicy())
    from rdc.undoing.keeper import SyncUndo

    undo = SyncUndo(root, keep, fsync=fsync)
    return root.having(reads=reads, writes=WritePolicy(undo=undo))


def items_of(step: Step, side: int) -> UniteItem:
    """Return the event of a step at `side`."""
    name = SIDES[side]
    match step:
        case Rename(old, new, _):
            return UniteItem(name, "renamed", old, new)
        case MakeDirectory(path, _):
            return UniteItem(name, "new", path)
        case Write(path, row, replaced, returns):
            action = "edited" if replaced is not None else "returned" if returns else "new"
            return UniteItem(name, action, path, None, row.stamp.size if row.kind == FILE else 0)
        case SetFields(path, _, _, _):
            return UniteItem(name, "metadata", path)
        case Remove(path, _):
            return UniteItem(name, "deleted", path)


class Steps:
    """Does the steps of one plan, and knows afterwards which came to their end."""

    def __init__(
        self,
        roots: tuple[Root, Root],
        reporter: UniteReporter,
        stop: StopSignal | None,
        *,
        fsync: bool,
    ) -> None:
        """`roots`: as `writable` returns them."""
        self._roots = roots
        self._report = reporter
        self._stop = stop
        self._fsync = fsync
        self.failed: tuple[set[bytes], set[bytes]] = (set(), set())
        """Paths at each side at which a step was not done; of a rename both paths."""
        self.stamps: tuple[dict[bytes, Stamp], dict[bytes, Stamp]] = ({}, {})
        """What the entries are at which a step was done, by side and path."""
        self.digests: dict[bytes, bytes] = {}
        """The contents of copied files, by path."""
        self.changed = [0, 0]
        self.bytes = [0, 0]
        self._identities: tuple[dict[bytes, Identity], dict[bytes, Identity]] = ({}, {})
        self._modes: list[tuple[int, bytes, int]] = []
        """Directories that get their modes at the end: side, path, mode."""
        self._staged: tuple[dict[bytes, Write], dict[bytes, Write]] = ({}, {})
        self._groups = tuple(
            CommitGroup(
                root,
                fsync=fsync,
                on_commit=partial(self._committed, side),
                on_error=partial(self._refused, side),
                on_identity=self._identities[side].__setitem__,
            )
            for side, root in enumerate(roots)
        )

    def run(self, plan: Plan) -> None:
        """Do all steps. Raises RdcError for what ends the run."""
        try:
            with self._groups[0], self._groups[1]:
                self._run(plan)
        except RdcError as error:
            if _NO_UNDO in str(error):
                raise RdcError(
                    str(error).replace(_NO_UNDO, "use --no-undo, and nothing is kept"), code=error.code
                ) from error
            raise

    def _run(self, plan: Plan) -> None:
        writing = True
        for side, step in plan.steps:
            if self._stop is not None and self._stop.is_set():
                break
            if writing and isinstance(step, (Remove, SetFields)):
                self._flush()
                writing = False
            writing = writing or isinstance(step, Write)
            self._do(side, step)
        self._flush()
        self._set_modes()
        for root in self._roots:
            if self._fsync and any(self.changed):
                make_durable(root, [b""])
            if root.writes.undo is not None:
                for notice in root.writes.undo.finish():
                    self._report(Problem(ExitCode.OK, b"", notice))
        if self._stop is not None and self._stop.is_set():
            from rdc.errors import StoppedError

            raise StoppedError

    def _flush(self) -> None:
        for group in self._groups:
            group.flush()

    def _do(self, side: int, step: Step) -> None:
        path = step.old if isinstance(step, Rename) else step.path
        if self._depends_on_failed(side, step):
            self._fail(side, step)
            return
        try:
            match step:
                case Rename():
                    self._rename(side, step)
                case MakeDirectory(_, row):
                    self._make_directory(side, path, row)
                case Write():
                    if not self._write(side, step):
                        return
                case SetFields():
                    self._set_fields(side, step)
                case Remove(_, row):
                    self._remove(side, path, row)
        except FileError as error:
            self._fail(side, step)
            self._report(Problem(ExitCode.PARTIAL, path, str(error)))
            return
        self._done(side, step)

    def _done(self, side: int, step: Step) -> None:
        self.changed[side] += 1
        item = items_of(step, side)
        self.bytes[side] += item.copied
        self._report(item)

    def _fail(self, side: int, step: Step) -> None:
        paths = (step.old, step.new) if isinstance(step, Rename) else (step.path,)
        self.failed[side].update(paths)

    def _depends_on_failed(self, side: int, step: Step) -> bool:
        """Whether a step needs what an earlier one did not do, here or (as its source) at the other side."""
        failed, there = self.failed[side], self.failed[1 - side]
        path = step.new if isinstance(step, Rename) else step.path
        if failed and (path in failed or _has_above(path, failed)):
            return True
        return bool(there) and isinstance(step, Write) and (path in there or _has_above(path, there))

    # Single steps

    def _rename(self, side: int, step: Rename) -> None:
        root = self._roots[side]
        row = step.row
        if row.kind == DIRECTORY:
            found = root.identity(step.old)
            if row.listed is None or (found.inode, found.kind) != (row.listed.inode, Kind.DIRECTORY):
                raise root.another(step.old, None, row.listed, "rename it")
            if not move_directory(root, step.old, step.new):
                raise self._impossible(side, step)
        elif row.kind == FILE and row.listed is not None:
            found_now = root.perform(step.old, "look at it", stat_entry)
            wanted = Metadata(
                found_now.st_mode & 0o7777,
                packed_time(found_now.st_mtime_ns),
                found_now.st_uid,
                found_now.st_gid,
            )
            match move_file(root, step.old, step.new, row.listed, wanted, owner=False):
                case Moved.CHANGED:
                    raise root.another(step.old, found_now, row.listed, "rename it")
                case Moved.SHARED | Moved.IMPOSSIBLE:
                    raise self._impossible(side, step)
                case _:
                    pass
        else:
            self._rename_link(root, step)
        self._note(side, step.new, row)

    def _rename_link(self, root: Root, step: Rename) -> None:
        there, old = root.locate(step.old)
        here, new = root.locate(step.new, fresh=True)
        try:
            found = stat_entry(old, there.fd)
            root.require(step.old, found, step.row.listed, "rename it")
            if root.writes.undo is not None:
                now = Metadata(
                    found.st_mode & 0o7777, packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
                )
                root.writes.undo.moving(step.old, step.new, found, now)
            rename_no_replace_between(old, there.fd, new, here.fd)
        except OSError as error:
            raise root.failure(error, step.new, "move a link there") from error

    def _impossible(self, side: int, step: Rename) -> FileError:
        return self._roots[side].refused(
            step.old,
            "rename it",
            expected="a file system and rights that allow it, and one name",
            found="it refuses",
            advice="it stays; the next run looks at it again",
        )

    def _make_directory(self, side: int, path: bytes, row: Row) -> None:
        if not self._roots[side].make_directory(path, row.mode | 0o700):
            raise self._roots[side].refused(
                path,
                "make the directory",
                expected="nothing there",
                found="a directory",
                advice="it stays; run again once nothing else changes it",
            )
        self._modes.append((side, path, row.mode))

    def _write(self, side: int, step: Write) -> bool:
        """Return whether it is done; a file is so when its group commits it."""
        root, row = self._roots[side], step.row
        expected = step.replaced.listed if step.replaced is not None else None
        if row.kind == DIRECTORY:
            self._make_directory(side, step.path, row)
        elif row.kind == FILE:
            self._copy(side, step, expected)
            return False
        else:
            root.replace_symlink(step.path, row.content, expected=expected)
            self._note(side, step.path, None)
        return True

    def _copy(self, side: int, step: Write, expected: Identity | None) -> None:
        root, other, row = self._roots[side], self._roots[1 - side], step.row
        with other.open_read(step.path) as source:
            if row.listed is None or not other.check.is_still(row.listed, source.identity):
                raise other.another(step.path, None, row.listed, "copy it")
            cloned = may_clone(root, source.identity.device, os.fstat(root.fileno()).st_dev)
            with Replacement(root, step.path, expected_size=source.size, reserved=not cloned) as temporary:
                copy_whole(temporary, source, source.size, cloned=cloned)
                if source.size <= KNOWN_BYTES and len(row.content) != DIGEST_BYTES:
                    state = blake3()
                    for span in source.spans():
                        state.update(span)
                    self.digests[step.path] = state.digest(DIGEST_BYTES)
                source.check_unchanged()
                metadata = Metadata(row.mode, row.mtime_ns, 0, 0)
                self._staged[side][step.path] = step
                self._groups[side].add(temporary, step.path, metadata, False, expected)

    def _committed(self, side: int, path: bytes) -> None:
        step = self._staged[side].pop(path)
        identity = self._identities[side].pop(path, None)
        if identity is not None:
            self.stamps[side][path] = Stamp(
                identity.size, step.row.mode, identity.mtime_ns, identity.inode, identity.ctime_ns
            )
        self._done(side, step)

    def _refused(self, side: int, error: FileError) -> None:
        step = self._staged[side].pop(error.path, None)
        if step is not None:
            self._fail(side, step)
        self._report(Problem(ExitCode.PARTIAL, error.path, str(error)))

    def _set_fields(self, side: int, step: SetFields) -> None:
        root, row = self._roots[side], step.row
        kind = Kind(row.kind)
        special = row.stamp.mode & 0o7000
        wanted = Metadata(step.mode | special, step.mtime_ns, 0, 0)
        if row.kind == DIRECTORY:
            self._modes.append((side, step.path, step.mode | special))
            return
        root.set_metadata(step.path, kind, wanted, owner=False, expected=row.listed or ANYTHING)
        self._note(side, step.path, row)

    def _remove(self, side: int, path: bytes, row: Row) -> None:
        root = self._roots[side]
        if row.kind == DIRECTORY:
            root.remove(path, directory=True)
        else:
            root.remove(path, row.listed or ANYTHING)

    def _set_modes(self) -> None:
        """Set the modes of directories, the deepest first: one that excludes its owner closes the way."""
        for side, path, mode in sorted(self._modes, key=lambda each: each[1], reverse=True):
            try:
                self._roots[side].set_metadata(
                    path, Kind.DIRECTORY, Metadata(mode, 0, 0, 0), owner=False, expected=ANYTHING
                )
                self._note(side, path, None)
            except FileError as error:
                self._report(Problem(ExitCode.PARTIAL, path, str(error)))

    def _note(self, side: int, path: bytes, row: Row | None) -> None:
        """Note what an entry is after a step. `row`: what it was, if its content has to be the same."""
        found = self._roots[side].perform(path, "look at it", stat_entry, reading=True)
        now = identity_of(found)
        ctime_ns = now.ctime_ns
        if (
            row is not None
            and row.kind == FILE
            and (now.inode, now.size) != (row.stamp.inode, row.stamp.size)
        ):
            ctime_ns = 0  # somebody was there: the next run looks at the content
        mode = found.st_mode & 0o7777 if now.kind != Kind.SYMLINK else 0
        self.stamps[side][path] = Stamp(now.size, mode, now.mtime_ns, now.inode, ctime_ns)


def _has_above(path: bytes, failed: set[bytes]) -> bool:
    while path := path.rpartition(b"/")[0]:
        if path in failed:
            return True
    return False


def under_any(path: bytes, tops: set[bytes]) -> bool:
    """Return whether `path` is one of `tops`, or lies below one."""
    return path in tops or (bool(tops) and _has_above(path, tops))
