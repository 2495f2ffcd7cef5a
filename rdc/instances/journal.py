"""The journal of names that lost their files: hard links that were made, and duplicates that were removed.

Each change is durable in it before it is made. `rdc undo` reads it to take the changes back, and a run reads
it to clear what an interrupted one left. INSTANCES.md, "The journal", defines the formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rdc.errors import FileError
from rdc.files.base.relative_path import check_path, join
from rdc.files.names.displaced_names import displaced_name
from rdc.instances.journal_lines import JournalFile, LineReader, encoded, journal_lines, signed
from rdc.model.entries import Metadata
from rdc.model.instances import Action
from rdc.model.removal import REMOVALS
from rdc.model.times import packed_time, real_time
from rdc.records import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.attributes import Attributes

__all__ = ["Change", "DirectoryState", "Journal", "JournalWriter", "KeptFile", "read_journal"]

NAME, VERSION = "rdc dedupe", 3
LINKS_VERSION, REMOVALS_VERSION = 2, 1
"""The last versions of the two formats that this one replaces."""

_REMOVALS_NAME = "rdc dupes"

_ACTIONS = {action.value: action for action in (Action.LINK, *REMOVALS)}

_DIGEST_BYTES = 32
_ID_MAX = (1 << 32) - 1
_SIZE_MAX = (1 << 63) - 1
_TIME_MAX = (1 << 63) * 1_000_000_000
"""Nanoseconds. Seconds are 64-bit numbers."""


@dataclass(frozen=True, slots=True)
class KeptFile:
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
    """Whether the digest is BLAKE3 of all bytes, as in older journals, and no ContentDigest."""

    @property
    def real(self) -> bytes:
        """Its absolute path."""
        return join(self.top.rstrip(b"/"), self.path)


@dataclass(frozen=True, slots=True)
class Change:
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
    """Of that file. With LINK, the file that stays had the same."""
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


@dataclass(frozen=True, slots=True)
class DirectoryState:
    """A directory before the run took names from it, or from below it."""

    top: bytes
    path: bytes
    """Relative to `top`; b"" is that directory itself."""
    metadata: Metadata
    attributes: Attributes


@dataclass(slots=True)
class Journal:
    """What a journal records, in the order of the run."""

    changes: list[Change] = field(default_factory=list)
    directories: dict[tuple[bytes, bytes], DirectoryState] = field(default_factory=dict)
    """By tree and path."""
    made: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Tree and path of each directory that the run made for what it moved."""


class JournalWriter(JournalFile):
    """Writes one journal."""

    def __init__(self, path: bytes, pointer: bytes | None = None) -> None:
        """`pointer`: path of a symbolic link to the journal, by which the next run finds it."""
        super().__init__(path, b'{"journal":"%s","v":%d}' % (NAME.encode(), VERSION), pointer)
        self._tops: dict[bytes, int] = {}
        self._kept: KeptFile | None = None

    def write(
        self,
        changes: Iterable[Change],
        directories: Iterable[DirectoryState] = (),
        made: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        """Append records and return when they are on disk. Raises RdcError."""
        lines: list[bytes] = []
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
        self.append(b"".join(map(signed, lines)))

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
        """The number of a tree. Its line is added before the first that needs it."""
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
    lines = journal_lines(path)
    reader = LineReader(path)
    head = reader.fields(lines[0], 1) if lines else {}
    for version, read in (
        ({"journal": NAME, "v": VERSION}, _read),
        ({"journal": NAME, "v": LINKS_VERSION}, _read_links),
        ({"journal": NAME, "v": 1}, _read_links),
        ({"journal": _REMOVALS_NAME, "v": REMOVALS_VERSION}, _read_removals),
    ):
        if head == version:
            return read(reader, lines[1:])
    raise reader.error(1, f"the first line of a journal of version 1 to {VERSION}")


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


def _read(reader: LineReader, lines: Sequence[bytes]) -> Journal:
    found = Journal()
    tops: list[bytes] = []
    kept: KeptFile | None = None

    def top(value: object) -> bytes:
        at = reader.number(value, number)
        if not 0 <= at < len(tops):
            raise reader.error(number, "the number of a tree above")
        return tops[at]

    for number, line in enumerate(lines, 2):
        fields = reader.fields(line, number)
        kind = _KINDS.get(frozenset(fields))
        if kind is None:
            raise reader.error(number, "the fields of a change")
        if kind == "top":
            tops.append(_absolute(reader, fields["top"], number))
        elif kind == "keep":
            where = top(fields["in"]), _path(reader, fields["keep"], number)
            numbers = reader.number(fields["inode"], number), reader.number(fields["size"], number)
            if not 0 <= numbers[1] <= _SIZE_MAX:
                raise reader.error(number, "a size of 63 bits")
            kept = KeptFile(*where, *numbers, _digest(reader, fields["digest"], number, optional=True))
        elif kind == "directory":
            path = reader.data(fields["directory"], number)
            state = DirectoryState(
                top(fields["in"]),
                _path(reader, fields["directory"], number) if path else b"",
                _metadata_of(reader, fields, number),
                _attributes(reader, fields["attributes"], number),
            )
            found.directories.setdefault((state.top, state.path), state)
        elif kind == "made":
            found.made.append((top(fields["in"]), _path(reader, fields["made"], number)))
        else:
            if kept is None or (kind != "link" and not kept.digest):
                raise reader.error(number, "a line before it that says which file stays")
            action = _ACTIONS[kind]
            to_top = top(fields["to_in"]) if action is Action.MOVE else b""
            found.changes.append(
                Change(
                    *(action, top(fields["in"]), _path(reader, fields[kind], number), kept),
                    *(reader.number(fields["inode"], number), _metadata_of(reader, fields, number)),
                    _time(reader, fields["atime_ns"], number),
                    _attributes(reader, fields["attributes"], number),
                    to_top,
                    _destination(reader, action, fields, number),
                )
            )
    return found


def _destination(reader: LineReader, action: Action, fields: dict[str, object], number: int) -> bytes:
    if action is Action.MOVE:
        return _path(reader, fields["to"], number)
    return reader.path(fields["to"], number) if action is Action.SYMLINK else b""


# Older versions

_LINK_PATHS = frozenset(("top", "path", "kept"))
_LINKS_1 = _LINK_PATHS | {"inode", "size", "mtime_ns"}
_LINKS_2 = _LINKS_1 | {"old", "mode", "uid", "gid"}


def _read_links(reader: LineReader, lines: Sequence[bytes]) -> Journal:
    """Hard links in a journal of version 1 or 2."""
    return Journal([_link(reader, line, number) for number, line in enumerate(lines, 2)])


def _link(reader: LineReader, line: bytes, number: int) -> Change:
    fields = reader.fields(line, number)
    if fields.keys() not in (_LINKS_1, _LINKS_2):
        raise reader.error(number, "the fields of a link")
    top = _absolute(reader, fields["top"], number)
    directory, _, name = _absolute(reader, fields["kept"], number).rpartition(b"/")
    path = _path(reader, fields["path"], number)
    inode, size = (reader.number(fields[key], number) for key in ("inode", "size"))
    if not 0 <= size < 1 << 64:
        raise reader.error(number, "a size of 64 bits")
    kept = KeptFile(directory or b"/", name, inode, size, b"")
    metadata = _metadata_of(reader, {"mode": 0, "uid": 0, "gid": 0, **fields}, number)
    return Change(Action.LINK, top, path, kept, reader.number(fields.get("old", 0), number), metadata)


_REMOVAL_PATHS = ("top", "path", "kept_top", "kept")
_REMOVAL = frozenset(
    (*_REMOVAL_PATHS, "action", "to_top", "to", "inode", "size", "digest", "atime_ns", *_METADATA)
)


def _read_removals(reader: LineReader, lines: Sequence[bytes]) -> Journal:
    """Removed duplicates in a journal of version 1."""
    return Journal(list(_removals(reader, lines)))


def _removals(reader: LineReader, lines: Sequence[bytes]) -> Iterator[Change]:
    for number, line in enumerate(lines, 2):
        fields = reader.fields(line, number)
        if fields.keys() != _REMOVAL or fields["action"] not in {action.value for action in REMOVALS}:
            raise reader.error(number, "the fields of a removed duplicate")
        action = Action(fields["action"])
        size = reader.number(fields["size"], number)
        if not 0 <= size <= _SIZE_MAX:
            raise reader.error(number, "a size of 63 bits")
        kept = KeptFile(
            _absolute(reader, fields["kept_top"], number),
            _path(reader, fields["kept"], number),
            0,
            size,
            _digest(reader, fields["digest"], number),
            digest_of_all=True,
        )
        yield Change(
            action,
            _absolute(reader, fields["top"], number),
            _path(reader, fields["path"], number),
            kept,
            reader.number(fields["inode"], number),
            _metadata_of(reader, fields, number),
            _time(reader, fields["atime_ns"], number),
            _attributes(reader, fields["attributes"], number),
            _absolute(reader, fields["to_top"], number) if action is Action.MOVE else b"",
            _destination(reader, action, fields, number),
        )


# Values


def _absolute(reader: LineReader, value: object, number: int) -> bytes:
    path = reader.path(value, number)
    if not path.startswith(b"/"):
        raise reader.error(number, "the absolute path of a directory or file")
    return path


def _path(reader: LineReader, value: object, number: int) -> bytes:
    path = reader.path(value, number)
    try:
        check_path(path)
    except FileError as error:
        raise reader.error(number, "a path below its directory") from error
    return path


def _metadata_of(reader: LineReader, fields: dict[str, object], number: int) -> Metadata:
    mode, uid, gid = (reader.number(fields[name], number) for name in ("mode", "uid", "gid"))
    if not (0 <= mode <= 0o7777 and 0 <= uid <= _ID_MAX and 0 <= gid <= _ID_MAX):
        raise reader.error(number, "permission bits, an owner and a group")
    return Metadata(mode, packed_time(_time(reader, fields["mtime_ns"], number)), uid, gid)


def _time(reader: LineReader, value: object, number: int) -> int:
    time = reader.number(value, number)
    if not -_TIME_MAX <= time < _TIME_MAX:
        raise reader.error(number, "a time whose seconds have 64 bits")
    return time


def _digest(reader: LineReader, value: object, number: int, *, optional: bool = False) -> bytes:
    try:
        digest = bytes.fromhex(value) if isinstance(value, str) else b"?"
    except ValueError:
        digest = b"?"
    if len(digest) != _DIGEST_BYTES and not (optional and not digest):
        raise reader.error(number, "a digest")
    return digest


def _attributes(reader: LineReader, value: object, number: int) -> Attributes:
    if not isinstance(value, list) or len(value) % 2:
        raise reader.error(number, "names and values of attributes")
    parts = [reader.data(part, number) for part in value]
    return tuple(zip(parts[::2], parts[1::2], strict=True))
