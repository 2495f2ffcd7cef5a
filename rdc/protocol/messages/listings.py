"""Entries on the wire: one packed column per field, checked by whole columns.

A listing has the entries of one directory with all their columns. Rows are entries of a manifest, in the
groups of columns that were requested.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from rdc.lean.records import dataclass
from rdc.limits.paths import NAME_BYTES, PATH_BYTES
from rdc.limits.wire import FRAME_BYTES, ROWS_PER_PART, SIZE_LIMIT
from rdc.model.entries import Kind, Listing, PackedListing, check_sizes
from rdc.protocol.wire.fields import check_inner, column_with_times, column_without_times, of_items
from rdc.protocol.wire.integers import decode_fixed, encode_fixed, increasing

KINDS = bytes(sorted(Kind))
MODE_LIMIT = 0o7777
ROW_BYTES = 1 + 2 + 8 + 8 + 4 + 4
# The columns of a part fill half a frame, so the directory's path and one more link target (16 KiB each) fit.
PART_BYTES = FRAME_BYTES // 2


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
        names = _split("names", columns[0], NAME_BYTES)
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
        targets = _split("targets", columns[7], PATH_BYTES)
        lengths = {len(column) for column in (names, kinds, modes, sizes, mtimes, uids, gids)}
        if len(lengths) != 1:
            raise ValueError("columns differ in length")
        column_without_times(columns[4], len(names))
        if names:
            if max(modes) > MODE_LIMIT:
                raise ValueError(f"mode {max(modes):#o} has more than permission bits")
            if max(sizes) > SIZE_LIMIT:
                raise ValueError(f"size {max(sizes)} past {SIZE_LIMIT}")
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
    """`listing` in consecutive parts that each fit one frame; at least one, which is `listing` itself if it
    fits."""
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
        yield Listing(
            listing.names[start:row],
            listing.kinds[start:row],
            listing.modes[start:row],
            listing.sizes[start:row],
            listing.mtimes[start:row],
            listing.uids[start:row],
            listing.gids[start:row],
            listing.targets[first_link:target],
        )


def join_listing(parts: list[Listing]) -> Listing:
    """One directory's parts as one listing. ValueError unless the names increase across parts."""
    # long because it checks each column against the others before it makes anything
    if len(parts) == 1:
        return parts[0]
    for before, after in pairwise(parts):
        if before.names and after.names and before.names[-1] >= after.names[0]:
            raise ValueError("a directory's names do not increase from part to part")
    # One comprehension a column: many branches to a counter, none to a reader.
    return Listing(
        tuple(name for part in parts for name in part.names),
        b"".join(part.kinds for part in parts),
        _concatenated("H", [part.modes for part in parts]),
        _concatenated("Q", [part.sizes for part in parts]),
        _concatenated("q", [part.mtimes for part in parts]),
        _concatenated("I", [part.uids for part in parts]),
        _concatenated("I", [part.gids for part in parts]),
        tuple(target for part in parts for target in part.targets),
    )


def _concatenated(typecode: str, columns: list[array[int]]) -> array[int]:
    joined: array[int] = array(typecode)
    for column in columns:
        joined.extend(column)
    return joined


# Rows

NAMES = 1
ATTRIBUTES = 2
MTIMES = 4
ALL_GROUPS = NAMES | ATTRIBUTES | MTIMES


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive entries of one directory. Each name and link target ends in NUL; names increase."""

    path: bytes
    count: int
    names: bytes
    targets: bytes


@dataclass(frozen=True, slots=True)
class Rows:
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
        """Whether `split` can split by these counts: they add up, and no directory's names cross a
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
                count,
                self.segments[first:segment],
                self.kinds[at:to],
                self.modes[2 * at : 2 * to],
                self.sizes[8 * at : 8 * to],
                self.uids[4 * at : 4 * to],
                self.gids[4 * at : 4 * to],
                self.mtimes[8 * at : 8 * to],
            )
            at = to

    def listings(self) -> tuple[PackedListing, ...]:
        """The segments as listings, if all groups are present. Without owners, uids and gids are zero."""
        out = []
        at = 0
        uids, gids = self.uids or bytes(4 * self.count), self.gids or bytes(4 * self.count)
        for segment in self.segments:
            to = at + segment.count
            out.append(
                PackedListing(
                    segment.count,
                    segment.names,
                    self.kinds[at:to],
                    self.modes[2 * at : 2 * to],
                    self.sizes[8 * at : 8 * to],
                    self.mtimes[8 * at : 8 * to],
                    uids[4 * at : 4 * to],
                    gids[4 * at : 4 * to],
                    segment.targets,
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
        if not 0 < count <= ROWS_PER_PART:
            raise ValueError(f"{count} rows, the limit is {ROWS_PER_PART}")
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
    if sizes and max(decode_fixed("Q", sizes)) > SIZE_LIMIT:
        raise ValueError(f"a size past {SIZE_LIMIT}")
    if sizes and kinds:
        check_sizes(kinds, decode_fixed("Q", sizes))


def _segments(text: bytes, kinds: bytes, targets: bytes) -> tuple[Segment, ...]:
    words = text.split(b"\0")
    if words[0] or words[-1] or len(words) < 4:
        raise ValueError("names do not begin with a path and end in NUL")
    links = targets.split(b"\0")
    if links.pop() or not all(links) or len(links) != kinds.count(Kind.SYMLINK):
        raise ValueError("link targets do not match the symlinks")
    if links and max(map(len, links)) > PATH_BYTES:
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
    if len(path) > PATH_BYTES:
        raise ValueError(f"a directory's path has {len(path)} bytes, the limit is {PATH_BYTES}")
    check_inner(path)
    if max(map(len, names)) > NAME_BYTES or not increasing(names):
        raise ValueError("names are too long or not strictly increasing")
    if not {b".", b".."}.isdisjoint(names) or any(b"/" in name for name in names):
        raise ValueError("a name is '.', '..' or holds a '/'")
