"""Snapshots: the record of one put to bytes and back, and which one of a store a name means."""

from __future__ import annotations

import re
import struct
import time

from blake3 import blake3

from rdc.errors import UsageError, printable
from rdc.lean.records import Record, replace
from rdc.lean.typed import Protocol
from rdc.model.entries import Metadata
from rdc.model.preserved import unpack_attributes
from rdc.store.records import shown_series
from rdc.store.tree_rows import LENGTH, Parts, StreamRef, check_ref, distant_times, with_known_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"RDCSNAP1"
MAGIC_WITH_PROBLEMS = b"RDCSNAP2"
"""The mark of a snapshot that lacks entries of its directory: the number of problems follows the numbers."""

SNAPSHOT_BYTES = 1 << 20
"""Most bytes of a snapshot's file: two paths, a set of attributes and the keys of a short list."""

_FIXED = struct.Struct("<QqQQQQHqIIQB")
"""Number, time, entries, files, bytes, stored bytes, mode, mtime, uid, gid, bytes and level of the tree."""

_PROBLEMS = struct.Struct("<Q")


class ListedSnapshot(Protocol):
    """The names of a snapshot."""

    @property
    def number(self) -> int: ...
    @property
    def seconds(self) -> int: ...
    @property
    def series(self) -> bytes: ...


class Snapshot(Record):
    """One state of a directory."""

    number: int
    """Later puts have higher numbers, whatever the clock says."""
    seconds: int
    """The start of the put, by the store's clock: seconds since 1970."""
    series: bytes
    """The name under which states of one directory are kept."""
    host: bytes
    path: bytes
    """The directory, absolute."""
    entries: int
    files: int
    size: int
    """Bytes of all files."""
    stored: int
    """Bytes that the put added to the packs."""
    top: Metadata
    """The metadata of the directory itself."""
    attributes: bytes
    """The packed extended attributes of the directory itself."""
    tree: StreamRef
    problems: int = 0
    """Entries that the put could not read, or that changed while it read them."""

    def numbered(self, number: int) -> Snapshot:
        """Return the snapshot with another number."""
        return replace(self, number=number)


def encode_snapshot(snapshot: Snapshot, key: bytes) -> bytes:
    """Return the file of a snapshot. `key`: of the store."""
    top, tree = snapshot.top, snapshot.tree
    fixed = _FIXED.pack(
        snapshot.number,
        snapshot.seconds,
        snapshot.entries,
        snapshot.files,
        snapshot.size,
        snapshot.stored,
        top.mode,
        top.mtime_ns,
        top.uid,
        top.gid,
        tree.size,
        tree.level,
    )
    parts = (snapshot.series, snapshot.host, snapshot.path, snapshot.attributes, tree.keys)
    head = MAGIC + fixed
    if snapshot.problems:
        head = MAGIC_WITH_PROBLEMS + fixed + _PROBLEMS.pack(snapshot.problems)
    data = head + b"".join([LENGTH.pack(len(part)) + part for part in parts])
    data += distant_times(top.mtime_ns.to_bytes(8, "little", signed=True))
    return data + blake3(data, key=key).digest()


def decode_snapshot(data: bytes, key: bytes) -> Snapshot:
    """Return the snapshot in `data`. Raises ValueError for anything that encode_snapshot does not write."""
    if not data.startswith((MAGIC, MAGIC_WITH_PROBLEMS)) or len(data) > SNAPSHOT_BYTES:
        raise ValueError(f"{len(data)} bytes that begin with {data[:8]!r}")
    if blake3(data[:-32], key=key).digest() != data[-32:]:
        raise ValueError("bytes with another digest, or of another store")
    parts = Parts(data[len(MAGIC) : -32])
    number, seconds, entries, files, size, stored, mode, mtime, uid, gid, tree, level = _FIXED.unpack(
        parts.take(_FIXED.size)
    )
    problems = 0
    if data.startswith(MAGIC_WITH_PROBLEMS):
        (problems,) = _PROBLEMS.unpack(parts.take(_PROBLEMS.size))
        if not problems:
            raise ValueError("no problems, where there must be some")
    texts = [parts.take(*LENGTH.unpack(parts.take(LENGTH.size))) for _ in range(5)]
    packed = with_known_times(mtime.to_bytes(8, "little", signed=True), parts.take(parts.left))
    if not number or mode > 0o7777:
        raise ValueError("lengths or numbers that no snapshot has")
    series, host, path, attributes, keys = texts
    unpack_attributes(attributes)
    ref = StreamRef(tree, level, keys)
    check_ref(ref)
    top = Metadata(mode, int.from_bytes(packed, "little", signed=True), uid, gid)
    return Snapshot(
        number, seconds, series, host, path, entries, files, size, stored, top, attributes, ref, problems
    )


# Names of snapshots: @17, @latest, @2026-11-28, and the last two of one series, @data/latest.

_DATE = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})")
LATEST = b"latest"

SHOWN = 8
"""Most snapshots, or series, that a message names."""


def check_series(name: bytes) -> None:
    """Raise UsageError if no series can have this name, because a path could not name it."""
    if not name or b"/" in name or b"\0" in name or name in (b".", b"..") or len(name) > 255:
        raise UsageError(
            f"'{printable(name)}': expected the name of a series, without slashes; use --name=NAME"
        )
    if name.isdigit() or name == LATEST or _DATE.fullmatch(name):
        raise UsageError(
            f"'{printable(name)}': a series cannot have the name of a number, of a date or 'latest', which"
            " stand for snapshots; use --name=NAME"
        )


def chosen(snapshots: Sequence[ListedSnapshot], name: bytes, series: bytes | None) -> int:
    """Return the number of the snapshot that `name` means: a number, b"latest", or a date for the last one by
    its end.

    `series`: of this series alone; None: of all. `snapshots`: all, in order of their numbers. Raises
    UsageError if there is none, or if snapshots of several series are meant.
    """
    own = [one for one in snapshots if series in (None, one.series)]
    text = printable(name) if series is None else f"{shown_series(series)}/{printable(name)}"
    if name.isdigit():
        found = [one for one in own if one.number == int(name)]
    else:
        known = sorted({one.series for one in own})
        try:
            end = None if name == LATEST else _end_of_day(name)
        except (ValueError, OverflowError) as error:
            expected = "expected a number, 'latest', or a date such as 2026-11-28"
            if series is None:
                shown = ", ".join(f"@{shown_series(one)}/latest" for one in known[:SHOWN]) or "@data/latest"
                expected += f", or one of these after a series of the store, such as {shown}"
            raise UsageError(f"@{text}: {expected}") from error
        if len(known) > 1:
            shown = ", ".join(f"@{shown_series(one)}/{printable(name)}" for one in known[:SHOWN])
            raise UsageError(f"@{text}: the store has several series; name one of {shown}")
        found = [one for one in own if end is None or one.seconds < end]
    if not found:
        # No command lists the snapshots of a store on the web.
        last = ", ".join([f"@{one.number}" for one in own[-SHOWN:]])
        there = f"the last ones are {last}" if last else "nor any other one"
        raise UsageError(f"@{text}: the store has no such snapshot, {there}")
    return found[-1].number


def _end_of_day(name: bytes) -> float:
    """Return when a day ends by local time, in seconds since 1970. Raises ValueError or OverflowError."""
    date = _DATE.fullmatch(name)
    if date is None:
        raise ValueError("no date")
    year, month, day = map(int, date.groups())
    time.strptime(name.decode(), "%Y-%m-%d")
    return time.mktime((year, month, day + 1, 0, 0, 0, 0, 0, -1))
