"""The journal of one sync: what it was about to do to each entry, in order. UNDO.md defines the format.

Version 1 is still read. Its lines have no ctimes: they are 0 then, and it has no Left, Held and Own.
"""

from __future__ import annotations

import json
import stat

from rdc.files.own import record_log
from rdc.files.own.record_log import (
    RecordError,
    encoded,
    number_of,
    relative_path_of,
    signed,
    time_of,
)
from rdc.lean.records import dataclass
from rdc.model.entries import Metadata
from rdc.model.preserved import Attributes, packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import TypeAlias


VERSION = 2


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
        """Return what has to be equal."""
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
    """Return the line of a record."""
    return signed(json.dumps(_items(record), separators=(",", ":")).encode("ascii"))


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
    return encoded(data).decode("ascii")


def _facts(facts: Facts | None) -> list[int] | None:
    if facts is None:
        return None
    return [facts.format, facts.inode, facts.size, real_time(facts.mtime_ns), facts.ctime_ns]


def _metadata(metadata: Metadata | None) -> list[int] | None:
    if metadata is None:
        return None
    return [metadata.mode, real_time(metadata.mtime_ns), metadata.uid, metadata.gid]


def decode(items: object) -> Record:
    """Return the record of a line's JSON. Raises RecordError for any that `encode` does not make."""
    match items:
        case ["rdc undo", 1 | 2 as version, int(top), int(seconds)]:
            return Head(top, seconds, version)
        case ["make", path, new]:
            return Made(relative_path_of(path), _read_facts(new))
        case ["keep", path, int(number), old, new] if number >= 0:
            return Saved(relative_path_of(path), number, _read_facts(old), _read_optional(new))
        case ["rmdir", path, new]:
            return RemovedDirectory(relative_path_of(path), _read_optional(new))
        case ["set", path, old, metadata, pairs, wanted]:
            before = None if pairs is None else _read_attributes(pairs)
            after = None if wanted is None else _read_metadata(wanted)
            changed = relative_path_of(path, top=True)
            return Changed(changed, _read_facts(old), _read_metadata(metadata), before, after)
        case ["move", path, new, facts]:
            return Moved(relative_path_of(path), relative_path_of(new), _read_facts(facts))
        case ["left", int(inode), int(ctime_ns)]:
            return Left(inode, ctime_ns)
        case ["held", [*pairs]] if not len(pairs) % 2:
            numbers = tuple(map(number_of, pairs))
            return Held(numbers[0::2], numbers[1::2])
        case ["own", int(inode), int(was), int() | None as now]:
            return Own(inode, was, now)
        case ["finished", int(entries), int(size)]:
            return Finished(entries, size)
        case ["undoing"]:
            return Undoing()
        case ["ended", int(left_alone), int(size)]:
            return Ended(left_alone, size)
    raise RecordError("a record of a sync that can be undone")


def _read_facts(items: object) -> Facts:
    match items:
        case [int(bits), int(inode), int(size), mtime_ns, *ctime] if len(ctime) < 2:
            ctime_ns = number_of(ctime[0]) if ctime else 0
            return Facts(bits, inode, size, packed_time(time_of(mtime_ns)), ctime_ns)
    raise RecordError("the facts of an entry")


def _read_optional(items: object) -> Facts | None:
    return None if items is None else _read_facts(items)


def _read_metadata(items: object) -> Metadata:
    match items:
        case [mode, mtime_ns, uid, gid]:
            return record_log.metadata_of(mode, mtime_ns, uid, gid)
    raise RecordError("the metadata of an entry")


def _read_attributes(pairs: object) -> Attributes:
    if not isinstance(pairs, list):
        raise RecordError("names and values of attributes")
    # The other journal has them in turn.
    return record_log.attributes_of([part for pair in pairs for part in _two(pair)])


def _two(pair: object) -> list[object]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise RecordError("a name and a value")
    return pair
