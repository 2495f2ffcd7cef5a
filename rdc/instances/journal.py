"""The journal of hard links. It is durable before each link is made; `rdc dedupe --undo` reads it to separate
the files again.

INSTANCES.md, "The journal", defines the format.
"""

from __future__ import annotations

from collections.abc import Iterable

from rdc.errors import FileError
from rdc.files.base.relative_path import check_path
from rdc.files.names.displaced_names import displaced_name
from rdc.instances.journal_lines import Fields, JournalFile, LineReader, encoded, journal_lines
from rdc.model.entries import Metadata
from rdc.records import dataclass

__all__ = ["Journal", "LinkRecord", "read_journal"]

VERSION = 2
_NAME = "rdc dedupe"


_PATHS = frozenset(("top", "path", "kept"))
_FIELDS = {
    1: _PATHS | {"inode", "size", "mtime_ns"},
    2: _PATHS | {"inode", "size", "mtime_ns", "old", "mode", "uid", "gid"},
}
"""Fields of a link record, by version."""

_ID_MAX = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """One name that became, or was about to become, a hard link."""

    top: bytes
    """Absolute path of the tree that contains the name."""
    path: bytes
    """Path relative to `top`."""
    original: bytes
    """Absolute path of the file that the name was linked to."""
    inode: int
    """Inode number of that file."""
    size: int
    mtime_ns: int
    old: int = 0
    """Inode number of the file that had the name before; 0 in a journal of version 1, which lacks it."""
    mode: int = 0
    """Permission bits. Both files had the same mode, uid and gid."""
    uid: int = 0
    gid: int = 0

    @property
    def metadata(self) -> Metadata:
        """The metadata that both files had."""
        return Metadata(self.mode, self.mtime_ns, self.uid, self.gid)

    @property
    def displaced(self) -> bytes:
        """Absolute path at which the old file lies while the name changes."""
        directory, _, name = b"/".join((self.top.rstrip(b"/"), self.path)).rpartition(b"/")
        return directory + b"/" + displaced_name(name, self.size, self.metadata)


class Journal(JournalFile):
    """A journal of hard links."""

    def __init__(self, path: bytes, pointer: bytes | None = None) -> None:
        super().__init__(path, _NAME, VERSION, pointer)

    def write(self, records: Iterable[LinkRecord]) -> None:
        """Appends records and returns when they are on disk. Raises RdcError."""
        self.append(map(_fields, records))


def read_journal(path: bytes) -> list[LinkRecord]:
    """The records of a journal in the order of the run. Raises FileError for any other file, and for a file
    that others than the effective user and root may have written.

    A cut-off last line is ignored: a kill leaves it, and the link that it announced was not made.
    """
    lines = journal_lines(path)
    reader = _Reader(path)
    head = reader.fields(lines[0], 1) if lines else {}
    versions = [version for version in _FIELDS if head == {"journal": _NAME, "v": version}]
    if not versions:
        raise reader.error(1, f"the first line of a journal of version 1 to {VERSION}")
    names = _FIELDS[versions[0]]
    return [reader.record(line, number, names) for number, line in enumerate(lines[1:], 2)]


def _fields(record: LinkRecord) -> Fields:
    return {
        "top": encoded(record.top),
        "path": encoded(record.path),
        "kept": encoded(record.original),
        "inode": record.inode,
        "size": record.size,
        "mtime_ns": record.mtime_ns,
        "old": record.old,
        "mode": record.mode,
        "uid": record.uid,
        "gid": record.gid,
    }


class _Reader(LineReader):
    def record(self, line: bytes, number: int, names: frozenset[str]) -> LinkRecord:
        """Decodes one line. `names`: the fields of its version."""
        fields = self.fields(line, number)
        if fields.keys() != names:
            raise self.error(number, "the fields of a link")
        top = self.path(fields["top"], number)
        original = self.path(fields["kept"], number)
        path = self.path(fields["path"], number)
        try:
            check_path(path)
        except FileError as error:
            raise self.error(number, "a path below the tree") from error
        if not top.startswith(b"/") or not original.startswith(b"/") or not path:
            raise self.error(number, "absolute paths of tree and kept file")
        numbers = {name: self.number(fields[name], number) for name in names - _PATHS}
        if not 0 <= numbers.get("mode", 0) <= 0o7777:
            raise self.error(number, "permission bits")
        if not all(0 <= numbers.get(name, 0) <= _ID_MAX for name in ("uid", "gid")):
            raise self.error(number, "an owner and a group")
        if not (0 <= numbers["size"] < 1 << 64 and -(1 << 63) <= numbers["mtime_ns"] < 1 << 63):
            raise self.error(number, "a size and a time of 64 bits")
        return LinkRecord(top, path, original, **numbers)
