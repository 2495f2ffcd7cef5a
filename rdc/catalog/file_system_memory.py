"""The facts learned of file systems, kept between runs in one small file beside the catalog.

The file is text: a line with the version and a digest of the rest, then a line a file system: its key
(rdc.files.facts.file_systems), the day of its last use counted from 1970, and its facts as numbers. It is a
cache: a file that is damaged, of another version, too long or another user's counts as missing, and is
written again. A fact that is wrong costs a comparison or leaves metadata alone; it hides no content.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from blake3 import blake3

from rdc.files.facts.file_systems import KEY_BYTES
from rdc.lean.records import Record
from rdc.limits import REMEMBERED_FILE_SYSTEMS
from rdc.model.entries import ComparedFields
from rdc.model.preserved import FileSystemFacts
from rdc.protocol.wire.options import PreservedCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.database import Database


FILE_NAME = "file-systems"

_HEAD = b"rdc file systems 1 "
_LINE_BYTES = 100
"""More than the longest line has."""
_FILE_BYTES = REMEMBERED_FILE_SYSTEMS * _LINE_BYTES
_DAY_SECONDS = 86_400
_FLAGS = 6


class _Remembered(Record):
    day: int
    facts: FileSystemFacts


class FileSystemMemory:
    """The facts by key. Nothing is read before the first question, and no method raises."""

    def __init__(self, database: Database) -> None:
        """`database`: of the catalog, whose directory holds the file."""
        self._database = database
        self._path = os.path.join(database.directory, FILE_NAME)

    def facts(self, key: bytes) -> FileSystemFacts | None:
        """Return the facts of the file system with this key; None if nothing is known."""
        found = self._read().get(key)
        return None if found is None else found.facts

    def remember(self, key: bytes, facts: FileSystemFacts) -> None:
        """Store the facts, in place of those of the file system that was not used for the longest time."""
        known = self._read()
        today = int(time.time()) // _DAY_SECONDS
        if known.get(key) == _Remembered(today, facts):
            return
        known.pop(key, None)
        known[key] = _Remembered(today, facts)
        kept = sorted(known.items(), key=lambda item: item[1].day)[-REMEMBERED_FILE_SYSTEMS:]
        with suppress(OSError):
            self._write(b"".join(_line(*item) for item in kept))

    def _read(self) -> dict[bytes, _Remembered]:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            if os.fstat(fd).st_uid != os.geteuid():
                return {}
            text = os.read(fd, _FILE_BYTES + 1)
        except OSError:
            return {}
        finally:
            os.close(fd)
        head, _, body = text.partition(b"\n")
        if len(text) > _FILE_BYTES or head != _HEAD + _digest(body):
            return {}
        try:
            return dict(map(_parsed, body.splitlines()))
        except ValueError:
            return {}

    def _write(self, body: bytes) -> None:
        """Replace the file by one with this body. Raises OSError."""
        self._database.prepare_directory()
        aside = f"{self._path}.{os.getpid()}"
        with suppress(FileNotFoundError):
            os.unlink(aside)
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, _HEAD + _digest(body) + b"\n" + body)
            os.close(fd)
            os.rename(aside, self._path)
        except OSError:
            os.unlink(aside)
            raise


def _digest(body: bytes) -> bytes:
    return blake3(body).hexdigest(16).encode()


def _line(key: bytes, one: _Remembered) -> bytes:
    facts = one.facts
    stable = facts.stable
    flags = (stable.inode, stable.ctime, facts.steady, facts.no_replace, facts.hard_links, facts.syncs)
    code = sum(flag << bit for bit, flag in enumerate(flags))
    return f"{key.hex()} {one.day} {PreservedCode().pack(facts.keeps)} {code}\n".encode()


def _parsed(line: bytes) -> tuple[bytes, _Remembered]:
    """Return the key and the facts of a line. Raises ValueError."""
    key, day, kept, code = line.split(b" ")
    if len(key) != 2 * KEY_BYTES or not 0 <= int(code) < 1 << _FLAGS:
        raise ValueError(line)
    flags = [bool(int(code) >> bit & 1) for bit in range(_FLAGS)]
    facts = FileSystemFacts(
        PreservedCode().unpack(int(kept)), ComparedFields(inode=flags[0], ctime=flags[1]), *flags[2:]
    )
    return bytes.fromhex(key.decode()), _Remembered(int(day), facts)
