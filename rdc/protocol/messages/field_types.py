"""Types of fields that several messages share, each with its codec: entries, ranges, claims about them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise
from operator import add, sub

from rdc import limits
from rdc.errors import ExitCode
from rdc.lean.records import Record, replace
from rdc.lean.typed import Annotated
from rdc.model.entries import NUMBERS, Kind, Listing, PackedListing, check_sizes, sliced
from rdc.protocol.wire.fields import (
    Blob,
    Gaps,
    Integer,
    Member,
    Text,
    Time,
    Total,
    check_inner,
    column_with_times,
    column_without_times,
    decode_fixed,
    encode_fixed,
    increasing,
    of_items,
    pack_gaps,
    unpack_gaps,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias


# Entries on the wire: one packed column per field, checked by whole columns.
#
# A listing has the entries of one directory with all their columns. Rows are entries of a manifest, in the
# groups of columns that were requested.

KINDS = bytes(sorted(Kind))
MODE_LIMIT = 0o7777
ROW_BYTES = 1 + 2 + 8 + 8 + 4 + 4
# The columns of a part fill half a frame, so the directory's path and one more link target (16 KiB each) fit.
PART_BYTES = limits.FRAME_BYTES // 2


class ListingColumns:
    """Columns of a listing: names and targets end in NUL each; kinds u8, modes u16, sizes u64, mtimes i64,
    uids and gids u32."""

    def pack(self, value: Listing) -> object:
        return [
            _join(value.names),
            value.kinds,
            encode_fixed(value.modes),
            encode_fixed(value.sizes),
            column_with_times(encode_fixed(value.mtimes)),
            encode_fixed(value.uids),
            encode_fixed(value.gids),
            _join(value.targets),
        ]

    def unpack(self, raw: object) -> Listing:
        columns = of_items(raw, *[bytes] * 8)
        names = _split("names", columns[0], limits.NAME_BYTES)
        if not increasing(names):
            raise ValueError("names are not strictly increasing")
        if b"/" in columns[0] or not {b".", b".."}.isdisjoint(names):
            raise ValueError("a name is '.', '..' or holds a '/'")
        kinds: bytes = columns[1]
        if kinds.translate(None, KINDS):
            raise ValueError("unknown kind of entry")
        modes = decode_fixed("H", columns[2])
        sizes = decode_fixed("Q", columns[3])
        mtimes = decode_fixed("q", columns[4][: 8 * len(kinds)])
        uids = decode_fixed("I", columns[5])
        gids = decode_fixed("I", columns[6])
        targets = _split("targets", columns[7], limits.PATH_BYTES)
        lengths = {len(column) for column in (names, kinds, modes, sizes, mtimes, uids, gids)}
        if len(lengths) != 1:
            raise ValueError("columns differ in length")
        column_without_times(columns[4], len(names))
        if names:
            if max(modes) > MODE_LIMIT:
                raise ValueError(f"mode {max(modes):#o} has more than permission bits")
            if max(sizes) > limits.SIZE_LIMIT:
                raise ValueError(f"size {max(sizes)} past {limits.SIZE_LIMIT}")
        check_sizes(kinds, sizes)
        if len(targets) != kinds.count(Kind.SYMLINK):
            raise ValueError(f"{len(targets)} targets for {kinds.count(Kind.SYMLINK)} symlinks")
        return Listing(names, kinds, modes, sizes, mtimes, uids, gids, targets)


def _join(items: tuple[bytes, ...]) -> bytes:
    return b"\0".join(items) + b"\0" if items else b""


def _split(what: str, blob: bytes, longest: int) -> tuple[bytes, ...]:
    if not blob:
        return ()
    if blob[-1]:
        raise ValueError(f"{what} do not end in NUL")
    items = tuple(blob[:-1].split(b"\0"))
    lengths = list(map(len, items))
    if not min(lengths):
        raise ValueError(f"one of {what} is empty")
    if max(lengths) > longest:
        raise ValueError(f"one of {what} has {max(lengths)} bytes, the limit is {longest}")
    return items


def slice_listing(listing: Listing) -> Iterator[Listing]:
    """Yield `listing` in consecutive parts that each fit one frame. If all of it fits, yield it itself."""
    if sum(map(len, listing.names + listing.targets)) + len(listing) * (ROW_BYTES + 2) <= PART_BYTES:
        yield listing
        return
    row = target = 0
    while row < len(listing):
        start, first_link, size = row, target, 0
        while row < len(listing):
            size += len(listing.names[row]) + 1 + ROW_BYTES
            if listing.kinds[row] == Kind.SYMLINK:
                size += len(listing.targets[target]) + 1
            if size > PART_BYTES and row > start:
                break
            target += listing.kinds[row] == Kind.SYMLINK
            row += 1
        yield listing.part(start, row, slice(first_link, target))


def join_listing(parts: list[Listing]) -> Listing:
    """One directory's parts as one listing. Raises ValueError unless the names increase across parts."""
    if len(parts) == 1:
        return parts[0]
    for before, after in pairwise(parts):
        if before.names and after.names and before.names[-1] >= after.names[0]:
            raise ValueError("a directory's names do not increase from part to part")
    columns: dict[str, Any] = {name: array(typecode) for name, typecode in NUMBERS.items()}
    for part in parts:
        for name, column in columns.items():
            column.extend(getattr(part, name))
    return Listing(
        tuple(name for part in parts for name in part.names),
        b"".join(part.kinds for part in parts),
        targets=tuple(target for part in parts for target in part.targets),
        **columns,
    )


# Rows

NAMES = 1
ATTRIBUTES = 2
MTIMES = 4
ALL_GROUPS = NAMES | ATTRIBUTES | MTIMES


class Segment(Record):
    """Consecutive entries of one directory. Each name and link target ends in NUL; names increase."""

    path: bytes
    count: int
    names: bytes
    targets: bytes


class Rows(Record):
    """Consecutive entries. The columns of groups that were not requested are empty."""

    count: int
    segments: tuple[Segment, ...]
    """Group NAMES: the directories of the entries, with the names."""
    kinds: bytes
    modes: bytes
    """Group ATTRIBUTES, u16 each."""
    sizes: bytes
    """Group ATTRIBUTES, u64 each."""
    uids: bytes
    """Group ATTRIBUTES if owners are preserved, u32 each."""
    gids: bytes
    mtimes: bytes
    """Group MTIMES, i64 each."""

    def splits(self, counts: Sequence[int]) -> bool:
        """Return whether `split` can split by these counts: they add up, and no directory's names cross a
        boundary."""
        ends = set(accumulate(counts))
        return sum(counts) == self.count and (
            not self.segments or ends <= set(accumulate(segment.count for segment in self.segments))
        )

    def split(self, counts: Sequence[int]) -> Iterator[Rows]:
        """Consecutive Rows with `counts` entries each."""
        at = segment = 0
        for count in counts:
            to, first, named = at + count, segment, 0
            while self.segments and named < count:
                named += self.segments[segment].count
                segment += 1
            yield Rows(
                count, self.segments[first:segment], self.kinds[at:to], **sliced(self, NUMBERS, at, to)
            )
            at = to

    def listings(self) -> tuple[PackedListing, ...]:
        """Return the segments as listings, if all groups are present. Without owners, uids and gids are
        zero."""
        out = []
        at = 0
        whole = self if self.uids else replace(self, uids=bytes(4 * self.count), gids=bytes(4 * self.count))
        for segment in self.segments:
            to = at + segment.count
            columns = sliced(whole, NUMBERS, at, to)
            out.append(
                PackedListing(
                    segment.count, segment.names, self.kinds[at:to], targets=segment.targets, **columns
                )
            )
            at = to
        return tuple(out)


class RowColumns:
    """Rows as [count, text, kinds, targets, modes, sizes, uids, gids, mtimes].

    `text` holds all paths and names as NUL-terminated strings: an empty string announces a path, and names
    of that directory follow it. `targets` holds all link targets, NUL-terminated.
    """

    def pack(self, value: Rows) -> object:
        text = b"".join(b"\0" + segment.path + b"\0" + segment.names for segment in value.segments)
        targets = b"".join(segment.targets for segment in value.segments)
        return [
            value.count, text, value.kinds, targets,
            value.modes, value.sizes, value.uids, value.gids, column_with_times(value.mtimes),
        ]  # fmt: skip

    def unpack(self, raw: object) -> Rows:
        count, text, kinds, targets, modes, sizes, uids, gids, mtimes = of_items(raw, int, *[bytes] * 8)
        if not 0 < count <= limits.ROWS_PER_PART:
            raise ValueError(f"{count} rows, the limit is {limits.ROWS_PER_PART}")
        _check_columns(count, kinds, modes, sizes, uids, gids, mtimes[: 8 * count])
        mtimes = column_without_times(mtimes, count)
        if not kinds and (text or targets):
            raise ValueError("names without kinds")
        # Checked before any string is made. Each entry has a name, and at worst an empty string and a path
        # before it.
        if text.count(0) > 3 * count or targets.count(0) > count:
            raise ValueError(f"more names or targets than {count} rows have")
        segments = _segments(text, kinds, targets) if kinds else ()
        if kinds and sum(segment.count for segment in segments) != count:
            raise ValueError(f"names do not make {count} rows")
        return Rows(count, segments, kinds, modes, sizes, uids, gids, mtimes)


def _check_columns(
    count: int, kinds: bytes, modes: bytes, sizes: bytes, uids: bytes, gids: bytes, mtimes: bytes
) -> None:
    """ValueError unless the columns of fixed width have `count` valid items each, or none."""
    for name, column, width in (
        ("kinds", kinds, 1), ("modes", modes, 2), ("sizes", sizes, 8),
        ("uids", uids, 4), ("gids", gids, 4), ("mtimes", mtimes, 8),
    ):  # fmt: skip
        if column and len(column) != count * width:
            raise ValueError(f"{name} of {len(column)} bytes for {count} rows")
    # A group is complete or absent. Owners are a part of their group that both sides must preserve.
    if bool(modes) != bool(sizes) or bool(uids) != bool(gids) or (uids and not modes):
        raise ValueError("one column of a group without the others")
    if kinds.translate(None, KINDS):
        raise ValueError("unknown kind of entry")
    if modes and max(decode_fixed("H", modes)) > MODE_LIMIT:
        raise ValueError("a mode has more than permission bits")
    if sizes and max(decode_fixed("Q", sizes)) > limits.SIZE_LIMIT:
        raise ValueError(f"a size past {limits.SIZE_LIMIT}")
    if sizes and kinds:
        check_sizes(kinds, decode_fixed("Q", sizes))


def _segments(text: bytes, kinds: bytes, targets: bytes) -> tuple[Segment, ...]:
    words = text.split(b"\0")
    if words[0] or words[-1] or len(words) < 4:
        raise ValueError("names do not begin with a path and end in NUL")
    links = targets.split(b"\0")
    if links.pop() or not all(links) or len(links) != kinds.count(Kind.SYMLINK):
        raise ValueError("link targets do not match the symlinks")
    if links and max(map(len, links)) > limits.PATH_BYTES:
        raise ValueError("a link target is too long")
    segments = []
    at = row = link = 0
    while at < len(words) - 1:
        # words[at] is empty and announces the path words[at + 1]. Names follow up to the next empty word.
        path = words[at + 1]
        end = words.index(b"", at + 2)
        names = words[at + 2 : end]
        _check(path, names)
        symlinks = kinds.count(Kind.SYMLINK, row, row + len(names))
        own = links[link : link + symlinks]
        segments.append(
            Segment(path, len(names), b"\0".join(names) + b"\0", b"".join(t + b"\0" for t in own))
        )
        row, link, at = row + len(names), link + symlinks, end
    return tuple(segments)


def _check(path: bytes, names: list[bytes]) -> None:
    if not names:
        raise ValueError("a directory without names")
    if len(path) > limits.PATH_BYTES:
        raise ValueError(f"a directory's path has {len(path)} bytes, the limit is {limits.PATH_BYTES}")
    check_inner(path)
    if max(map(len, names)) > limits.NAME_BYTES or not increasing(names):
        raise ValueError("names are too long or not strictly increasing")
    if not {b".", b".."}.isdisjoint(names) or any(b"/" in name for name in names):
        raise ValueError("a name is '.', '..' or holds a '/'")


# Types of fields that several messages share, each with its codec; ranges of files, and claims about them.
#
# Claims are digests of the content that a destination has around the ranges it asks for, per check block.
# Check block n of a file is its bytes [n * CHECK_BLOCK_BYTES, (n + 1) * CHECK_BLOCK_BYTES); the last one may
# be shorter. Its digest covers all of it, with zeros in place of the ranges of the same request.

ROOT_BYTES = 32
DIGEST_BYTES = 32
REFERENCE_WIDTHS = (4, 32)

Ordinal: TypeAlias = Annotated[int, Integer(highest=limits.ORDINAL_LIMIT)]
Size: TypeAlias = Annotated[int, Integer()]
TotalSize: TypeAlias = Annotated[int, Total()]
"""Bytes of several files together."""
Count: TypeAlias = Annotated[int, Integer()]
Root: TypeAlias = Annotated[bytes, Blob(ROOT_BYTES, ROOT_BYTES)]
Digest: TypeAlias = Annotated[bytes, Blob(DIGEST_BYTES, DIGEST_BYTES)]
Further: TypeAlias = Annotated[bytes, Blob(0, limits.FURTHER_BYTES)]
"""The first bytes of a digest, or b"" for none."""
Files: TypeAlias = Annotated[tuple[int, ...], Gaps(limits.FILES_PER_MESSAGE, limits.ORDINAL_LIMIT)]
Nodes: TypeAlias = Annotated[tuple[int, ...], Gaps(limits.NODES_PER_MESSAGE, limits.ORDINAL_LIMIT)]
Line: TypeAlias = Annotated[str, Text(limits.MESSAGE_BYTES)]
Code: TypeAlias = Annotated[ExitCode, Member(ExitCode)]
Failure: TypeAlias = Annotated[ExitCode, Member(ExitCode, without=(ExitCode.OK,))]
TierNodes: TypeAlias = Annotated[tuple[int, ...], Gaps(limits.TIER_NODES, limits.ORDINAL_LIMIT)]
GroupSet: TypeAlias = Annotated[int, Integer(1, ALL_GROUPS)]
Width: TypeAlias = Annotated[int, Integer(*REFERENCE_WIDTHS)]
Mtime: TypeAlias = Annotated[int | None, Time(optional=True)]
"""Nanoseconds; None for the listed mtime. A file that changed after its listing is sent with its new
mtime."""
Level: TypeAlias = Annotated[int, Integer(0, limits.TREE_HEIGHT)]


class AboutFile:
    """A request about one file or bundle, which may turn out to be unreadable."""

    __slots__ = ()

    file: int


class AboutFiles:
    """A request about several files, each of which may turn out to be unreadable."""

    __slots__ = ()

    files: tuple[int, ...]


class Ranged(AboutFile):
    """Increasing, disjoint byte ranges of a file, as the gaps before them and their lengths."""

    __slots__ = ()

    gaps: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def end(self) -> int:
        """Offset after the last range, in bytes."""
        return sum(self.gaps) + sum(self.lengths)

    @property
    def rows(self) -> array[int]:
        """Two numbers per range: offset and length."""
        found = array("Q", bytes(16 * len(self.lengths)))
        found[1::2] = lengths = array("Q", self.lengths)
        found[0::2] = array("Q", map(sub, accumulate(map(add, self.gaps, self.lengths)), lengths))
        return found

    def check_ranges(self) -> str | None:
        if len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} offsets"
        if sum(self.gaps) + sum(self.lengths) > limits.SIZE_LIMIT:
            return f"lengths: the last range ends past {limits.SIZE_LIMIT}"
        return None


def columns_of(rows: array[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the gaps and lengths of `rows`. A rebuilt library has tens of thousands of ranges, so this
    avoids a loop."""
    offsets, lengths = rows[0::2], rows[1::2]
    return tuple(map(sub, offsets, chain((0,), map(add, offsets, lengths)))), tuple(lengths)


CHECK_BLOCK_BYTES = 8 << 10
"""Bytes of a check block. After a false block match the whole check block is sent again, some 3 KB after
compression. Smaller ones cost more in digests than they save; 4 and 16 KiB were tried."""

CHECK_BLOCK_DIGEST_BYTES = 2
"""Bytes of a claim's digest. One wrong check block in 65,536 passes unnoticed and then costs another round
trip."""


class Claims(Record):
    """Check blocks with their `digests`, CHECK_BLOCK_DIGEST_BYTES each."""

    cells: tuple[int, ...]
    """Numbers of the check blocks, strictly increasing."""
    digests: bytes

    def part(self, rows: slice) -> Claims:
        """Return the claims about the check blocks in `rows`."""
        return Claims(
            self.cells[rows],
            self.digests[rows.start * CHECK_BLOCK_DIGEST_BYTES : rows.stop * CHECK_BLOCK_DIGEST_BYTES],
        )


NO_CLAIMS = Claims((), b"")


class Claimed:
    """The gaps between check blocks as a column, followed by their digests; empty bytes without claims."""

    def pack(self, value: Claims) -> object:
        if len(value.digests) != CHECK_BLOCK_DIGEST_BYTES * len(value.cells):
            raise ValueError(f"{len(value.digests)} bytes of digests for {len(value.cells)} cells")
        return pack_gaps(value.cells, limits.CHECK_BLOCKS_PER_MESSAGE) + value.digests

    def unpack(self, raw: object) -> Claims:
        if type(raw) is not bytes:
            raise ValueError(f"expected bytes, found {type(raw).__name__}")
        if not raw:
            return NO_CLAIMS
        count, rest = divmod(len(raw) - 1, raw[0] + CHECK_BLOCK_DIGEST_BYTES)
        if rest or count > limits.CHECK_BLOCKS_PER_MESSAGE:
            raise ValueError(
                f"{len(raw)} bytes are not at most {limits.CHECK_BLOCKS_PER_MESSAGE} cells with digests"
            )
        column = len(raw) - count * CHECK_BLOCK_DIGEST_BYTES
        cells = unpack_gaps(raw[:column], count, limits.SIZE_LIMIT // CHECK_BLOCK_BYTES)
        return Claims(cells, raw[column:])


def rests(ranges: array[int], cells: Sequence[int], size: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of these check blocks outside of `ranges`, as (check block, offset in the file,
    length).

    ranges: offset and length by turns, in order. cells: numbers in order. size: bytes of the file.
    """
    offsets, lengths = ranges[0::2], ranges[1::2]
    for check_block in cells:
        at, end = check_block * CHECK_BLOCK_BYTES, min((check_block + 1) * CHECK_BLOCK_BYTES, size)
        # The preceding range may reach into the check block.
        row = max(0, bisect_right(offsets, at) - 1)
        while at < end:
            offset, length = (offsets[row], lengths[row]) if row < len(offsets) else (end, 0)
            if offset > at:
                yield check_block, at, min(offset, end) - at
            at = max(at, offset + length)
            row += 1
