"""The lines that all journals share: a JSON object, a space, and the CRC-32 of the object.

INSTANCES.md, "The journal", defines the format. rdc.instances.journal has the records.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from contextlib import suppress
from zlib import crc32

from rdc.errors import FileError, printable
from rdc.files.own.append_log import AppendLog, read_log
from rdc.limits.catalog import JOURNAL_BYTES
from rdc.limits.paths import PATH_BYTES
from rdc.records import dataclass

__all__ = ["JournalFile", "LineReader", "encoded", "journal_lines", "signed"]


class JournalFile:
    """A journal file, created with its first lines: a run without changes leaves no file."""

    def __init__(self, path: bytes, head: bytes, pointer: bytes | None = None) -> None:
        """`head`: the object of its first line. `pointer`: path of a symbolic link to the journal, by which
        the next run finds it."""
        self.path = path
        self._head = head
        self._pointer = pointer
        self._log: AppendLog | None = None

    @property
    def is_made(self) -> bool:
        return self._log is not None

    def append(self, lines: bytes) -> None:
        """Append lines and return when they are on disk. Raises RdcError."""
        if self._log is None:
            self._log = AppendLog(self.path)
            self._point()
            lines = signed(self._head) + lines
        self._log.append(lines)

    def _point(self) -> None:
        """Create the symbolic link. Its failure loses no content: an interrupted run's leftovers are then
        reported but not cleared."""
        if self._pointer is not None:
            with suppress(OSError):
                os.makedirs(os.path.dirname(self._pointer), mode=0o700, exist_ok=True)
                os.symlink(os.path.abspath(self.path), self._pointer)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()


def signed(text: bytes) -> bytes:
    """Return a line: JSON, a space, and the CRC-32 of the JSON, which reveals a torn or edited line."""
    return b"%s %08x\n" % (text, crc32(text))


def journal_lines(path: bytes) -> list[bytes]:
    """The lines of a journal, the head included. Raises FileError if others than the effective user and root
    may have written it.

    A cut-off last line is ignored: a kill leaves it, and the change that it announced was not made.
    """
    whole, _, _ = read_log(path, JOURNAL_BYTES, trusted=True).rpartition(b"\n")
    return whole.split(b"\n") if whole else []


def encoded(path: bytes) -> bytes:
    """Return bytes as the string of a field holds them."""
    return binascii.b2a_base64(path, newline=False)


@dataclass(frozen=True, slots=True)
class LineReader:
    """Decodes the lines of one journal. All its methods raise FileError."""

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

    def number(self, value: object, number: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(number, "a whole number")
        return value

    def data(self, value: object, number: int) -> bytes:
        if not isinstance(value, str):
            raise self.error(number, "a path")
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.error(number, "a path in base64") from error

    def path(self, value: object, number: int) -> bytes:
        path = self.data(value, number)
        if not path or len(path) > PATH_BYTES or b"\0" in path:
            raise self.error(number, f"a path of 1 to {PATH_BYTES} bytes")
        return path
