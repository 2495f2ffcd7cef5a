"""The steps of a plan at both roots. Each checks right before it that the entry is still what was listed.

A step that finds another entry there does nothing, and neither do the steps that need it: the path is held
and named, and the next run looks at it again. Contents are copied to temporaries, verified to be of the
listed file, and renamed into place in groups (rdc.files.replace): a path is always wholly old or new.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from functools import partial

from blake3 import blake3

from rdc.errors import ExitCode, FileError, RdcError, StoppedError, printable
from rdc.files.base.metadata import ANYTHING, identity_of, stat_entry
from rdc.files.base.syscalls import rename_no_replace_between
from rdc.files.names.entry_names import Moved, make_durable, move_directory, move_file
from rdc.files.replace.cloning import copy_whole, may_clone
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.lean.records import replace
from rdc.model.entries import Identity, Kind, Metadata
from rdc.model.preserved import granularity_of, is_known_time, nearest_time, packed_time
from rdc.progress import PlanKnown, Problem, Progressed, check_stop
from rdc.uniting.file_systems import (
    NamesThatAreOne,
    is_not_empty,
    is_open_to_all,
    keeps_permissions,
    lasting,
    names_in,
    not_empty,
    unlike,
)
from rdc.uniting.plan import Link, Part, Remove, SetFields, Write
from rdc.uniting.records import UniteItem
from rdc.uniting.renames import CopyHere, MakeDirectory, Rename
from rdc.uniting.rows import DIGEST_BYTES, DIRECTORY, FILE, MODE_BITS, Row, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set
    from types import TracebackType
    from typing import Self, TypeAlias

    from rdc.files.root.root import Root
    from rdc.model.options import KeepUndo
    from rdc.model.preserved import Preserved
    from rdc.progress import StopSignal
    from rdc.uniting.attributes import AttributeSets
    from rdc.uniting.plan import Plan, SetAttributes, Step
    from rdc.uniting.records import UniteReporter

SIDES = ("left", "right")
"""The names of the sides."""

KNOWN_BYTES = 16 << 20
"""Bytes of the longest file whose content is known once it is copied. It is in memory then, so this costs the
hash alone; a later run knows by it whether a touched file was edited."""

KNOWN_FILES = 4_096
"""Files of one run from another machine whose contents are known afterwards, at 16 bytes each on the wire."""

_UNTIMED = frozenset({Kind.DIRECTORY, Kind.SYMLINK})
_NO_UNDO = "leave out --keep-undo"


def writable(root: Root, keep: KeepUndo | None, *, fsync: bool, sheds_acls: bool) -> Root:
    """Return `root` as the steps write it: it keeps what undoing the run needs, and sets no times of
    directories and links.

    `sheds_acls`: ACLs take part. Until a new entry gets its own one, one that it inherits would grant more.
    """
    reads = replace(root.reads, untimed=_UNTIMED)
    if keep is None or cannot_undo(root):
        writes = replace(root.writes, undo=None, sheds_acls=sheds_acls)
        return root.having(reads=reads, writes=writes)
    from rdc.undoing.keeper import SyncUndo

    undo = SyncUndo(root, keep, fsync=fsync)
    return root.having(reads=reads, writes=replace(root.writes, undo=undo, sheds_acls=sheds_acls))


def cannot_undo(root: Root) -> bool:
    """Return whether nothing can be kept for an undo: old versions are kept under a second name, in a
    directory in which nobody else can write."""
    return not root.storage.facts.hard_links or is_open_to_all(root)


def no_undo_notice(root: Root) -> Problem:
    """Return the notice that what a run replaces at a side is not kept."""
    what = "owners and permissions" if root.storage.facts.hard_links else "hard links"
    text = f"{printable(root.label)}: its file system has no {what}: nothing is kept for rdc undo there"
    return Problem(ExitCode.OK, b"", text)


def items_of(step: Step, side: int) -> UniteItem:
    """Return the event of a step at `side`."""
    name = SIDES[side]
    match step:
        case Rename(old, new, _):
            return UniteItem(name, "renamed", old, new)
        case CopyHere(_, new, row):
            return UniteItem(name, "new", new, None, row.stamp.size)
        case MakeDirectory(path, _):
            return UniteItem(name, "new", path)
        case Write(path, row, replaced, returns):
            action = "edited" if replaced is not None else "returned" if returns else "new"
            return UniteItem(name, action, path, None, row.stamp.size if row.kind == FILE else 0)
        case SetFields(path, _, _, _):
            return UniteItem(name, "metadata", path)
        case Part(path, _, _):
            return UniteItem(name, "unlinked", path)
        case Link(path, source, _, _, _, _):
            return UniteItem(name, "linked", path, source)
        case Remove(path, _):
            return UniteItem(name, "deleted", path)


def settable(step: Step) -> Step:
    """Return a step with a time that can be set. An ancestor may have a distant one that no entry has any
    more, and then nothing but a stamp is known of it."""
    if isinstance(step, (Write, Part, Link)) and not is_known_time(step.row.mtime_ns):
        time = packed_time(nearest_time(step.row.mtime_ns))
        return step._replace(row=step.row._replace(mtime_ns=time))
    if isinstance(step, SetFields) and not is_known_time(step.mtime_ns):
        return step._replace(mtime_ns=packed_time(nearest_time(step.mtime_ns)))
    return step


Staged: TypeAlias = "Write | CopyHere | Part"
"""A step whose file is in its place once its group has committed it."""


class StepsProgress:
    """Reports the progress of a plan: bytes of files that arrive, at either side, then entries deleted."""

    def __init__(
        self, steps: Iterable[tuple[int, Step]], report: Callable[[Progressed | PlanKnown], None]
    ) -> None:
        items = [items_of(step, side) for side, step in steps]
        self._report = report
        self._bytes = sum(item.copied for item in items)
        self._deletes = sum(item.action == "deleted" for item in items)
        self._arrived = self._deleted = 0
        if items:
            report(PlanKnown(len(items) - self._deletes, self._bytes, self._deletes))

    @property
    def arrived(self) -> int:
        """Bytes that have arrived."""
        return self._arrived

    def arrive(self, total: int) -> None:
        """Report that `total` bytes have arrived by now."""
        if total > self._arrived:
            self._arrived = min(total, self._bytes)
            self._report(Progressed("transfer", self._arrived, self._bytes))

    def done(self, item: UniteItem) -> None:
        """Report a step that is done."""
        if item.action == "deleted":
            self._deleted += 1
            self._report(Progressed("delete", self._deleted, self._deletes))


class Steps:
    """Does the steps of one plan, and knows afterwards which came to their end."""

    def __init__(
        self,
        roots: tuple[Root, Root],
        reporter: UniteReporter,
        stop: StopSignal | None,
        *,
        fsync: bool,
        progress: StepsProgress | None = None,
        sets: AttributeSets | None = None,
    ) -> None:
        """`roots`: as `writable` returns them. `sets`: the extended attributes that steps set."""
        self.progress = progress
        if sets is not None:
            # Between two machines both roots are one, and stay one.
            left = _completing(roots[0], partial(self._complete, (0, 1) if roots[0] is roots[1] else (0,)))
            right = left if roots[0] is roots[1] else _completing(roots[1], partial(self._complete, (1,)))
            roots = left, right
        self._roots = roots
        self._report = reporter
        self._stop = stop
        self._fsync = fsync
        self.failed: tuple[set[bytes], set[bytes]] = (set(), set())
        """Paths at each side at which a step was not done; of a rename both paths."""
        self.stamps: tuple[dict[bytes, Stamp], dict[bytes, Stamp]] = ({}, {})
        """The stamps of entries after their steps, by side and path."""
        self.digests: dict[bytes, bytes] = {}
        """The contents of copied files, by path."""
        self.changed = [0, 0]
        self.bytes = [0, 0]
        self._open = ExitStack()
        self._identities: tuple[dict[bytes, Identity], dict[bytes, Identity]] = ({}, {})
        self._copies: tuple[dict[bytes, Identity], dict[bytes, Identity]] = ({}, {})
        """The files that were copied in place of a rename, by side and new path."""
        self.unset: dict[bytes, bool] = {}
        """Paths whose attributes were not set, and whether they still have those of before."""
        self._names = NamesThatAreOne()
        self._sets = sets
        self._coming: dict[tuple[int, bytes], SetAttributes] = {}
        """The attributes of entries that steps are to make, by side and path."""
        self._top_sets: list[tuple[int, SetAttributes]] = []
        """The directories that get attributes, each after its mode."""
        self._modes: list[tuple[int, bytes, int, int | None]] = []
        """Directories that get their modes at the end: side, path, mode, and the mode that was listed."""
        self._staged: tuple[dict[bytes, Staged], dict[bytes, Staged]] = ({}, {})
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

    def run(self, plan: Plan, files: Sequence[Mapping[bytes, Row]] = ()) -> None:
        """Do all steps. `files`: as `link` takes them, of each side. Raises RdcError for what ends the
        run."""
        self.expect(plan.attributes)
        with self:
            self.do(plan.steps)
            self.set_attributes(plan.attributes)
            for side, some in enumerate(files):
                self.link(side, [step for at, step in plan.links if at == side], some)
            self.finish()

    def expect(self, steps: Iterable[tuple[int, SetAttributes]]) -> None:
        """Take note of the attributes of entries that steps are to make."""
        self._coming.update(
            {
                (side, step.path): step
                for side, step in steps
                if step.before is None or (step.row.kind == DIRECTORY and step.row.listed is None)
            }
        )

    def _complete(self, sides: tuple[int, ...], path: bytes, fd: int) -> None:
        """Give a file that has no name yet its attributes. Raises OSError if it may not get its name."""
        from rdc.uniting.attributes import give_to_new

        for side in sides:
            coming = self._coming.get((side, path))
            if coming is not None and self._sets is not None:
                give_to_new(fd, self._sets.of(coming.wanted), needed=coming.replaces)

    def root(self, side: int) -> Root:
        """Return the root of a side, as the steps write it."""
        return self._roots[side]

    def __enter__(self) -> Self:
        for group in self._groups:
            self._open.enter_context(group)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)
        if isinstance(error, RdcError) and _NO_UNDO in str(error):
            raise RdcError(
                str(error).replace(_NO_UNDO, "use --no-undo, and nothing is kept"), code=error.code
            ) from error

    def close(self) -> None:
        """Close what is kept for an undo. May be called again."""
        for root in self._roots:
            if root.writes.undo is not None:
                root.writes.undo.close()

    def do(self, steps: Iterable[tuple[int, Step]]) -> None:
        """Do steps in this order, as far as the user does not stop them. Raises RdcError for what ends the
        run."""
        writing = True
        for side, step in ((side, settable(step)) for side, step in steps):
            if self._stop is not None and self._stop.is_set():
                break
            if writing and isinstance(step, (Remove, SetFields)):
                self._flush()
                writing = False
            writing = writing or isinstance(step, Write)
            try:
                self._do(side, step)
            except StoppedError:  # within a long file, which does not arrive
                break
            if isinstance(step, CopyHere):
                self._flush()  # before anything takes the place of what was copied
        self._flush()

    def finish(self) -> None:
        """Set the modes of directories, and have all of it on disk. Raises RdcError, StoppedError."""
        self._set_modes()
        for root in dict.fromkeys(self._roots):
            if self._fsync and any(self.changed):
                make_durable(root, [b""])
            if root.writes.undo is not None:
                for notice in root.writes.undo.finish():
                    self._report(Problem(ExitCode.OK, b"", notice))
        if self._stop is not None and self._stop.is_set():
            raise StoppedError

    def set_attributes(self, steps: Iterable[tuple[int, SetAttributes]]) -> None:
        """Set the attributes of files, and note those that directories get once they have their modes."""
        for side, step in steps:
            if self._stop is not None and self._stop.is_set():
                break
            if step.row.kind == DIRECTORY:
                self._top_sets.append((side, step))
            else:
                self._set_of(side, step)

    def link(self, side: int, links: Iterable[Link], files: Mapping[bytes, Row]) -> None:
        """Make the hard links of a side, and look again at names that have new change times by that.

        `files`: as they were listed, by paths after the renames, names of files that steps of the run give
        or take other names.
        """
        links = [step for step in map(settable, links) if isinstance(step, Link)]
        for step in links:
            if self._stop is not None and self._stop.is_set():
                break
            self._do(side, step)
        self._flush()
        listed: dict[bytes, Row | None] = {step.source: step.origin for step in links}
        listed.update({step.path: None for step in links})
        listed.update(files)
        stamps = self.stamps[side]
        # What a step did to one name of a file, it did to all.
        changed = {stamps[path].inode: stamps[path] for path in listed if path in stamps}
        for path, row in listed.items():
            known = stamps.get(path)
            if known is None and row is not None:
                known = changed.get(row.stamp.inode, row.stamp)
            with suppress(FileError):
                if not under_any(path, self.failed[side]):
                    self._look_again(side, path, row, known)

    def _look_again(self, side: int, path: bytes, row: Row | None, known: Stamp | None) -> None:
        """Note the change time of a file, if nobody but this run has changed it. `row`: as it was listed.
        `known`: what it is but for that."""
        root, stamps = self._roots[side], self.stamps[side]
        if known is None or not known.ctime_ns:
            return
        now = root.perform(path, "look at it", stat_entry, reading=True)
        identity = identity_of(now)
        found = Stamp(
            identity.size, now.st_mode & 0o7777, identity.mtime_ns, identity.inode, identity.ctime_ns
        )
        found = lasting(found, root.stable)
        if path in stamps:
            expected = replace(
                identity, inode=known.inode, size=known.size, mtime_ns=known.mtime_ns, ctime_ns=known.ctime_ns
            )
        elif row is not None and row.listed is not None:
            expected = row.listed
        else:
            return
        if found._replace(ctime_ns=known.ctime_ns) == known and root.check.is_still(expected, identity):
            stamps[path] = found

    def _link(self, side: int, step: Link) -> None:
        from rdc.files.names.entry_names import Linked, link_file

        root, path = self._roots[side], step.path
        found = root.perform(step.source, "look at it", stat_entry, reading=True)
        now = identity_of(found)
        known, origin = self.stamps[side].get(step.source), step.origin
        meant: Identity | None = None
        if known is not None:
            meant = replace(
                now, inode=known.inode, size=known.size, mtime_ns=known.mtime_ns,
                ctime_ns=known.ctime_ns or now.ctime_ns,
            )  # fmt: skip
        elif origin is not None:
            meant = origin.listed
        if meant is None or now.kind != Kind.FILE or not root.check.is_still(meant, now):
            raise root.another(step.source, found, meant, "make another name of it")
        expected = step.replaced.listed if step.replaced is not None else None
        try:
            outcome = link_file(root, step.source, path, now, replaces=expected)
        except FileError:
            # The name that it had meanwhile gave it a new change time.
            root.check.note_named(now, root.perform(step.source, "look at it", stat_entry, reading=True))
            raise
        match outcome:
            case Linked.CHANGED:
                raise root.another(step.source, None, now, "make another name of it")
            case Linked.IMPOSSIBLE:
                self._copy_instead(side, step, expected)
            case _:
                pass
        self._note(side, path, None, Metadata(step.row.mode, step.row.mtime_ns, 0, 0))
        there = self.stamps[side][path]
        if (there.size, there.mtime_ns) != (now.size, now.mtime_ns):
            self.stamps[side][path] = there._replace(ctime_ns=0)  # somebody wrote to it meanwhile

    def _copy_instead(self, side: int, step: Link, expected: Identity | None) -> None:
        """Bring the content that no link can bring, and raise FileError: the next run finds it there."""
        root, path = self._roots[side], step.path
        if step.brings:
            # Its mode may be more than its ACL grants, which the next run sets.
            has_acls = self._sets is not None and self._sets.has_acls
            row = step.row._replace(mode=step.row.mode & 0o700) if has_acls else step.row
            with (
                root.open_read(step.source) as source,
                Replacement(root, path, expected_size=source.size) as temporary,
                CommitGroup(root, fsync=self._fsync, on_commit=lambda _: None) as group,
            ):
                copy_whole(temporary, source, source.size, cloned=False)
                source.check_unchanged()
                group.add(temporary, path, Metadata(row.mode, row.mtime_ns, 0, 0), False, expected)
        raise root.refused(
            path,
            f"make it a hard link to '{printable(step.source)}'",
            expected="a file system and rights that allow it",
            found="that it is impossible",
            advice="it is a file of its own there",
        )

    def _set_of(self, side: int, step: SetAttributes) -> None:
        from rdc.uniting.attributes import set_attributes

        path, root, sets = step.path, self._roots[side], self._sets
        if sets is None:
            return
        known = self.stamps[side].get(path)
        is_file = step.row.kind == FILE
        # A file that a step was to put there has to have come.
        if under_any(path, self.failed[side]) or (step.before is None and is_file and known is None):
            self.unset[path] = step.before is not None
            return
        before = known or step.row.stamp
        try:
            was = root.identity(path) if is_file else None
            mode = set_attributes(root, step, sets, known if is_file else None)
            if was is not None:
                # Other names of the file have a new change time, too.
                root.check.note_named(was, root.perform(path, "look at it", stat_entry, reading=True))
            self._note(side, path, None)
        except FileError as error:
            self.unset[path] = step.before is not None
            self._report(Problem(ExitCode.PARTIAL, path, str(error)))
            return
        now = self.stamps[side][path]
        if is_file:
            # What else is not as before is somebody's edit since, and shows as one in the next run.
            expected = before if mode is None else before._replace(mode=mode)
            is_same = now._replace(ctime_ns=before.ctime_ns) == expected
            self.stamps[side][path] = now if is_same and before.ctime_ns else expected._replace(ctime_ns=0)
        elif mode is not None and (now.mode ^ mode) & MODE_BITS:
            self.stamps[side][path] = now._replace(mode=mode)
        if step.is_told:
            self.changed[side] += 1
            self._report(UniteItem(SIDES[side], "metadata", path))

    def _flush(self) -> None:
        for group in self._groups:
            group.flush()

    def _do(self, side: int, step: Step) -> None:
        path = step.old if isinstance(step, (Rename, CopyHere)) else step.path
        if self.needs_failed(side, step):
            self.fail(side, step)
            return
        try:
            match step:
                case Rename():
                    self._rename(side, step)
                case MakeDirectory(_, row):
                    self._make_directory(side, path, row)
                case CopyHere():
                    self._copy(side, step, self._roots[side], step.old, step.new, None)
                    return
                case Write():
                    if not self._write(side, step):
                        return
                case Part():
                    root = self._roots[side]
                    self._copy(side, step, root, path, path, step.replaced.listed)
                    return
                case Link():
                    self._link(side, step)
                case SetFields():
                    self._set_fields(side, step)
                case Remove(_, row):
                    self._remove(side, path, row)
        except FileError as error:
            self.fail(side, step)
            self._report(Problem(ExitCode.PARTIAL, path, self.reason(side, step, str(error))))
            if isinstance(step, Remove) and step.row.kind == FILE:
                # The name that was kept for an undo gave it another change time, which is no edit.
                with suppress(FileError):
                    self._look_again(side, path, step.row, step.row.stamp)
            return
        self._done(side, step)

    def _done(self, side: int, step: Step) -> None:
        self.changed[side] += 1
        item = items_of(step, side)
        self.bytes[side] += item.copied
        self._report(item)
        if self.progress is not None:
            self.progress.done(item)

    def fail(self, side: int, step: Step) -> None:
        """Note that a step was not done."""
        paths = (step.old, step.new) if isinstance(step, (Rename, CopyHere)) else (step.path,)
        self.failed[side].update(paths)

    def needs_failed(self, side: int, step: Step) -> bool:
        """Return whether a step needs what an earlier one did not do, here or at the other side as its
        source."""
        failed, there = self.failed[side], self.failed[1 - side]
        path = step.new if isinstance(step, (Rename, CopyHere)) else step.path
        if failed and (path in failed or _has_above(path, failed)):
            return True
        if isinstance(step, Link) and under_any(step.source, failed):
            return True
        return bool(there) and isinstance(step, Write) and (path in there or _has_above(path, there))

    # Single steps

    def _rename(self, side: int, step: Rename) -> None:
        root = self._roots[side]
        row = step.row
        if row.kind == DIRECTORY:
            found = root.identity(step.old)
            listed = row.listed
            same = listed is not None and (found.inode == listed.inode or not root.stable.inode)
            if not same or found.kind != Kind.DIRECTORY:
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
            # It keeps its ACL, as at the side whose user renamed it: nothing would give it back.
            mover = root.having(writes=replace(root.writes, sheds_acls=False))
            match move_file(mover, step.old, step.new, row.listed, wanted, owner=False):
                case Moved.CHANGED:
                    raise root.another(step.old, found_now, row.listed, "rename it")
                case Moved.SHARED | Moved.IMPOSSIBLE:
                    raise self._impossible(side, step)
                case _:
                    pass
        else:
            self._rename_link(root, step)
        self._note_renamed(side, step.new, row)

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
            expected="the right to write in both directories, one name, and a file system that can do it",
            found="that it is refused",
            advice="it stays; look at permissions and flags (ls -ld, lsattr -d), then run again",
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
        if not self._has_got_acl(side, path):
            self._modes.append((side, path, row.mode, None))

    def _has_got_acl(self, side: int, path: bytes) -> bool:
        """Give a directory that was just made its attributes: a kill then leaves none without them. What
        fails is tried again at the end, and said.

        Return whether it has its access ACL, and so its mode. An ACL that excludes its owner closes the way,
        and waits for the end.
        """
        coming, sets = self._coming.get((side, path)), self._sets
        if coming is None or sets is None or sets.excludes_owner(coming.wanted):
            return False
        from rdc.uniting.attributes import set_attributes

        with suppress(FileError):
            set_attributes(self._roots[side], coming, sets, None)
            return sets.guard(coming.wanted) is not None
        return False

    def _write(self, side: int, step: Write) -> bool:
        """Return whether it is done; a file is so when its group commits it."""
        root, row = self._roots[side], step.row
        expected = step.replaced.listed if step.replaced is not None else None
        if row.kind == DIRECTORY:
            self._make_directory(side, step.path, row)
        elif row.kind == FILE:
            self._copy(side, step, self._roots[1 - side], step.path, step.path, expected)
            return False
        else:
            root.replace_symlink(step.path, row.content, expected=expected)
            self._note(side, step.path, None)
        return True

    def _copy(
        self,
        side: int,
        step: Staged,
        other: Root,
        old: bytes,
        new: bytes,
        expected: Identity | None,
    ) -> None:
        """Stage a copy of the file at `old` of `other` as `new`. It is done when its group commits it."""
        root, row = self._roots[side], step.row
        listed = self._copies[1 - side].get(old, row.listed) if isinstance(step, Write) else row.listed
        if isinstance(step, Part):
            listed = step.replaced.listed
        with other.open_read(old) as source:
            if listed is None or not other.check.is_still(listed, source.identity):
                raise other.another(old, None, listed, "copy it")
            cloned = may_clone(root, source.identity.device, os.fstat(root.fileno()).st_dev)
            with Replacement(
                root, new, expected_size=source.size, allocated=source.taken, reserved=not cloned
            ) as temporary:
                copy_whole(temporary, source, source.size, cloned=cloned, copied=self._arriving())
                if source.size <= KNOWN_BYTES and len(row.content) != DIGEST_BYTES:
                    state = blake3()
                    for span in source.spans():
                        state.update(span)
                    self.digests[new] = state.digest(DIGEST_BYTES)
                source.check_unchanged()
                metadata = Metadata(row.mode, row.mtime_ns, 0, 0)
                self._staged[side][new] = step
                self._groups[side].add(temporary, new, metadata, False, expected)

    def _arriving(self) -> Callable[[int], None] | None:
        """Return what hears of the bytes of the next file that is copied. It raises StoppedError."""
        progress, stop = self.progress, self._stop
        if progress is None:
            return None if stop is None else lambda _done: check_stop(stop)
        before = progress.arrived

        def copied(done: int) -> None:
            progress.arrive(before + done)
            check_stop(stop)

        return copied

    def _committed(self, side: int, path: bytes) -> None:
        step = self._staged[side].pop(path)
        identity = self._identities[side].pop(path, None)
        if identity is not None and isinstance(step, CopyHere):
            self._copies[side][path] = identity
        self.landed(side, step, path, identity)

    def landed(self, side: int, step: Staged, path: bytes, identity: Identity | None) -> None:
        """Note that a file is in its place. `identity`: what it is there; None: that was not noted."""
        if identity is not None:
            root = self._roots[side]
            mode = step.row.mode
            if not root.storage.is_plain:
                mode = root.perform(path, "look at it", stat_entry, reading=True).st_mode & 0o7777
            stamp = Stamp(identity.size, mode, identity.mtime_ns, identity.inode, identity.ctime_ns)
            stamp = lasting(stamp, root.stable)
            keeps = root.storage.facts.keeps
            if not _is_kept(keeps, step.row.mtime_ns, identity.mtime_ns):
                # Another version came than the one that both sides are to have: see `served`.
                stamp = stamp._replace(mtime_ns=step.row.mtime_ns, ctime_ns=0)
            self.stamps[side][path] = stamp
        else:
            self._note(side, path, None, Metadata(step.row.mode, step.row.mtime_ns, 0, 0))
            self.stamps[side][path] = self.stamps[side][path]._replace(ctime_ns=0)
        self._done(side, step)

    def served(self, side: int, files: Mapping[bytes, Row], others: Set[bytes]) -> None:
        """Note which of the files that the other side was to take are not those that were listed, now or when
        they were sent (`others`).

        What arrived may have been another file's content. So the stamps of these vouch for nothing.
        """
        root, stamps = self._roots[side], self.stamps[side]
        for path, row in files.items():
            known = stamps.get(path)
            try:
                now = root.identity(path)
            except FileError:
                is_still = False
            else:
                if known is not None:  # a step of this run was here
                    found = Stamp(now.size, known.mode, now.mtime_ns, now.inode, now.ctime_ns)
                    is_still = lasting(found, root.stable) == known
                else:
                    is_still = row.listed is not None and root.check.is_still(row.listed, now)
            if path in others or not is_still:
                stamps[path] = (known or row.stamp)._replace(ctime_ns=0)

    def know(self, side: int, path: bytes, identity: Identity | None) -> None:
        """Read a file that has just come, so that a later run knows whether it was edited. Not more than
        KNOWN_FILES of a run, nor long ones, nor one that is not `identity` any more."""
        if identity is None or identity.size > KNOWN_BYTES or len(self.digests) >= KNOWN_FILES:
            return
        root = self._roots[side]
        with suppress(FileError), root.open_read(path) as source:
            if source.identity != identity:
                return
            state = blake3()
            for span in source.spans():
                state.update(span)
            source.check_unchanged()
            self.digests[path] = state.digest(DIGEST_BYTES)

    def _refused(self, side: int, error: FileError) -> None:
        step, reason = self._staged[side].pop(error.path_bytes, None), str(error)
        if step is not None:
            self.fail(side, step)
            reason = self.reason(side, step, str(error))
        self._report(Problem(ExitCode.PARTIAL, error.path_bytes, reason))

    def reason(self, side: int, step: Step, text: str) -> str:
        """Return why a step was not done: `text`, unless its name is taken for another one. Where names that
        differ in letter case alone are one, no other run does it either: somebody has to rename an entry."""
        text = text.replace(_NO_UNDO, "use --no-undo")
        makes = isinstance(step, (Rename, CopyHere, MakeDirectory)) or (
            isinstance(step, Write) and step.replaced is None
        )
        if not makes:
            return text
        root, path = self._roots[side], step.new if isinstance(step, (Rename, CopyHere)) else step.path
        other = self._names.listed_as(root, path)
        if other is None:
            return text
        own = isinstance(step, Rename) and os.path.basename(step.old) == other
        shown = unlike(other, os.path.basename(path))
        advice = "rename it there, too" if own else "rename one of them, then run again"
        return (
            f"{printable(os.path.join(root.label, path))}: its file system takes this name and"
            f" '{shown}' for one, so that one stays as it is; {advice}"
        )

    def _set_fields(self, side: int, step: SetFields) -> None:
        root, row = self._roots[side], step.row
        kind = Kind(row.kind)
        special = row.stamp.mode & 0o7000
        wanted = Metadata(step.mode | special, step.mtime_ns, 0, 0)
        if row.kind == DIRECTORY:
            self._modes.append((side, step.path, step.mode | special, row.stamp.mode))
            return
        root.set_metadata(step.path, kind, wanted, owner=False, expected=row.listed or ANYTHING)
        self._note(side, step.path, row, wanted)

    def _remove(self, side: int, path: bytes, row: Row) -> None:
        root = self._roots[side]
        if row.kind != DIRECTORY:
            root.remove(path, row.listed or ANYTHING)
            return
        try:
            root.remove(path, directory=True)
        except FileError as error:
            names = names_in(root, path) if is_not_empty(error) else []
            if not names:
                raise
            raise FileError(path, not_empty(root, path, names)) from error

    def _set_modes(self) -> None:
        """Set the modes of directories, the deepest first: one that excludes its owner closes the way. Their
        attributes come right after them."""
        for side, step in sorted(self._top_sets, key=lambda each: each[1].path, reverse=True):
            self._set_directory_modes(step.path)
            self._set_of(side, step)
        self._top_sets.clear()
        self._set_directory_modes(b"")

    def _set_directory_modes(self, least: bytes) -> None:
        """Set the modes of directories whose paths are not before `least`."""
        modes = [each for each in self._modes if each[1] >= least]
        self._modes = [each for each in self._modes if each[1] < least]
        for side, path, mode, listed in sorted(modes, key=lambda each: each[1], reverse=True):
            root = self._roots[side]
            try:
                wanted = Metadata(mode, 0, 0, 0)
                is_listed = True
                if listed is not None:
                    now = root.perform(path, "look at it", stat_entry, reading=True).st_mode
                    is_listed = not (now ^ listed) & MODE_BITS
                # What somebody set since the listing stays. Noted as below it is a change in the next run.
                if is_listed and keeps_permissions(root.storage.preserved):
                    root.set_metadata(path, Kind.DIRECTORY, wanted, owner=False, expected=ANYTHING)
                self._note(side, path, None, wanted)
            except FileError as error:
                self._report(Problem(ExitCode.PARTIAL, path, str(error)))

    def _note(self, side: int, path: bytes, row: Row | None, wanted: Metadata | None = None) -> None:
        """Note what an entry is after a step. `row`: what it was, if its content has to be the same.

        `wanted`: what the step set. Anything else there now was set by somebody in the moment since, and
        shows as a change in the next run.
        """
        root = self._roots[side]
        keeps = root.storage.facts.keeps
        found = root.perform(path, "look at it", stat_entry, reading=True)
        now = identity_of(found)
        mode = found.st_mode & 0o7777 if now.kind != Kind.SYMLINK else 0
        stamp = lasting(Stamp(now.size, mode, now.mtime_ns, now.inode, now.ctime_ns), root.stable)
        known = None if row is None or row.kind != FILE else (row.stamp.inode, row.stamp.size)
        if known is not None and known != (stamp.inode, stamp.size):
            stamp = stamp._replace(ctime_ns=0)  # somebody was there: the next run looks at the content
        is_file = now.kind == Kind.FILE
        if wanted is not None and is_file and not _is_kept(keeps, wanted.mtime_ns, now.mtime_ns):
            stamp = stamp._replace(mtime_ns=wanted.mtime_ns, ctime_ns=0)
        if wanted is not None and keeps_permissions(keeps) and (mode ^ wanted.mode) & MODE_BITS:
            stamp = stamp._replace(mode=wanted.mode, ctime_ns=0)
        self.stamps[side][path] = stamp

    def _note_renamed(self, side: int, path: bytes, row: Row) -> None:
        """Note what an entry is under its new name. A rename changes nothing but its change time: what else
        is not as in `row` is somebody's edit since, and shows as one in the next run."""
        self._note(side, path, row)
        now, before = self.stamps[side][path], row.stamp
        if row.kind == FILE and now._replace(ctime_ns=before.ctime_ns) != before:
            self.stamps[side][path] = before._replace(ctime_ns=0)
        elif row.kind == DIRECTORY:
            self.stamps[side][path] = now._replace(mode=before.mode)


def _completing(root: Root, completes: Callable[[bytes, int], None]) -> Root:
    """Return a root whose new files are completed before they have their names."""
    return root.having(writes=replace(root.writes, completes=completes))


def _is_kept(keeps: Preserved, wanted_ns: int, found_ns: int) -> bool:
    """Return whether a file system may have made `found_ns` of a file's time that it was given. `keeps`: what
    is known of it."""
    if not keeps.is_timed(Kind.FILE) or keeps.granularity.alike(wanted_ns, found_ns):
        return True
    granularity = granularity_of([(wanted_ns, found_ns)])
    return granularity is not None and not granularity.is_vague


def _has_above(path: bytes, failed: set[bytes]) -> bool:
    while path := path.rpartition(b"/")[0]:
        if path in failed:
            return True
    return False


def under_any(path: bytes, tops: set[bytes]) -> bool:
    """Return whether `path` is one of `tops`, or lies below one."""
    return path in tops or (bool(tops) and _has_above(path, tops))
