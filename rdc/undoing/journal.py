"""The journal of one sync: what it was about to do to each entry, in order. UNDO.md defines the format.

Version 1 is still read. Its lines have no ctimes: they are 0 then, and it has no Left, Held and Own.
"""

from __future__ import annotations

import base64
import binascii
import json
import mmap
import stat
from zlib import crc32

from rdc.errors import FileError, printable
from rdc.files.base.relative_path import check_path
from rdc.limits.undo import LINE_BYTES
from rdc.model.entries import Metadata
from rdc.model.times import packed_time, real_time
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import TypeAlias

    from rdc.model.attributes import Attributes

__all__ = [
    "Changed",
    "Ended",
    "Facts",
    "Finished",
    "Head",
    "Held",
    "Left",
    "Made",
    "Moved",
    "Own",
    "Record",
    "RemovedDirectory",
    "Saved",
    "Undoing",
    "backwards",
    "encode",
    "facts_of",
    "metadata_of",
    "whole_end",
]

VERSION = 2

_WRONG = (ValueError, TypeError, RecursionError, FileError)


@dataclass(frozen=True, slots=True)
class Facts:
    """What tells one entry from another."""

    format: int
    """The format bits of st_mode."""
    inode: int
    size: int
    """Bytes; 0 for a directory."""
    mtime_ns: int
    ctime_ns: int = 0
    """Of what was there, before the sync touched it. Of what appears: of a file that got a further name,
    before that. 0: unknown, or nothing that counts."""

    @property
    def is_directory(self) -> bool:
        return self.format == stat.S_IFDIR

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """What has to be equal."""
        return self.format, self.inode, self.size, self.mtime_ns


def facts_of(found: os.stat_result) -> Facts:
    bits = stat.S_IFMT(found.st_mode)
    if bits == stat.S_IFDIR:
        return Facts(bits, found.st_ino, 0, 0)
    return Facts(bits, found.st_ino, found.st_size, packed_time(found.st_mtime_ns), found.st_ctime_ns)


def metadata_of(found: os.stat_result) -> Metadata:
    return Metadata(stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid)


@dataclass(frozen=True, slots=True)
class Head:
    """The first line."""

    top: int
    """Inode number of the destination."""
    seconds: int
    """When the sync began: seconds since 1970."""
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Made:
    """An entry appeared where nothing was."""

    path: bytes
    new: Facts
    """Of a directory only its format counts."""


@dataclass(frozen=True, slots=True)
class Saved:
    """An entry other than a directory was replaced or removed. It has another name among the kept ones."""

    path: bytes
    number: int
    """Its name among the kept ones."""
    old: Facts
    new: Facts | None
    """What took its place; None: nothing."""


@dataclass(frozen=True, slots=True)
class RemovedDirectory:
    """An empty directory was removed or replaced."""

    path: bytes
    new: Facts | None
    """What took its place; None: nothing."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The metadata of an entry changed, or (of a directory) were about to change because of its entries."""

    path: bytes
    old: Facts
    metadata: Metadata
    """Before the change."""
    attributes: Attributes | None
    """Before the change; None: they did not change."""
    wanted: Metadata | None
    """After the change; None: unknown."""


@dataclass(frozen=True, slots=True)
class Moved:
    """An entry was renamed, with everything below it."""

    path: bytes
    """Before."""
    new: bytes
    """Afterwards."""
    facts: Facts


@dataclass(frozen=True, slots=True)
class Left:
    """The sync has changed the metadata of a regular file, or given it a further name."""

    inode: int
    ctime_ns: int
    """Afterwards."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the sync replaced or removed has its name among the kept ones alone by now."""

    numbers: tuple[int, ...]
    ctimes_ns: tuple[int, ...]
    """For each number, that of the file."""


@dataclass(frozen=True, slots=True)
class Own:
    """An undo acts on a file whose ctime was as this sync left it, or has acted on it."""

    inode: int
    was: int
    """The ctime that the file had when it was as it is now, or as it was before the undo began to act on
    it."""
    now: int | None
    """Its ctime; None: the undo is about to act on it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The sync came to its end."""

    entries: int
    bytes: int
    """Space that the kept entries took."""


@dataclass(frozen=True, slots=True)
class Undoing:
    """An undo began."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An undo came to its end and left some entries alone."""

    left_alone: int
    bytes: int
    """Space that the kept entries take, which were not put back."""


Step: TypeAlias = "Made | Saved | RemovedDirectory | Changed | Moved"
"""A line about a change."""

Record: TypeAlias = "Head | Step | Left | Held | Own | Finished | Undoing | Ended"


def encode(record: Record) -> bytes:
    """One line: a JSON array, a space, and the CRC-32 of the array."""
    text = json.dumps(_items(record), separators=(",", ":")).encode("ascii")
    return b"%s %08x\n" % (text, crc32(text))


def _items(record: Record) -> list[object]:
    match record:
        case Head(top, seconds, version):
            return ["rdc undo", version, top, seconds]
        case Made(path, new):
            return ["make", _text(path), _facts(new)]
        case Saved(path, number, old, new_):
            return ["keep", _text(path), number, _facts(old), _facts(new_)]
        case RemovedDirectory(path, new_):
            return ["rmdir", _text(path), _facts(new_)]
        case Changed(path, old, metadata, attributes, wanted):
            pairs = (
                None if attributes is None else [[_text(name), _text(value)] for name, value in attributes]
            )
            return ["set", _text(path), _facts(old), _metadata(metadata), pairs, _metadata(wanted)]
        case Moved(path, new_path, facts):
            return ["move", _text(path), _text(new_path), _facts(facts)]
        case Left(inode, ctime_ns):
            return ["left", inode, ctime_ns]
        case Held(numbers, ctimes_ns):
            return ["held", [each for pair in zip(numbers, ctimes_ns, strict=True) for each in pair]]
        case Own(inode, was, now):
            return ["own", inode, was, now]
        case Finished(entries, size):
            return ["finished", entries, size]
        case Undoing():
            return ["undoing"]
        case Ended(left_alone, size):
            return ["ended", left_alone, size]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _facts(facts: Facts | None) -> list[int] | None:
    if facts is None:
        return None
    return [facts.format, facts.inode, facts.size, real_time(facts.mtime_ns), facts.ctime_ns]


def _metadata(metadata: Metadata | None) -> list[int] | None:
    if metadata is None:
        return None
    return [metadata.mode, real_time(metadata.mtime_ns), metadata.uid, metadata.gid]


def backwards(shown: bytes, data: mmap.mmap | bytes) -> Iterator[Record]:
    """The records of a journal, the last first. What a kill or power cut left of a last write is left out.

    `shown`: the journal's name in messages. Raises FileError for any other line that `encode` does not make.
    """
    end = whole_end(data) - 1
    while end >= 0:
        start = _start_of(data, end)
        try:
            yield _decode(data[start:end])
        except _WRONG as error:
            raise _damaged(shown) from error
        end = start - 1


def whole_end(data: mmap.mmap | bytes) -> int:
    """The end of the last good line. A power cut can leave parts of what was written behind it."""
    end = data.rfind(b"\n")
    while end >= 0:
        start = _start_of(data, end)
        try:
            _decode(data[start:end])
        except _WRONG:
            end = start - 1
        else:
            return end + 1
    return 0


def _start_of(data: mmap.mmap | bytes, end: int) -> int:
    """The first byte of the line that ends at `end`, or of its last LINE_BYTES, which are no line then."""
    return max(data.rfind(b"\n", max(0, end - LINE_BYTES), end) + 1, end - LINE_BYTES)


def _damaged(shown: bytes) -> FileError:
    name = printable(shown)
    return FileError(
        shown,
        f"{name}: cannot read it: expected a journal of rdc undo, found a line that rdc did not write;"
        " what is kept beside it stays",
    )


def _decode(line: bytes) -> Record:
    """Raises ValueError, TypeError or FileError."""
    text, _, check = line.rpartition(b" ")
    if check != b"%08x" % crc32(text):
        raise ValueError("a wrong checksum")
    items = json.loads(text)
    if not isinstance(items, list):
        raise ValueError("no array")
    match items:
        case ["rdc undo", 1 | 2 as version, int(top), int(seconds)]:
            return Head(top, seconds, version)
        case ["make", str(path), new]:
            return Made(_path(path), _read_facts(new))
        case ["keep", str(path), int(number), old, new] if number >= 0:
            return Saved(_path(path), number, _read_facts(old), _read_optional(new))
        case ["rmdir", str(path), new]:
            return RemovedDirectory(_path(path), _read_optional(new))
        case ["set", str(path), old, metadata, pairs, wanted]:
            read = None if pairs is None else _read_attributes(pairs)
            after = None if wanted is None else _read_metadata(wanted)
            return Changed(_path(path, top=True), _read_facts(old), _read_metadata(metadata), read, after)
        case ["move", str(path), str(new), facts]:
            return Moved(_path(path), _path(new), _read_facts(facts))
        case ["left", int(inode), int(ctime_ns)]:
            return Left(inode, ctime_ns)
        case ["held", [*pairs]] if all(type(each) is int for each in pairs):
            return Held(tuple(pairs[0::2]), tuple(pairs[1::2]))
        case ["own", int(inode), int(was), int() | None as now]:
            return Own(inode, was, now)
        case ["finished", int(entries), int(size)]:
            return Finished(entries, size)
        case ["undoing"]:
            return Undoing()
        case ["ended", int(left_alone), int(size)]:
            return Ended(left_alone, size)
    raise ValueError("an unknown record")


def _path(text: str, *, top: bool = False) -> bytes:
    path = _data(text)
    check_path(path)
    if not path and not top:
        raise ValueError("an empty path")
    return path


def _data(text: object) -> bytes:
    if not isinstance(text, str):
        raise TypeError("no text")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error


def _numbers(items: object) -> tuple[int, int, int, int]:
    match items:
        case [int(one), int(two), int(three), int(four)]:
            return one, two, three, four
    raise ValueError("not four numbers")


def _read_facts(items: object) -> Facts:
    numbers, ctime_ns = items, 0
    match items:
        case [_, _, _, _, int(ctime_ns)]:
            numbers = items[:4]
    format_, inode, size, mtime = _numbers(numbers)
    return Facts(format_, inode, size, _read_time(mtime), ctime_ns)


def _read_optional(items: object) -> Facts | None:
    return None if items is None else _read_facts(items)


def _read_metadata(items: object) -> Metadata:
    mode, mtime_ns, uid, gid = _numbers(items)
    if not 0 <= mode <= 0o7777:
        raise ValueError("a mode out of bounds")
    if not (0 <= uid < 1 << 32 and 0 <= gid < 1 << 32):
        raise ValueError("an owner out of bounds")
    return Metadata(mode, _read_time(mtime_ns), uid, gid)


def _read_time(nanoseconds: int) -> int:
    """Return the packed form of a time, which a journal has as nanoseconds since the epoch."""
    if not -(1 << 63) <= nanoseconds // 10**9 < 1 << 63:
        raise ValueError("a time out of bounds")
    return packed_time(nanoseconds)


def _read_attributes(pairs: object) -> Attributes:
    if not isinstance(pairs, list):
        raise TypeError("no attributes")
    return tuple((_data(name), _data(value)) for name, value in pairs)
