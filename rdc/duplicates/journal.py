"""The journal of names that lost their files, and the clearing of files that a killed run displaced.

Hard links that were made and duplicates that were removed are in the journal. Each change is durable
in it before it is made. `rdc undo` reads it to take the changes back, and a run reads it to clear what
an interrupted one left. DUPLICATES.md, "The journal", defines the formats.

A displaced file is handled only if one of this user's journals shows that a run displaced it. The
journal must have the path at which it lies, its inode number, owner, group, mode and original name.
Any other file with such a name belongs to another program. It is reported and left in place, unopened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from rdc.duplicates.group import Tree, is_below
from rdc.errors import FileError, printable
from rdc.files.base.paths import failure, join
from rdc.files.base.taking_names import make_durable
from rdc.files.names.leased_files import LeasedFile, difference, same_bytes
from rdc.files.names.name_change import displaced_name, is_displaced, put_back
from rdc.files.names.return_name import is_link_with, remove_spare_link, return_displaced
from rdc.files.own.record_log import (
    RecordError,
    RecordLog,
    absolute_path_of,
    attributes_of,
    complete_lines,
    encoded,
    metadata_of,
    number_of,
    path_of,
    read_log,
    relative_path_of,
    signed,
    size_of,
    time_of,
    value_of,
)
from rdc.files.replace.commit_group import foreign_names, sweep_temporaries
from rdc.lean.records import Record, field
from rdc.limits import JOURNAL_BYTES, JOURNALS_READ
from rdc.model.duplicates import REMOVALS, Action, Instance
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Attributes, real_time
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rdc.duplicates.run_totals import RunTotals
    from rdc.files.root.root import Root
    from rdc.progress import Event


NAME, VERSION = "rdc dedupe", 3
LINKS_VERSION, REMOVALS_VERSION = 2, 1
"""The last versions of the two formats that this one replaces."""

_REMOVALS_NAME = "rdc dupes"

_DIGEST_BYTES = 32


class KeptFile(Record):
    """The file that stays, and that had the same content as others."""

    top: bytes
    """Absolute path of its tree."""
    path: bytes
    """Path relative to `top`."""
    inode: int
    """Its inode number; 0 if the journal lacks it."""
    size: int
    digest: bytes
    """The digest of its content; b"" for hard links, which are undone by their inode."""
    digest_of_all: bool = False
    """True if the digest is BLAKE3 of all bytes, as in older journals, and no ContentDigest."""

    @property
    def real(self) -> bytes:
        """The absolute path."""
        return join(self.top.rstrip(b"/"), self.path)


class Change(Record):
    """One name that was taken from its file, or was about to be."""

    action: Action
    """LINK, or one of REMOVALS."""
    top: bytes
    """Absolute path of the tree that contains the name."""
    path: bytes
    """Path relative to `top`."""
    kept: KeptFile
    inode: int
    """Inode number of the file that had the name; 0 if the journal lacks it."""
    metadata: Metadata
    """The metadata of that file. With LINK, the file that stays had the same."""
    atime_ns: int = 0
    attributes: Attributes = ()
    destination_top: bytes = b""
    """Absolute path of the directory that `move` fills; otherwise empty."""
    destination: bytes = b""
    """Path relative to `destination_top`, or the text of the symbolic link; otherwise empty."""

    @property
    def size(self) -> int:
        return self.kept.size

    @property
    def directory(self) -> bytes:
        """Path of the name's directory relative to `top`."""
        return self.path.rpartition(b"/")[0]

    @property
    def name(self) -> bytes:
        return self.path.rpartition(b"/")[2]

    @property
    def displaced_name(self) -> bytes:
        """The name beside `path` that the file has while it leaves."""
        return displaced_name(self.name, self.size, self.metadata)

    @property
    def displaced(self) -> bytes:
        """The absolute path of that name."""
        return join(self.real_directory, self.displaced_name)

    @property
    def real_directory(self) -> bytes:
        """Absolute path of the name's directory."""
        return join(self.top.rstrip(b"/"), self.path).rpartition(b"/")[0]

    @property
    def link_text(self) -> bytes:
        """The text of the symbolic link that may have the name; b"" if none does."""
        return self.destination if self.action is Action.SYMLINK else b""

    def is_recorded(self, found: os.stat_result) -> bool:
        """Return whether this is the file that lost its name. Size and mtime may differ, since a program may
        have written more. The journal has no device number: it may change with a restart."""
        return bool(self.inode) and found.st_ino == self.inode and self._has_metadata(found)

    def is_spare(self, found: os.stat_result) -> bool:
        """Return whether this is a name of the file that a link was to lead to."""
        return bool(self.inode) and found.st_ino == self.kept.inode and self._has_metadata(found)

    def _has_metadata(self, found: os.stat_result) -> bool:
        metadata = self.metadata
        return (found.st_mode, found.st_uid, found.st_gid) == (
            *(stat.S_IFREG | metadata.mode, metadata.uid, metadata.gid),
        )


class DirectoryState(Record):
    """A directory before the run took names from it, or from below it."""

    top: bytes
    path: bytes
    """Relative to `top`; b"" is that directory itself."""
    metadata: Metadata
    attributes: Attributes


class Journal(Record, frozen=False):
    """The lines of a journal, in the order of the run."""

    changes: list[Change] = field(default_factory=list)
    directories: dict[tuple[bytes, bytes], DirectoryState] = field(default_factory=dict)
    """By tree and path."""
    made: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Tree and path of each directory that the run made for what it moved."""


class JournalWriter:
    """Writes one journal. A run without changes leaves no file."""

    def __init__(self, path: bytes, pointer: bytes | None = None) -> None:
        """`pointer`: path of a symbolic link to the journal, by which the next run finds it."""
        self.path = path
        self._pointer = pointer
        self._log: RecordLog | None = None
        self._tops: dict[bytes, int] = {}
        self._kept: KeptFile | None = None

    @property
    def is_made(self) -> bool:
        return self._log is not None

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def write(
        self,
        changes: Iterable[Change],
        directories: Iterable[DirectoryState] = (),
        made: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Append records and return when they are on disk. Raises RdcError."""
        lines: list[bytes] = []
        if self._log is None:
            self._log = RecordLog.make(self.path)
            self._point()
            lines.append(b'{"journal":"%s","v":%d}' % (NAME.encode(), VERSION))
        for one in directories:
            top = self._top(one.top, lines)
            lines.append(
                b'{"directory":"%s","in":%d,%s}'
                % (encoded(one.path), top, _metadata(one.metadata, one.attributes))
            )
        for tree, path in made:
            lines.append(b'{"made":"%s","in":%d}' % (encoded(path), self._top(tree, lines)))
        for change in changes:
            if change.kept is not self._kept:
                self._kept = kept = change.kept
                lines.append(
                    b'{"keep":"%s","in":%d,"inode":%d,"size":%d,"digest":"%s"}'
                    % (
                        *(encoded(kept.path), self._top(kept.top, lines), kept.inode, kept.size),
                        kept.digest.hex().encode(),
                    )
                )
            lines.append(self._change(change, lines))
        try:
            self._log.append(b"".join(map(signed, lines)))
        except OSError as error:
            raise failure(error, self.path, self.path, "write the journal") from error

    def _point(self) -> None:
        """Create the symbolic link. Its failure loses no content: an interrupted run's leftovers are then
        reported but not cleared."""
        if self._pointer is not None:
            with suppress(OSError):
                os.makedirs(os.path.dirname(self._pointer), mode=0o700, exist_ok=True)
                os.symlink(os.path.abspath(self.path), self._pointer)

    def _change(self, change: Change, lines: list[bytes]) -> bytes:
        to = b""
        if change.action is Action.MOVE:
            to = b',"to":"%s","to_in":%d' % (
                encoded(change.destination),
                self._top(change.destination_top, lines),
            )
        elif change.action is Action.SYMLINK:
            to = b',"to":"%s"' % encoded(change.destination)
        return b'{"%s":"%s","in":%d,"inode":%d,"atime_ns":%d,%s%s}' % (
            *(change.action.value.encode(), encoded(change.path), self._top(change.top, lines)),
            *(change.inode, change.atime_ns, _metadata(change.metadata, change.attributes), to),
        )

    def _top(self, top: bytes, lines: list[bytes]) -> int:
        """Return the number of a tree. Its line is added before the first that needs it."""
        number = self._tops.get(top)
        if number is None:
            number = self._tops[top] = len(self._tops)
            lines.append(b'{"top":"%s"}' % encoded(top))
        return number


def _metadata(metadata: Metadata, attributes: Attributes) -> bytes:
    values = b",".join([b'"%s"' % encoded(part) for pair in attributes for part in pair])
    return b'"mode":%d,"uid":%d,"gid":%d,"mtime_ns":%d,"attributes":[%s]' % (
        *(metadata.mode, metadata.uid, metadata.gid, real_time(metadata.mtime_ns), values),
    )


def read_journal(path: bytes) -> Journal:
    """Return what a journal of any version records. Raises FileError for any other file, and for a file that
    others than the effective user and root may have written.

    A cut-off last line is ignored: a kill leaves it, and the change that it announced was not made.
    """
    lines = complete_lines(read_log(path, JOURNAL_BYTES, trusted=True))
    found, number = Journal(), 1
    try:
        take = _reader(_fields(lines[0]) if lines else {}, found)
        for line in lines[1:]:
            number += 1
            take(_fields(line))
    except RecordError as error:
        raise FileError(
            path,
            f"{printable(path)}, line {number}: expected {error}, found something else; nothing was undone",
        ) from error
    return found


def _fields(line: bytes) -> dict[str, object]:
    fields = value_of(line)
    if not isinstance(fields, dict):
        raise RecordError("a JSON object")
    return fields


def _reader(head: dict[str, object], found: Journal) -> Callable[[dict[str, object]], None]:
    """Return a function that takes the further lines of a journal with this first one, and adds them to
    `found`."""
    if head == {"journal": NAME, "v": VERSION}:
        return _Lines(found).take
    if head in ({"journal": NAME, "v": LINKS_VERSION}, {"journal": NAME, "v": 1}):
        return lambda fields: found.changes.append(_link(fields))
    if head == {"journal": _REMOVALS_NAME, "v": REMOVALS_VERSION}:
        return lambda fields: found.changes.append(_removal(fields))
    raise RecordError(f"the first line of a journal of version 1 to {VERSION}")


_METADATA = frozenset(("mode", "uid", "gid", "mtime_ns", "attributes"))
_OF_CHANGE = _METADATA | {"in", "inode", "atime_ns"}
_KINDS = {
    frozenset(("top",)): "top",
    frozenset(("keep", "in", "inode", "size", "digest")): "keep",
    _METADATA | {"directory", "in"}: "directory",
    frozenset(("made", "in")): "made",
    _OF_CHANGE | {"link"}: "link",
    _OF_CHANGE | {"delete"}: "delete",
    _OF_CHANGE | {"move", "to", "to_in"}: "move",
    _OF_CHANGE | {"symlink", "to"}: "symlink",
}
"""Kinds of lines by their fields."""


class _Lines:
    """Takes the lines of the present version, which refer to lines above them. Raises RecordError."""

    def __init__(self, found: Journal) -> None:
        self._found = found
        self._tops: list[bytes] = []
        self._kept: KeptFile | None = None

    def take(self, fields: dict[str, object]) -> None:
        match _KINDS.get(frozenset(fields)):
            case None:
                raise RecordError("the fields of a change")
            case "top":
                self._tops.append(absolute_path_of(fields["top"]))
            case "keep":
                self._kept = KeptFile(
                    *(self._top(fields["in"]), relative_path_of(fields["keep"]), number_of(fields["inode"])),
                    *(size_of(fields["size"]), _digest(fields["digest"], optional=True)),
                )
            case "directory":
                state = DirectoryState(
                    *(self._top(fields["in"]), relative_path_of(fields["directory"], top=True)),
                    *(_metadata_of(fields), attributes_of(fields["attributes"])),
                )
                self._found.directories.setdefault((state.top, state.path), state)
            case "made":
                self._found.made.append((self._top(fields["in"]), relative_path_of(fields["made"])))
            case kind:
                self._found.changes.append(self._change(Action(kind), fields))

    def _change(self, action: Action, fields: dict[str, object]) -> Change:
        kept = self._kept
        if kept is None or (action is not Action.LINK and not kept.digest):
            raise RecordError("a line before it that says which file stays")
        return Change(
            *(action, self._top(fields["in"]), relative_path_of(fields[action.value]), kept),
            *(number_of(fields["inode"]), _metadata_of(fields), time_of(fields["atime_ns"])),
            attributes_of(fields["attributes"]),
            self._top(fields["to_in"]) if action is Action.MOVE else b"",
            _destination(action, fields),
        )

    def _top(self, value: object) -> bytes:
        at = number_of(value)
        if not 0 <= at < len(self._tops):
            raise RecordError("the number of a tree above")
        return self._tops[at]


def _destination(action: Action, fields: dict[str, object]) -> bytes:
    if action is Action.MOVE:
        return relative_path_of(fields["to"])
    return path_of(fields["to"]) if action is Action.SYMLINK else b""


def _metadata_of(fields: dict[str, object]) -> Metadata:
    return metadata_of(fields["mode"], fields["mtime_ns"], fields["uid"], fields["gid"])


def _digest(value: object, *, optional: bool = False) -> bytes:
    try:
        digest = bytes.fromhex(value) if isinstance(value, str) else b"?"
    except ValueError:
        digest = b"?"
    if len(digest) != _DIGEST_BYTES and not (optional and not digest):
        raise RecordError("a digest")
    return digest


# Older versions

_LINK_PATHS = frozenset(("top", "path", "kept"))
_LINKS_1 = _LINK_PATHS | {"inode", "size", "mtime_ns"}
_LINKS_2 = _LINKS_1 | {"old", "mode", "uid", "gid"}


def _link(fields: dict[str, object]) -> Change:
    """Return a hard link in a journal of version 1 or 2."""
    if fields.keys() not in (_LINKS_1, _LINKS_2):
        raise RecordError("the fields of a link")
    directory, _, name = absolute_path_of(fields["kept"]).rpartition(b"/")
    inode, size = number_of(fields["inode"]), size_of(fields["size"], 64)
    return Change(
        *(Action.LINK, absolute_path_of(fields["top"]), relative_path_of(fields["path"])),
        *(KeptFile(directory or b"/", name, inode, size, b""), number_of(fields.get("old", 0))),
        _metadata_of({"mode": 0, "uid": 0, "gid": 0, **fields}),
    )


_REMOVAL = _METADATA | {
    *("action", "top", "path", "kept_top", "kept", "to_top", "to", "inode", "size", "digest", "atime_ns")
}


def _removal(fields: dict[str, object]) -> Change:
    """Return a removed duplicate in a journal of version 1."""
    if fields.keys() != _REMOVAL or fields["action"] not in [action.value for action in REMOVALS]:
        raise RecordError("the fields of a removed duplicate")
    action = Action(fields["action"])
    kept = KeptFile(
        *(absolute_path_of(fields["kept_top"]), relative_path_of(fields["kept"]), 0),
        *(size_of(fields["size"]), _digest(fields["digest"])),
        digest_of_all=True,
    )
    return Change(
        *(action, absolute_path_of(fields["top"]), relative_path_of(fields["path"]), kept),
        *(number_of(fields["inode"]), _metadata_of(fields), time_of(fields["atime_ns"])),
        attributes_of(fields["attributes"]),
        absolute_path_of(fields["to_top"]) if action is Action.MOVE else b"",
        _destination(action, fields),
    )


_FOREIGN = (
    "left alone: it has the name of a temporary file, but is no copy that rdc was making; look at it, then"
    " rename or remove it"
)


class Leftover(Record):
    """A file with the name of a displaced file."""

    tree: Tree
    directory: bytes
    name: bytes

    @property
    def path(self) -> bytes:
        """Path relative to the tree."""
        return join(self.directory, self.name)

    @property
    def real(self) -> bytes:
        return self.tree.real_path(self.path)


def clear_leftovers(trees: Sequence[Tree], totals: RunTotals) -> None:
    """Find displaced files below the trees and, if the options say `apply`, clear them.

    A file whose name became a link is removed if it is unchanged since, or if it equals the file that now has
    its name. It gets its name back if it was written to since and the link was not. A spare name of the file
    that it became is removed. A duplicate that was to be removed gets its name back, and the next search
    finds it again. Nothing is overwritten, and any other file stays and is reported. Temporaries, which are
    copies, are swept.
    """
    found = [one for tree in trees for one in find_leftovers(tree, totals)]
    if not found:
        return
    changes = _changes_of({one.real for one in found}, totals.journals)
    for one in found:
        try:
            instance = _clear(one, changes.get(one.real, ()), apply=totals.options.apply)
        except FileError as error:
            totals.problem(error)
            continue
        if instance is not None:
            totals.done(instance, files=0)
            continue
        shown = one.tree.root.shown(one.path)
        why = (
            "left by an interrupted run, and not what the file beside it holds; look at both and rename or"
            " remove one"
            if one.real in changes
            else "left alone: no journal of yours says that rdc put it there; look at it, then rename or"
            " remove it"
        )
        totals.skip(shown, f"{printable(shown)}: {why}")


def find_leftovers(tree: Tree, totals: RunTotals) -> list[Leftover]:
    """Return the files below a tree that have names of displaced files and may be changed. Sweeps temporaries
    and reports foreign files."""
    reserved: list[tuple[bytes, list[bytes]]] = []
    walk = Walk(tree.root, FilterList(()), _silent, on_temporaries=lambda *found: reserved.append(found))
    for _ in walk:
        pass
    found: list[Leftover] = []
    for directory, names in reserved:
        if any(is_below(tree.real_path(directory), top) for top in totals.options.keep):
            continue
        found += [Leftover(tree, directory, name) for name in names if is_displaced(name)]
        temporaries = [name for name in names if not is_displaced(name)]
        try:
            for name in foreign_names(tree.root, directory, temporaries):
                shown = tree.root.shown(join(directory, name))
                totals.skip(shown, f"{printable(shown)}: {_FOREIGN}")
            if totals.options.apply:
                sweep_temporaries(tree.root, directory, temporaries)
        except FileError:
            continue  # removed together with its directory
    return found


def _silent(event: Event, /) -> None:
    """Drop events: the search for duplicates walks the same directories and reports problems."""


def _changes_of(displaced: Collection[bytes], journals: bytes | None) -> dict[bytes, list[Change]]:
    """Return what the newest journals record about files displaced to these absolute paths."""
    directories = {os.path.dirname(path) for path in displaced}
    found: dict[bytes, list[Change]] = {}
    for path in newest_journals(journals):
        try:
            journal = read_journal(path)
        except FileError:
            continue  # another user's, damaged or removed: it proves nothing
        for change in journal.changes:
            # Most records are of other directories, and computing their displaced names can be skipped.
            if change.real_directory in directories and change.displaced in displaced:
                found.setdefault(change.displaced, []).append(change)
    return found


def newest_journals(directory: bytes | None) -> list[bytes]:
    """Return the paths of the newest journals."""
    if directory is None:
        return []
    try:
        names = [name for name in os.listdir(directory) if name.endswith(b".journal")]
    except OSError:
        return []
    # Behind the kind of run, the names of journals have the time.
    names.sort(key=lambda name: name.partition(b"-")[2], reverse=True)
    return [os.path.join(directory, name) for name in names[:JOURNALS_READ]]


def _clear(one: Leftover, changes: Sequence[Change], *, apply: bool) -> Instance | None:
    """Clear one file. Return None if no journal records it or no rule decides about it."""
    root = one.tree.root
    with root.failing(one.path, "look at it", reading=True):
        parent = root.directory(one.directory, fresh=True).fd
        found = os.stat(one.name, dir_fd=parent, follow_symlinks=False)
    for change in changes:
        if change.action is not Action.LINK:
            instance = _return(one, change, found, parent, apply=apply)
            if instance is not None:
                return instance
        elif change.is_recorded(found) or change.is_spare(found):
            return _clear_link(one, change, apply=apply)
    return None


# Removed duplicates


def _return(
    one: Leftover, change: Change, found: os.stat_result, parent: int, *, apply: bool
) -> Instance | None:
    """Give a duplicate its name back, or remove a symbolic link that never took a name."""
    root = one.tree.root
    # The tree of the journal need not be the one given now, but both have this directory.
    path = join(one.directory, change.name)
    shown = root.shown(one.path), root.shown(path)
    text = change.link_text
    if is_link_with(one.name, parent, text):
        if apply:
            remove_spare_link(root, path, one.name, text)
        return Instance(Action.CLEAR, *shown, 0, 0, 0)
    free = not _is_taken(change.name, parent) or is_link_with(change.name, parent, text)
    if not free or not change.is_recorded(found):
        return None
    if apply:
        return_displaced(root, path, one.name, text)
    return Instance(Action.RESTORE, *shown, 0, 0, 0)


def _is_taken(name: bytes, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# Hard links


def _clear_link(one: Leftover, change: Change, *, apply: bool) -> Instance | None:
    root, path = one.tree.root, one.path
    with LeasedFile(root, path) as old:
        if old.identity.inode == change.kept.inode:
            return clear_spare(root, path, old, apply=apply)
        if old.identity.inode != change.inode:
            return None
        beside = join(one.directory, change.name)
        if root.kind(beside) is not Kind.FILE:
            return None
        with LeasedFile(root, beside) as now:
            action = _decide(change, old, now)
            if action is None:
                return None
            if apply:
                with _named(root, path):
                    _carry_out(root, one.directory, one.name, change.name, old, now, action)
            freed = old.allocated if action is Action.CLEAR and old.links == 1 else 0
            return Instance(action, root.shown(path), root.shown(beside), 0, freed, 0)


def clear_spare(root: Root, path: bytes, original: LeasedFile, *, apply: bool) -> Instance | None:
    """Remove a spare name of the original, made before the exchange, and return what was done. While the file
    has another name, nothing is lost; without one, None is returned. Raises FileError."""
    if original.links < 2:
        return None
    if apply:
        directory, _, name = path.rpartition(b"/")
        with _named(root, path):
            parent = root.directory(directory, fresh=True)
            # A lease does not protect names: the others may have been removed since the file was opened.
            if os.fstat(original.fileno()).st_nlink < 2 or not original.is_at(name, parent.fd):
                return None
            os.unlink(name, dir_fd=parent.fd)
    return Instance(Action.CLEAR, root.shown(path), root.shown(path), 0, 0, 0)


def _decide(change: Change, old: LeasedFile, now: LeasedFile) -> Action | None:
    """Return what to do with the displaced file, given the file that now has its name. None: leave it."""
    if now.identity.inode == old.identity.inode:
        return None
    if _is_as_recorded(change, old):
        # The name is a link, as recorded. Its present content is what was written to it later.
        return Action.CLEAR
    if difference(old, now) is None and same_bytes(old, now):
        return Action.CLEAR
    # The file to be replaced must be the original, unchanged, and must keep another name.
    if now.identity.inode == change.kept.inode and _is_as_recorded(change, now) and now.links > 1:
        return Action.RESTORE
    return None


def _is_as_recorded(change: Change, file: LeasedFile) -> bool:
    return file.identity.size == change.size and file.metadata == change.metadata


@contextmanager
def _named(root: Root, path: bytes) -> Iterator[None]:
    with root.failing(path, "clear what an interrupted run left"):
        yield


def _carry_out(
    root: Root, directory: bytes, name: bytes, target: bytes, old: LeasedFile, now: LeasedFile, action: Action
) -> None:
    """Carry out an action. Raises OSError and FileChangedError."""
    parent = root.directory(directory, fresh=True)
    old.check()
    now.check()
    if action is Action.RESTORE:
        if old.is_at(name, parent.fd) and now.is_at(target, parent.fd):
            put_back(name, target, parent.fd, os.fstat(now.fileno()))
        return
    # The file that has the name must be durable before the other one is removed.
    make_durable([now.fileno()], [parent])
    # Syncing takes time: a program may have opened a file for writing meanwhile.
    old.check()
    now.check()
    if old.is_at(name, parent.fd) and now.is_at(target, parent.fd):
        os.unlink(name, dir_fd=parent.fd)
