"""A directory's listing on the wire: one packed column per field, checked by whole columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise

from rdc.limits.paths import NAME_BYTES, PATH_BYTES
from rdc.limits.wire import FRAME_BYTES, SIZE_LIMIT
from rdc.model.entries import Kind, Listing, check_sizes
from rdc.protocol.wire.columns import decode_fixed, encode_fixed, increasing
from rdc.protocol.wire.fields import of_items
from rdc.protocol.wire.time_fields import column_with_times, column_without_times

__all__ = ["ListingColumns", "join_listing", "slice_listing"]

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
