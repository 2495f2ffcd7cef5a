"""The file of what both sides last had in common, as one side keeps it. STATE.md defines the format.

Every length is bounded before anything of that length is made, and a digest covers the whole. A file that is
not exactly what rdc writes is worth nothing, and says so by a DamagedError.
"""

from __future__ import annotations

import json
from array import array

from blake3 import blake3

from rdc.errors import ExitCode, RdcError
from rdc.files.base.paths import is_reserved
from rdc.lean.records import dataclass
from rdc.lean.zstd import zstandard
from rdc.limits import PATH_BYTES, UNITE_HEAD_BYTES, UNITE_ROWS
from rdc.uniting.rows import DIRECTORY, FILE, SYMLINK, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"RDCUNIT\x01"
DIGEST_BYTES = 16
"""Bytes of a known content: the start of its BLAKE3 digest."""

_CHECK_BYTES = 32
_LEVEL = 3
_SIZE_BYTES = 8


class DamagedError(RdcError):
    """The file is not one that rdc wrote. Its text says what was expected."""

    code = ExitCode.FILE_IO


@dataclass(frozen=True, slots=True)
class Head:
    """What an ancestor says of itself."""

    generation: bytes
    """8 random bytes: which run made it. Both sides' files of one run have the same."""
    own: bytes
    """The id of the root that it belongs to, 16 bytes."""
    other: bytes
    inode: int
    """The inode number of that root. In a copy of the tree it is another one."""
    seconds: int
    """When the run ended, since 1970."""
    place: bytes
    """Where the other root was then, as an absolute path."""
    undo: int
    """The number of the record in .rdc-undo that the run made here; 0: none."""


@dataclass(frozen=True, slots=True)
class SharedRow:
    """What both sides have of an entry."""

    kind: int
    digest: bytes | None
    """A file's content, if it is known; else None."""
    target: bytes
    """A symlink's; b"" of others."""
    mode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class OwnAncestor:
    """One side's file, read."""

    head: Head
    paths: Sequence[bytes]
    """Sorted by bytes; those above come first."""
    rows: Sequence[SharedRow]
    stamps: Sequence[Stamp]
    shared: bytes
    """The digest of paths and rows. Both sides' files of one run have the same."""


def encode(head: Head, paths: Sequence[bytes], rows: Sequence[SharedRow], stamps: Sequence[Stamp]) -> bytes:
    """Return the bytes of the file. `paths` is sorted."""
    shared = _shared_columns(paths, rows)
    own = (
        array("q", [stamp.size for stamp in stamps]),
        array("H", [stamp.mode for stamp in stamps]),
        array("q", [stamp.mtime_ns for stamp in stamps]),
        array("Q", [stamp.inode for stamp in stamps]),
        array("q", [stamp.ctime_ns for stamp in stamps]),
    )
    said = {
        "rows": len(paths), "generation": head.generation.hex(), "own": head.own.hex(),
        "other": head.other.hex(), "inode": head.inode, "seconds": head.seconds, "place": head.place.hex(),
        "undo": head.undo,
    }  # fmt: skip
    sections = [json.dumps(said).encode(), *shared, *(_little(column) for column in own)]
    parts = [MAGIC]
    for section in sections:
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(section)
        parts += [len(packed).to_bytes(_SIZE_BYTES, "little"), packed]
    body = b"".join(parts)
    return body + blake3(body).digest()


def _little(column: array[int]) -> bytes:
    import sys

    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def _shared_columns(paths: Sequence[bytes], rows: Sequence[SharedRow]) -> list[bytes]:
    return [
        b"".join(path + b"\0" for path in paths),
        bytes(row.kind for row in rows),
        bytes(row.digest is not None for row in rows),
        b"".join(row.digest for row in rows if row.digest is not None),
        b"".join(row.target + b"\0" for row in rows if row.kind == SYMLINK),
        _little(array("H", [row.mode for row in rows])),
        _little(array("q", [row.mtime_ns for row in rows])),
    ]


def decode(data: bytes) -> OwnAncestor:
    """Read a file. Raises DamagedError."""
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedError("an ancestor of this version of rdc")
    body = data[:-_CHECK_BYTES]
    if len(data) < len(MAGIC) + _CHECK_BYTES or blake3(body).digest() != data[-_CHECK_BYTES:]:
        raise DamagedError("the digest of its content at the end")
    sections = _Sections(body)
    head, count = _read_head(sections.take(UNITE_HEAD_BYTES))
    names = sections.take(count * (PATH_BYTES + 1))
    paths = names.split(b"\0")
    if paths.pop() != b"" or len(paths) != count:
        raise DamagedError(f"{count} paths")
    kinds = sections.take(count, exactly=True)
    known = sections.take(count, exactly=True)
    if set(known) - {0, 1}:
        raise DamagedError("whether each content is known")
    digests = sections.take(known.count(1) * DIGEST_BYTES, exactly=True)
    links = sections.take(kinds.count(SYMLINK) * (PATH_BYTES + 1) + 1)
    targets = links.split(b"\0")
    if targets.pop() != b"" or len(targets) != kinds.count(SYMLINK):
        raise DamagedError(f"{kinds.count(SYMLINK)} link targets")
    modes, mtimes = sections.integers("H", count), sections.integers("q", count)
    _check_paths(paths, kinds)
    rows, at, link = [], 0, 0
    for row, kind in enumerate(kinds):
        digest = None
        if known[row]:
            digest, at = digests[at : at + DIGEST_BYTES], at + DIGEST_BYTES
        target = b""
        if kind == SYMLINK:
            target, link = targets[link], link + 1
        rows.append(SharedRow(kind, digest, target, modes[row], mtimes[row]))
    columns = [sections.integers(code, count) for code in "qHqQq"]
    sections.end()
    stamps = [Stamp(*fields) for fields in zip(*columns, strict=True)]
    shared = blake3()
    for column in _shared_columns(paths, rows):
        shared.update(len(column).to_bytes(_SIZE_BYTES, "little") + column)
    return OwnAncestor(head, paths, rows, stamps, shared.digest())


def _read_head(data: bytes) -> tuple[Head, int]:
    try:
        said = json.loads(data)
        numbers = [said[name] for name in ("rows", "inode", "seconds", "undo")]
        head = Head(
            bytes.fromhex(said["generation"]), bytes.fromhex(said["own"]), bytes.fromhex(said["other"]),
            numbers[1], numbers[2], bytes.fromhex(said["place"]), numbers[3],
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError("what the file says of itself") from error
    if not all(type(number) is int and 0 <= number < 1 << 64 for number in numbers):
        raise DamagedError("numbers of 64 bits")
    if [len(head.generation), len(head.own), len(head.other)] != [8, 16, 16] or numbers[0] > UNITE_ROWS:
        raise DamagedError("ids of 16 bytes, and not too many rows")
    return head, numbers[0]


def _check_paths(paths: Sequence[bytes], kinds: bytes) -> None:
    """Raise DamagedError unless the paths are sorted, can be in a tree, and follow their directories."""
    if set(kinds) - {FILE, DIRECTORY, SYMLINK}:
        raise DamagedError("files, directories and links alone")
    directories = {b""}
    before = b""
    for row, path in enumerate(paths):
        parent, _, name = path.rpartition(b"/")
        if path <= before or parent not in directories or path[:1] == b"/" or len(path) > PATH_BYTES:
            raise DamagedError("sorted paths, each after the directory it is in")
        if name in (b"", b".", b"..") or is_reserved(name):
            raise DamagedError("names that a tree can have")
        if kinds[row] == DIRECTORY:
            directories.add(path)
        before = path


class _Sections:
    """The sections of a file, in order."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = len(MAGIC)

    def take(self, most: int, *, exactly: bool = False) -> bytes:
        """Return the next section, of at most (or `exactly`) `most` bytes. Raises DamagedError."""
        start = self._at + _SIZE_BYTES
        length = int.from_bytes(self._body[self._at : start], "little")
        packed = self._body[start : start + length]
        if start > len(self._body) or len(packed) != length:
            raise DamagedError("another section")
        try:
            size = zstandard.frame_content_size(packed)
            if not 0 <= size <= most or (exactly and size != most):
                raise DamagedError(f"a section of {most} bytes")
            found = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
        except zstandard.ZstdError as error:
            raise DamagedError("a section of zstd") from error
        if len(found) != size:
            raise DamagedError(f"a section of {size} bytes")
        self._at = start + length
        return found

    def integers(self, code: str, count: int) -> array[int]:
        """Return the next section as integers of this typecode. Raises DamagedError."""
        import sys

        column = array(code)
        column.frombytes(self.take(count * column.itemsize, exactly=True))
        if sys.byteorder == "big":
            column.byteswap()
        return column

    def end(self) -> None:
        """Raise DamagedError if anything is left."""
        if self._at != len(self._body):
            raise DamagedError("the end of the file")
