"""The file of what both sides last had in common, as one side keeps it. STATE.md defines the format.

Every length is bounded before anything of that length is made, and a digest covers the whole. A file that is
not exactly what rdc writes is worth nothing, and says so by a DamagedError.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from itertools import chain, compress, islice, pairwise
from operator import lt

from blake3 import blake3

from rdc.errors import ExitCode, RdcError
from rdc.files.base.paths import RESERVED_PATTERN
from rdc.lean.records import Record
from rdc.lean.zstd import zstandard
from rdc.limits import NAME_BYTES, PATH_BYTES, UNITE_HEAD_BYTES, UNITE_ROWS
from rdc.uniting.columns import (
    SHARED_COLUMNS,
    STAMP_CODES,
    SharedRow,
    Spliced,
    Table,
    digests_of,
    integers,
    little,
    next_digests,
    table_of,
)
from rdc.uniting.path_texts import Paths
from rdc.uniting.rows import DIGEST_BYTES, DIRECTORY, FILE, MODE_BITS, SYMLINK, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rdc.uniting.columns import Pieces

MAGIC = b"RDCUNIT\x01"
_CHECK_BYTES = 32
_LEVEL = 3
_SIZE_BYTES = 8
_ALL_MODE_BITS = 0o7777
"""The bits of a mode as a side's own file system has it."""


class DamagedError(RdcError):
    """The file is not one that rdc wrote. Its text says what was expected."""

    code = ExitCode.FILE_IO


class Head(Record):
    """The head of an ancestor."""

    generation: bytes
    """8 random bytes: which run made it. Both sides' files of one run have the same."""
    own: bytes
    """The id of the root that it belongs to, 16 bytes."""
    other: bytes
    inode: int
    """The inode number of that root. In a copy of the tree it is another one."""
    seconds: int
    """The end of the run, in seconds since 1970."""
    place: bytes
    """The place of the other root then, as an absolute path."""
    undo: int
    """The number of the record in .rdc-undo that the run made here; 0: none."""
    listing: bytes = b""
    """The digest of how a walk lists this side if nothing changes (whole_digest); b"": unknown."""
    attributes: int = 0
    """The AttributeKinds of which the file has what is agreed; 0: none took part in the run."""
    links: int = 0
    """The number of names that share a file with another name; 0 also if hard links took no part."""
    location: bytes = b""
    """The place of the other root as its own machine names it, whichever side dialled; b"": unknown."""


class AgreedAttributes(Record):
    """The extended attributes that both sides have in common."""

    kinds: int
    """The AttributeKinds that take part: a set of other kinds says nothing about these."""
    digests: Mapping[bytes, bytes]
    """The digest of the set of each entry, b"" for none, by path. Of others nothing is agreed."""


class OwnAncestor(Record):
    """One side's file, read."""

    head: Head
    paths: Sequence[bytes]
    """Sorted by bytes; those above come first."""
    rows: Sequence[SharedRow]
    stamps: Sequence[Stamp]
    shared: bytes
    """The digest of paths and rows. Both sides' files of one run have the same."""


class EncodedAncestor(Record):
    """A file to be written."""

    parts: Sequence[bytes]
    """Its bytes. They are not joined, so that they are in memory once."""
    shared: bytes
    """The digest of paths and rows."""

    def joined(self) -> bytes:
        """Return the bytes as one."""
        return b"".join(self.parts)


class StoredAncestor:
    """One side's file, whose rows are read only where something changed.

    The bytes of the file are held until the rows are read.
    """

    def __init__(self, data: bytes) -> None:
        """Check the digest of the whole, and read what the file says of itself. Raises DamagedError."""
        if data[: len(MAGIC)] != MAGIC:
            raise DamagedError("an ancestor of this version of rdc")
        self._body = memoryview(data)[:-_CHECK_BYTES]
        if len(data) < len(MAGIC) + _CHECK_BYTES or blake3(self._body).digest() != data[-_CHECK_BYTES:]:
            raise DamagedError("the digest of its content at the end")
        self.head, self.count, self._shared = _read_head(_Sections(self._body).take(UNITE_HEAD_BYTES))
        self._table: Table | None = None
        self._listed: bytes | None = None
        self._states, self._sets = b"", b""
        self._ties: dict[bytes, int] | None = None

    @property
    def shared(self) -> bytes:
        """The digest of paths and rows. Raises DamagedError."""
        if not self._shared:
            sections = _Sections(self._body)
            sections.take(UNITE_HEAD_BYTES)
            most = self.count * (PATH_BYTES + 1) + 1
            columns = [sections.take(most) for _ in range(SHARED_COLUMNS)]
            self._shared = _shared_digest(columns)
        return self._shared

    @property
    def table(self) -> Table:
        """The rows as columns, read on first use. Raises DamagedError."""
        if self._table is None:
            _ = self.shared  # which older files do not name
            found = _read(self._body, self.count, self.head)
            self._table, self._listed, self._states, self._sets, self._ties = found
            self._body = memoryview(b"")
        return self._table

    @property
    def ties(self) -> Mapping[bytes, int]:
        """The number of the file of each name that shares it with another one. The rows are not kept. Raises
        DamagedError."""
        if self._ties is None:
            self._ties = _read_ties(self._body, self.count, self.head) if self.head.links else {}
        return self._ties

    def attributes(self, kinds: int) -> dict[bytes, bytes] | None:
        """Return the digests of AgreedAttributes; None if nothing of these kinds is agreed. Raises
        DamagedError."""
        if not kinds or self.head.attributes != kinds:
            return None
        paths, at = self.table.paths, 0
        found: dict[bytes, bytes] = {}
        for path, state in zip(paths, self._states, strict=True):
            if state == _HAS_SET:
                found[path] = self._sets[at : at + DIGEST_BYTES]
                at += DIGEST_BYTES
            elif state == _HAS_NONE:
                found[path] = b""
        return found

    def has_ties(self, ties: Mapping[bytes, int]) -> bool:
        """Return whether these are its ties. A damaged file has none."""
        try:
            return self.ties == ties
        except DamagedError:
            return False

    def listed(self) -> Iterator[tuple[bytes, bytes]] | None:
        """Return the digest of each directory, behind its path, as a walk lists it if nothing changes; None:
        the file lacks them. Raises DamagedError."""
        paths, digests = chain([b""], self.table.directories), self._listed
        if digests is None:
            return None
        return zip(paths, _digests(digests), strict=True)

    def read(self) -> OwnAncestor:
        """Read all of it as objects. Raises DamagedError."""
        rows = self.table.rows(range(self.count))
        return OwnAncestor(
            self.head,
            list(self.table.paths),
            [row for row, _ in rows],
            [stamp for _, stamp in rows],
            self.shared,
        )


def encode(head: Head, paths: Sequence[bytes], rows: Sequence[SharedRow], stamps: Sequence[Stamp]) -> bytes:
    """Return the bytes of the file. `paths` is sorted."""
    table = table_of(paths, rows, stamps)
    digests = b"".join(next_digests(table, digests_of(table), {}))
    return encode_table(head, Spliced([(table, 0, table.size)]), digests).joined()


def encode_table(
    head: Head,
    rows: Spliced,
    digests: bytes,
    attributes: AgreedAttributes | None = None,
    ties: Mapping[bytes, int] | None = None,
) -> EncodedAncestor:
    """Encode a file. `digests`: of the top and each directory in order of paths, back to back. `ties`:
    numbered in order of the first names, as rdc.uniting.ties.grouped does it."""
    shared = blake3()
    sections: list[bytes] = []
    more: list[bytes] = []
    for number, pieces in enumerate(rows.columns()):
        if number == 0:
            more = _attribute_columns(pieces, attributes.digests) if attributes is not None else []
            more += _tie_columns(pieces, ties) if ties else []
        if number < SHARED_COLUMNS:
            _add_shared(shared, pieces)
        sections += _section(pieces)
        del pieces  # before the next ones are made
    for column in more:
        _add_shared(shared, [column])
    said: dict[str, object] = {
        "rows": rows.size, "generation": head.generation.hex(), "own": head.own.hex(),
        "other": head.other.hex(), "inode": head.inode, "seconds": head.seconds, "place": head.place.hex(),
        "undo": head.undo, "listing": whole_digest(_digests(digests)).hex(), "shared": shared.digest().hex(),
        "location": head.location.hex(),
    }  # fmt: skip
    if attributes is not None:
        said["attributes"] = attributes.kinds
    if ties:
        said["links"] = len(ties)
    parts = [MAGIC, *_section([json.dumps(said).encode()]), *sections, *_section([digests])]
    for column in more:
        parts += _section([column])
    check = blake3()
    for part in parts:
        check.update(part)
    return EncodedAncestor([*parts, check.digest()], shared.digest())


_UNAGREED, _HAS_NONE, _HAS_SET = range(3)
"""The ancestor's record of the attributes of a row."""


def _names(paths: Pieces) -> Iterator[bytes]:
    """Yield the paths of a column, each of which is followed by NUL."""
    for piece in paths:
        names = bytes(piece).split(b"\0")
        names.pop()
        yield from names


def _attribute_columns(paths: Pieces, digests: Mapping[bytes, bytes]) -> list[bytes]:
    """Return what is agreed about each row, and the digests of the sets."""
    found = [digests.get(name) for name in _names(paths)]
    states = bytes([_UNAGREED if each is None else _HAS_SET if each else _HAS_NONE for each in found])
    return [states, b"".join([each for each in found if each])]


def _tie_columns(paths: Pieces, ties: Mapping[bytes, int]) -> list[bytes]:
    """Return the rows of names that share a file, and the numbers of these."""
    found = [(row, ties[name]) for row, name in enumerate(_names(paths)) if name in ties]
    return [little(array("I", [each[at] for each in found])) for at in (0, 1)]


def _section(pieces: Pieces) -> tuple[bytes, bytes]:
    """Return a section of the file: its length, and itself."""
    # Not by one call: the result of `compress` would keep the memory of the longest possible one, as much as
    # the column has, and all sections are held until the last one is made.
    packer = zstandard.ZstdCompressor(level=_LEVEL).compressobj(size=sum(map(len, pieces)))
    packed = b"".join([*[packer.compress(piece) for piece in pieces], packer.flush()])
    return len(packed).to_bytes(_SIZE_BYTES, "little"), packed


def _digests(packed: bytes) -> Iterator[bytes]:
    return (packed[at : at + DIGEST_BYTES] for at in range(0, len(packed), DIGEST_BYTES))


def whole_digest(digests: Iterable[bytes]) -> bytes:
    """Return the digest of a tree by those of its directories, in any order."""
    return blake3(b"".join(sorted(digests))).digest(DIGEST_BYTES)


def _shared_digest(columns: Iterable[bytes]) -> bytes:
    digest = blake3()
    for column in columns:
        _add_shared(digest, [column])
    return digest.digest()


def _add_shared(digest: blake3, pieces: Pieces) -> None:
    digest.update(sum(map(len, pieces)).to_bytes(_SIZE_BYTES, "little"))
    for piece in pieces:
        digest.update(piece)


def decode(data: bytes) -> OwnAncestor:
    """Read a file. Raises DamagedError."""
    return StoredAncestor(data).read()


def _read(
    body: memoryview, count: int, head: Head
) -> tuple[Table, bytes | None, bytes, bytes, dict[bytes, int]]:
    """Return the rows, the digests of directories, what is agreed about attributes, and the ties."""
    sections = _Sections(body)
    sections.take(UNITE_HEAD_BYTES)
    names = sections.take(count * (PATH_BYTES + 1))
    if names.count(b"\0") != count or names[-1:] not in (b"", b"\0"):
        raise DamagedError(f"{count} paths")
    paths = Paths(names, count)
    kinds = sections.take(count, exactly=True)
    known = sections.take(count, exactly=True)
    if known.strip(b"\0\1"):
        raise DamagedError("whether each content is known")
    digests = sections.take(known.count(1) * DIGEST_BYTES, exactly=True)
    links = sections.take(kinds.count(SYMLINK) * (PATH_BYTES + 1) + 1)
    targets = links.split(b"\0")
    if targets.pop() != b"" or len(targets) != kinds.count(SYMLINK):
        raise DamagedError(f"{kinds.count(SYMLINK)} link targets")
    modes, mtimes = sections.take(2 * count, exactly=True), sections.take(8 * count, exactly=True)
    own = [sections.take(count * array(code).itemsize, exactly=True) for code in STAMP_CODES]
    _check_paths(paths, kinds)
    _check_columns(kinds, known, modes, own[1])
    listed = None
    if sections.has_more:
        listed = sections.take((1 + kinds.count(DIRECTORY)) * DIGEST_BYTES, exactly=True)
    states = sets = b""
    if head.attributes:
        states = sections.take(count, exactly=True)
        if states.strip(bytes((_UNAGREED, _HAS_NONE, _HAS_SET))):
            raise DamagedError("what is agreed about attributes")
        sets = sections.take(states.count(_HAS_SET) * DIGEST_BYTES, exactly=True)
    ties: dict[bytes, int] = {}
    if head.links:
        ties = _ties_of(paths, kinds, *_tie_sections(sections, count, head.links))
    sections.end()
    return Table(paths, kinds, known, digests, targets, modes, mtimes, own), listed, states, sets, ties


def _read_ties(body: memoryview, count: int, head: Head) -> dict[bytes, int]:
    """Return the names that share a file, without any other column. Raises DamagedError."""
    sections = _Sections(body)
    sections.take(UNITE_HEAD_BYTES)
    names = sections.take(count * (PATH_BYTES + 1))
    if names.count(b"\0") != count or names[-1:] not in (b"", b"\0"):
        raise DamagedError(f"{count} paths")
    kinds = sections.take(count, exactly=True)
    for _ in range(SHARED_COLUMNS - 2 + len(STAMP_CODES) + 1 + (2 if head.attributes else 0)):
        sections.skip()
    return _ties_of(Paths(names, count), kinds, *_tie_sections(sections, count, head.links))


def _tie_sections(sections: _Sections, count: int, links: int) -> tuple[Sequence[int], Sequence[int]]:
    if links > count:
        raise DamagedError("no more names that share a file than rows")
    rows, numbers = (integers("I", sections.take(4 * links, exactly=True)) for _ in range(2))
    return rows, numbers


def _ties_of(paths: Paths, kinds: bytes, rows: Sequence[int], numbers: Sequence[int]) -> dict[bytes, int]:
    """Return the names that share a file. Raises DamagedError."""
    rising = all(one < other for one, other in pairwise(rows))
    if not rising or rows[-1] >= len(kinds) or any(kinds[row] != FILE for row in rows):
        raise DamagedError("rows of files that share their content")
    found = {paths[row]: number for row, number in zip(rows, numbers, strict=True)}
    if list(dict.fromkeys(numbers)) != list(range(len(set(numbers)))) or 1 in Counter(numbers).values():
        raise DamagedError("files with several names each, in order of their first names")
    return found


def _read_head(data: bytes) -> tuple[Head, int, bytes]:
    """Return what a file says of itself: with the number of its rows, and their digest if it has that."""
    try:
        said = json.loads(data)
        numbers = [said[name] for name in ("rows", "inode", "seconds", "undo")]
        head = Head(
            bytes.fromhex(said["generation"]), bytes.fromhex(said["own"]), bytes.fromhex(said["other"]),
            numbers[1], numbers[2], bytes.fromhex(said["place"]), numbers[3],
            bytes.fromhex(said.get("listing", "")), said.get("attributes", 0), said.get("links", 0),
            bytes.fromhex(said.get("location", "")),
        )  # fmt: skip
        shared = bytes.fromhex(said.get("shared", ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedError("what the file says of itself") from error
    numbers += [head.attributes, head.links]
    if not all(type(number) is int and 0 <= number < 1 << 64 for number in numbers):
        raise DamagedError("numbers of 64 bits")
    if [len(head.generation), len(head.own), len(head.other)] != [8, 16, 16] or numbers[0] > UNITE_ROWS:
        raise DamagedError("ids of 16 bytes, and not too many rows")
    return head, numbers[0], shared


_EMPTY_NAMES = (b"//", b"/\0", b"\0/", b"\0\0")
_DOT_NAME = rb"\.(?:\.?|" + RESERVED_PATTERN.removeprefix(rb"\.") + rb")[\0/]"
_DOT_NAMES = (rb"\A" + _DOT_NAME, rb"/" + _DOT_NAME, rb"\0" + _DOT_NAME)


def _has_wrong_name(text: bytes) -> bool:
    """Return whether a name is empty, "." or "..", or reserved. `text`: of Paths."""
    import re

    # One expression for all of this would take as long as all else about reading: these begin with a text
    # that is searched for.
    if text.startswith((b"/", b"\0")) or any(each in text for each in _EMPTY_NAMES):
        return True
    return any(re.search(each, text) is not None for each in _DOT_NAMES)


def _check_paths(paths: Paths, kinds: bytes) -> None:
    """Raise DamagedError unless the paths are sorted, can be in a tree, and follow their directories."""
    if kinds.strip(bytes([FILE, DIRECTORY, SYMLINK])):
        raise DamagedError("files, directories and links alone")
    if _has_wrong_name(paths.text):
        raise DamagedError("names that a tree can have")
    directories = {b""}
    above: set[bytes] = set()
    rising, longest, longest_name, before, at = True, 0, 0, b"", 0
    for chunk in paths.chunks():
        rising = rising and before < chunk[0] and all(map(lt, chunk, islice(chunk, 1, None)))
        above.update([path.rpartition(b"/")[0] for path in chunk])
        directories.update(compress(chunk, kinds[at : at + len(chunk)].translate(_IS_DIRECTORY)))
        most = max(map(len, chunk))
        if most > NAME_BYTES:
            longest_name = max(longest_name, *(len(name) for path in chunk for name in path.split(b"/")))
        longest, before, at = max(longest, most), chunk[-1], at + len(chunk)
    if not rising or not above <= directories or longest > PATH_BYTES:
        raise DamagedError("sorted paths, each after the directory it is in")
    if longest_name > NAME_BYTES:
        raise DamagedError(f"names of at most {NAME_BYTES} bytes")


_IS_DIRECTORY = bytes(kind == DIRECTORY for kind in range(256))
_IS_NO_FILE = bytes(kind != FILE for kind in range(256))


def _check_columns(kinds: bytes, known: bytes, modes: bytes, own_modes: bytes) -> None:
    """Raise DamagedError unless contents are those of files, and modes are some that an entry can have."""
    if int.from_bytes(known, "little") & int.from_bytes(kinds.translate(_IS_NO_FILE), "little"):
        raise DamagedError("known contents of files alone")
    for column, most in ((modes, MODE_BITS), (own_modes, _ALL_MODE_BITS)):
        if column[1::2].strip(bytes(range((most >> 8) + 1))):
            raise DamagedError(f"modes of at most {most:o}")


class _Sections:
    """The sections of a file, in order."""

    def __init__(self, body: memoryview) -> None:
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

    def skip(self) -> None:
        """Pass over the next section."""
        start = self._at + _SIZE_BYTES
        self._at = start + int.from_bytes(self._body[self._at : start], "little")

    @property
    def has_more(self) -> bool:
        """Return whether another section follows."""
        return self._at < len(self._body)

    def end(self) -> None:
        """Check that nothing is left. Raises DamagedError otherwise."""
        if self._at != len(self._body):
            raise DamagedError("the end of the file")
