"""The journal of hard links: written and durable before each is made, read to make them separate files again.

INSTANCES.md, "The journal", has the format.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from zlib import crc32

from rdc.errors import FileError, printable
from rdc.files.path import check_path
from rdc.files.record_log import RecordLog, read_log
from rdc.limits import JOURNAL_BYTES, PATH_BYTES
from rdc.records import dataclass

__all__ = ["Journal", "LinkRecord", "read_journal"]

VERSION = 1
_NAME = "rdc dedupe"


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """One name that became, or was about to become, a hard link."""

    top: bytes
    """The absolute path of the tree it is in."""
    path: bytes
    """Relative to it."""
    kept: bytes
    """The absolute path of the file it was linked to."""
    inode: int
    """That file's inode number."""
    size: int
    mtime_ns: int


class Journal:
    """Made at the first record: a run without links leaves no file."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self._log: RecordLog | None = None

    @property
    def is_made(self) -> bool:
        return self._log is not None

    def write(self, records: Iterable[LinkRecord]) -> None:
        """Return once they are on disk. Raises RdcError."""
        lines = [_line(_fields(record)) for record in records]
        if self._log is None:
            self._log = RecordLog(self.path)
            lines.insert(0, _line({"journal": _NAME, "v": VERSION}))
        self._log.append(b"".join(lines))

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def read_journal(path: bytes) -> list[LinkRecord]:
    """The records of a journal, in the order of the run. Raises FileError for anything else.

    A last line that was cut short is what a kill leaves: what it announced was not done.
    """
    whole, _, _ = read_log(path, JOURNAL_BYTES).rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    reader = _Reader(path)
    if not lines or reader.fields(lines[0], 1) != {"journal": _NAME, "v": VERSION}:
        raise reader.error(1, f"the first line of a journal of version {VERSION}")
    return [reader.record(line, number) for number, line in enumerate(lines[1:], 2)]


def _line(fields: dict[str, str | int]) -> bytes:
    """JSON, a space, and the CRC-32 of the JSON: a line that was torn or edited shows."""
    text = json.dumps(fields, separators=(",", ":"), sort_keys=True).encode("ascii")
    return b"%s %08x\n" % (text, crc32(text))


def _fields(record: LinkRecord) -> dict[str, str | int]:
    return {
        "top": base64.b64encode(record.top).decode("ascii"),
        "path": base64.b64encode(record.path).decode("ascii"),
        "kept": base64.b64encode(record.kept).decode("ascii"),
        "inode": record.inode,
        "size": record.size,
        "mtime_ns": record.mtime_ns,
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

    def record(self, line: bytes, number: int) -> LinkRecord:
        fields = self.fields(line, number)
        if fields.keys() != {"top", "path", "kept", "inode", "size", "mtime_ns"}:
            raise self.error(number, "the fields of a link")
        top = self._path(fields["top"], number)
        kept = self._path(fields["kept"], number)
        path = self._path(fields["path"], number)
        try:
            check_path(path)
        except FileError as error:
            raise self.error(number, "a path below the tree") from error
        if not top.startswith(b"/") or not kept.startswith(b"/") or not path:
            raise self.error(number, "absolute paths of tree and kept file")
        inode, size, mtime = (self._number(fields[name], number) for name in ("inode", "size", "mtime_ns"))
        return LinkRecord(top, path, kept, inode, size, mtime)

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
