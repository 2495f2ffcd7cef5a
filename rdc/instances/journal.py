"""The journal of hard links. It is durable before each link is made; `rdc dedupe --undo` reads it to separate
the files again.

INSTANCES.md, "The journal", defines the format.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from zlib import crc32

from rdc.errors import FileError, printable
from rdc.files.base.relative_path import check_path
from rdc.files.names.displaced_names import displaced_name
from rdc.files.own.append_log import AppendLog, read_log
from rdc.limits.catalog import JOURNAL_BYTES
from rdc.limits.paths import PATH_BYTES
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


class Journal:
    """A journal file, created with the first record: a run without links leaves no file."""

    def __init__(self, path: bytes, pointer: bytes | None = None) -> None:
        """`pointer`: path of a symbolic link to the journal, by which the next run finds it."""
        self.path = path
        self._pointer = pointer
        self._log: AppendLog | None = None

    @property
    def is_made(self) -> bool:
        return self._log is not None

    def write(self, records: Iterable[LinkRecord]) -> None:
        """Appends records and returns when they are on disk. Raises RdcError."""
        lines = [_line(_fields(record)) for record in records]
        if self._log is None:
            self._log = AppendLog(self.path)
            self._point()
            lines.insert(0, _line({"journal": _NAME, "v": VERSION}))
        self._log.append(b"".join(lines))

    def _point(self) -> None:
        """Creates the symbolic link. Its failure loses no content: an interrupted run's leftovers are then
        reported but not cleared."""
        if self._pointer is not None:
            with suppress(OSError):
                os.makedirs(os.path.dirname(self._pointer), mode=0o700, exist_ok=True)
                os.symlink(os.path.abspath(self.path), self._pointer)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def read_journal(path: bytes) -> list[LinkRecord]:
    """The records of a journal in the order of the run. Raises FileError for any other file, and for a file
    that others than the effective user and root may have written.

    A cut-off last line is ignored: a kill leaves it, and the link that it announced was not made.
    """
    whole, _, _ = read_log(path, JOURNAL_BYTES, trusted=True).rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    reader = _Reader(path)
    head = reader.fields(lines[0], 1) if lines else {}
    versions = [version for version in _FIELDS if head == {"journal": _NAME, "v": version}]
    if not versions:
        raise reader.error(1, f"the first line of a journal of version 1 to {VERSION}")
    names = _FIELDS[versions[0]]
    return [reader.record(line, number, names) for number, line in enumerate(lines[1:], 2)]


def _line(fields: dict[str, str | int]) -> bytes:
    """JSON, a space, and the CRC-32 of the JSON, which reveals a torn or edited line."""
    text = json.dumps(fields, separators=(",", ":"), sort_keys=True).encode("ascii")
    return b"%s %08x\n" % (text, crc32(text))


def _fields(record: LinkRecord) -> dict[str, str | int]:
    return {
        "top": base64.b64encode(record.top).decode("ascii"),
        "path": base64.b64encode(record.path).decode("ascii"),
        "kept": base64.b64encode(record.original).decode("ascii"),
        "inode": record.inode,
        "size": record.size,
        "mtime_ns": record.mtime_ns,
        "old": record.old,
        "mode": record.mode,
        "uid": record.uid,
        "gid": record.gid,
    }


@dataclass(frozen=True, slots=True)
class _Reader:
    journal: bytes

    def error(self, number: int, expected: str) -> FileError:
        name = printable(self.journal)
        return FileError(
            self.journal,
            f"{name}, line {number}: expected {expected}, found something else; nothing was undone",
        )

    def fields(self, line: bytes, number: int) -> dict[str, object]:
        text, space, check = line.rpartition(b" ")
        if not space or check != b"%08x" % crc32(text):
            raise self.error(number, "a record with its checksum")
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.error(number, "a JSON object") from error
        if not isinstance(fields, dict):
            raise self.error(number, "a JSON object")
        return fields

    def record(self, line: bytes, number: int, names: frozenset[str]) -> LinkRecord:
        """Decodes one line. `names`: the fields of its version."""
        fields = self.fields(line, number)
        if fields.keys() != names:
            raise self.error(number, "the fields of a link")
        top = self._path(fields["top"], number)
        original = self._path(fields["kept"], number)
        path = self._path(fields["path"], number)
        try:
            check_path(path)
        except FileError as error:
            raise self.error(number, "a path below the tree") from error
        if not top.startswith(b"/") or not original.startswith(b"/") or not path:
            raise self.error(number, "absolute paths of tree and kept file")
        numbers = {name: self._number(fields[name], number) for name in names - _PATHS}
        if not 0 <= numbers.get("mode", 0) <= 0o7777:
            raise self.error(number, "permission bits")
        if not all(0 <= numbers.get(name, 0) <= _ID_MAX for name in ("uid", "gid")):
            raise self.error(number, "an owner and a group")
        if not (0 <= numbers["size"] < 1 << 64 and -(1 << 63) <= numbers["mtime_ns"] < 1 << 63):
            raise self.error(number, "a size and a time of 64 bits")
        return LinkRecord(top, path, original, **numbers)

    def _number(self, value: object, number: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(number, "a whole number")
        return value

    def _path(self, value: object, number: int) -> bytes:
        if not isinstance(value, str):
            raise self.error(number, "a path")
        try:
            path = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.error(number, "a path in base64") from error
        if not path or len(path) > PATH_BYTES or b"\0" in path:
            raise self.error(number, f"a path of 1 to {PATH_BYTES} bytes")
        return path
