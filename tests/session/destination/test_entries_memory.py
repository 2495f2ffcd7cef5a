"""What a destination keeps of the entries that a hostile source tells of: linear in the bytes."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, RdcError
from rdc.files.base.directory_descriptors import Directory, DirectoryCache
from rdc.limits import CHANGED_PATHS_BYTES, HEARD_NUMBERS, PATH_BYTES, PATH_DEPTH, PROBLEMS_WAITING
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.progress import ItemChanged, Problem
from rdc.protocol import messages
from rdc.protocol.connection import Received
from rdc.protocol.messages.field_types import Rows, Segment
from rdc.session.runtime.commands import EventRelay, Receive, Send, entries_memory
from rdc.session.serve import answer
from rdc.session.source.conversation import Source
from rdc.session.trees.source_tree import SourceTree
from rdc.tree.filters import FilterList
from tests.session.destination.scripted_peer import meet
from tests.support.wire.claimed_entries import below, chain, listing, names

__all__: list[str] = []

Steps: TypeAlias = Sequence[messages.Message | type[messages.Message]]

FIXED = 8 << 20
"""Bytes that a session may take whatever comes: windows, one message, what a run loads."""

ENDED = FIXED + CHANGED_PATHS_BYTES
"""The same of one that comes to its end: with paths of changed directories."""

MOST = 64
"""Bytes for a byte received, decompressed."""

METADATA = Metadata(0o755, 10**18, 0, 0)
DRY = SyncOptions(dry_run=True)
HELD = 300
"""Files at the destination: with those it asks for a manifest and not for a listing."""


def owners(part: int) -> messages.Owners:
    ids = tuple(range(1_024 * part, 1_024 * part + 1_024))
    return messages.Owners(ids, names(1_024, ids[0]), ids, names(1_024, ids[0]))


def wide(kind: Kind, *, last: bool = True) -> list[messages.ListingPart]:
    """A directory of 16,000 entries in four parts."""
    each = 4_000
    return [
        messages.ListingPart(0, b"", first, last and first == 3 * each, listing(names(each, first), kind))
        for first in range(0, 4 * each, each)
    ]


def end(directories: int, entries: int) -> Steps:
    return [messages.ListingEnd(directories, entries, 0, 0, 0), messages.Done]


def row_parts(count: int, path: bytes, each: int) -> Iterator[messages.RowsPart]:
    """Rows of one node in so many messages."""
    for number in range(count):
        entries = names(each, number * each)
        segment = Segment(path, each, b"".join(name + b"\0" for name in entries), b"")
        kinds = bytes((Kind.DIRECTORY,)) * each
        columns = bytes(2 * each), bytes(8 * each), bytes(4 * each), bytes(4 * each), bytes(8 * each)
        yield messages.RowsPart((each,), False, Rows(each, (segment,), kinds, *columns))


def described(script: Steps) -> Steps:
    return [messages.Describe, messages.Start(b"", Kind.DIRECTORY, METADATA), *script]


def offered(script: Steps) -> Steps:
    """A manifest of very many entries, and its topmost nodes, none of which is the destination's."""
    manifest = messages.Manifest(bytes(32), 1 << 30, 0, 0, 0, Preserved(True))
    return described([manifest, messages.TopTier(0, b"abcd" * 8), messages.RowsRequest, *script])


def turned(script: Steps) -> Steps:
    """A turn that tells what changed, after a first one in which nothing was there."""
    return [
        messages.Describe,
        messages.Watch(False, bytes(16)),
        messages.Start(b"", Kind.DIRECTORY, METADATA),
        messages.ListingPart(0, b"", 0, True, listing((), Kind.FILE)),
        messages.ListingEnd(1, 0, 0, 0, 0),
        messages.Done,
        messages.Turn(False),
        *script,
    ]


def changes(count: int) -> list[messages.Message]:
    """The same as `below` tells, as changes."""
    told: list[messages.Message] = []
    first = 0
    for part in below(Kind.DIRECTORY, count):
        assert isinstance(part, messages.ListingPart)
        told.append(messages.Changed(part.path, METADATA, first, b"", part.listing, ()))
        first += len(part.listing)
    return told


DEEP, DEPTH = chain()[1:]

BOMBS: dict[str, tuple[SyncOptions, Steps]] = {
    "deep directories, told": (
        DRY,
        described([*below(Kind.DIRECTORY, 4_000), *end(DEPTH + 1, DEPTH + 4_000)]),
    ),
    "deep directories, made": (
        SyncOptions(fsync=False),
        described([*below(Kind.DIRECTORY, 2_000), *end(DEPTH + 1, DEPTH + 2_000)]),
    ),
    "deep files, told": (DRY, described(below(Kind.FILE, 4_000))),
    "deep files, asked for": (SyncOptions(fsync=False), described(below(Kind.FILE, 4_000, 5))),
    "deep links, told": (DRY, described(below(Kind.SYMLINK, 4_000))),
    "deep special files": (DRY, described(below(Kind.SPECIAL, 4_000))),
    "a directory that goes on": (DRY, described(wide(Kind.FILE, last=False))),
    "a wide directory of files": (DRY, described(wide(Kind.FILE))),
    "a wide directory of links": (DRY, described(wide(Kind.SYMLINK))),
    "a wide directory of directories": (DRY, described(wide(Kind.DIRECTORY))),
    "mount points": (
        SyncOptions(dry_run=True, one_file_system=True, delete=True),
        described([messages.MountPoints(names(4_096, 4_096 * number)) for number in range(8)]),
    ),
    "hard links": (
        SyncOptions(dry_run=True, hard_links=True),
        described([messages.HardLinks(tuple(range(255, 255 + 16_384)), (1,) * 16_384)]),
    ),
    "owners": (SyncOptions(dry_run=True, owner_names=True), described([*map(owners, range(32))])),
    "nodes": (
        SyncOptions(dry_run=True, owner=True),
        described(
            [
                messages.Manifest(bytes(32), 1 << 30, 0, 0, 0, Preserved(True)),
                messages.TopTier(1, b"abcd" * 64),
                messages.TierRequest,
                messages.TierAnswer(0, tuple(range(0, 64 * 26, 26)), (26,) * 64, bytes(64 * 26 * 11)),
            ]
        ),
    ),
    "rows one by one": (SyncOptions(dry_run=True, owner=True), offered([*row_parts(2_000, b"", 1)])),
    "deep rows": (SyncOptions(dry_run=True, owner=True), offered([*row_parts(3, DEEP, 4_096)])),
    "deep changes": (
        SyncOptions(fsync=False),
        turned(changes(1_500)),
    ),
    "renames": (
        SyncOptions(fsync=False, delete=True),
        turned(
            [
                *(messages.Renamed(DEEP, b"new%d" % number, Kind.FILE, 1, METADATA) for number in range(500)),
                messages.TurnEnd(0, 0, 0),
                messages.Done,
            ]
        ),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bomb", BOMBS)
def test_memory_is_linear_in_what_came_and_no_more_than_is_counted(tmp_path: Path, bomb: str) -> None:
    options, steps = BOMBS[bomb]
    if messages.Manifest in {type(step) for step in steps}:
        for number in range(HELD):
            (tmp_path / f"held-{number}").touch()
    opening = messages.Open.asking(messages.Role.DESTINATION, os.fsencode(tmp_path), bytes(16), options)
    came = sum(len(messages.encode(step)) for step in steps if not isinstance(step, type))
    gc.collect()
    with closing(FileSigner()) as signer, closing(answer(signer)) as conversation:
        tracemalloc.start()
        try:
            connection = meet(conversation, iter([opening, *steps]), dialled=False)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        fixed = ENDED if messages.Done in steps else FIXED
        assert peak <= fixed + MOST * came
        # What is counted is what bounds it: no less than what is kept.
        assert peak <= fixed + connection.entries.size


@pytest.mark.parametrize("bomb", [name for name, (_, steps) in BOMBS.items() if "special" not in name])
def test_more_than_may_be_kept_is_refused_by_name(tmp_path: Path, bomb: str) -> None:
    options, steps = BOMBS[bomb]
    if messages.Manifest in {type(step) for step in steps}:
        for number in range(HELD):
            (tmp_path / f"held-{number}").touch()
    opening = messages.Open.asking(messages.Role.DESTINATION, os.fsencode(tmp_path), bytes(16), options)
    with (
        closing(FileSigner()) as signer,
        closing(answer(signer)) as conversation,
        pytest.raises(RdcError, match=r"^the source told of [\d,]+ entries, .* raise --max-memory") as found,
    ):
        meet(conversation, iter([opening, *steps]), dialled=False, limit=100_000)
    assert found.value.code is ExitCode.FILE_IO


def test_a_new_description_counts_from_nothing(tmp_path: Path) -> None:
    """A turn, and a listing in place of a manifest, replace what was told before."""
    start, part = messages.Start(b"", Kind.DIRECTORY, METADATA), listing(names(500), Kind.SPECIAL)
    turn: Steps = [
        messages.ListingPart(0, b"", 0, True, part),
        messages.ListingEnd(1, 500, 0, 0, 0),
        messages.Done,
    ]
    steps: Steps = [messages.Describe, messages.Watch(False, bytes(16)), start, *turn]
    again: Steps = [messages.Turn(True), messages.Describe, start, *turn]
    opening = messages.Open(
        messages.Role.DESTINATION, os.fsencode(tmp_path), bytes(16), SyncOptions(checksum=True, fsync=False)
    )
    with closing(FileSigner()) as signer, closing(answer(signer)) as conversation:
        one = 500 * 600 + 1_000
        connection = meet(
            conversation, iter([opening, *steps, *again, *again]), dialled=False, limit=one + 100_000
        )
    assert connection.entries.size <= one


@pytest.mark.parametrize("name", [b"x", b"x" * 250])
def test_depth_ends_where_the_limits_say(tmp_path: Path, name: bytes) -> None:
    steps: list[messages.Message | type[messages.Message]] = [
        messages.Describe,
        messages.Start(b"", Kind.DIRECTORY, METADATA),
    ]
    path = b""
    while path.count(b"/") < PATH_DEPTH and len(path) <= PATH_BYTES:
        steps.append(
            messages.ListingPart(len(steps) - 2, path, len(steps) - 2, True, listing((name,), Kind.DIRECTORY))
        )
        path = path + b"/" + name if path else name
    # Told as a listing that our own encoder would not refuse: the limits are the receiver's.
    steps.append(
        messages.ListingPart(len(steps) - 2, path, len(steps) - 2, True, listing((), Kind.DIRECTORY))
    )
    opening = messages.Open(messages.Role.DESTINATION, os.fsencode(tmp_path), bytes(16), DRY)
    with (
        closing(FileSigner()) as signer,
        closing(answer(signer)) as conversation,
        pytest.raises(RdcError, match=r"ListingPart\.path: \d+ (components|bytes), the limit is") as found,
    ):
        meet(conversation, iter([opening, *steps]), dialled=False)
    assert found.value.code is ExitCode.STREAM


def test_half_of_the_memory_is_used_where_nothing_is_said() -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert entries_memory(None) == physical // 2
    assert entries_memory(5) == 5


def test_work_on_paths_is_linear_in_the_bytes_that_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of directories costs bytes with the square of its depth, since each listing has its path. What
    is opened must not cost more than these: counted are the bytes of the paths that are opened."""
    opened = 0
    plain = DirectoryCache._open

    def counting(cache: DirectoryCache, path: bytes) -> Directory:
        nonlocal opened
        opened += len(path)
        return plain(cache, path)

    monkeypatch.setattr(DirectoryCache, "_open", counting)
    per_byte = []
    for levels in (150, 600):
        opened = 0
        steps: list[messages.Message | type[messages.Message]] = [
            messages.Describe,
            messages.Start(b"", Kind.DIRECTORY, METADATA),
        ]
        path = b""
        for level in range(levels):
            steps.append(messages.ListingPart(level, path, level, True, listing((b"x",), Kind.DIRECTORY)))
            path = path + b"/x" if path else b"x"
        steps += [messages.ListingPart(levels, path, levels, True, listing((), Kind.DIRECTORY))]
        steps += end(levels + 1, levels)
        opening = messages.Open(
            messages.Role.DESTINATION, os.fsencode(tmp_path / str(levels)), bytes(16), SyncOptions()
        )
        with closing(FileSigner()) as signer, closing(answer(signer)) as conversation:
            meet(conversation, iter([opening, *steps]), dialled=False)
        per_byte.append(
            opened / sum(len(messages.encode(step)) for step in steps if not isinstance(step, type))
        )
        assert (tmp_path / str(levels) / os.fsdecode(path)).is_dir()
    assert max(per_byte) < 4


def test_a_source_takes_in_a_bounded_number_of_requests(tmp_path: Path) -> None:
    """While it answers one request, a source shows its user what the destination tells. Requests among that
    wait, and no more of them than HEARD_NUMBERS allows."""
    (tmp_path / "file").touch()
    tree = SourceTree.open(os.fsencode(tmp_path) + b"/")
    request = messages.FileRequest(tuple(range(16_384)))
    with closing(FileSigner()) as signer:
        source = Source(tree, FilterList(()), bytes(16), signer, EventRelay(lambda _: None))
        listening = source._listen()
        taken = 0
        assert next(listening) == Receive(wait=False)
        with suppress(StopIteration):
            while taken <= HEARD_NUMBERS:
                taken += len(request.files)
                listening.send(Received(request, 1))
        tree.root.release()
    assert taken <= HEARD_NUMBERS + len(request.files)


def test_items_that_wait_hold_their_directory_once() -> None:
    events = EventRelay(None)
    gc.collect()
    tracemalloc.start()
    try:
        for name in names(4_000):
            events.report(ItemChanged("cd+++++++++", DEEP + b"/" + name + b"/"))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 4_000 * 400 + 2 * PATH_BYTES
    told = [command.message for command in events.send_waiting(1) if isinstance(command, Send)]
    paths = [path for message in told if isinstance(message, messages.Items) for path in message.paths]
    assert paths == [DEEP + b"/" + name + b"/" for name in names(4_000)]


def test_problems_beyond_those_that_may_wait_are_counted() -> None:
    events = EventRelay(None)
    for number in range(PROBLEMS_WAITING + 7):
        events.report(Problem(ExitCode.PARTIAL, b"f", f"f: {number}"))
    told = [command.message for command in events.send_waiting(1) if isinstance(command, Send)]
    assert len(told) == PROBLEMS_WAITING + 1
    last = told[-1]
    assert isinstance(last, messages.Notice)
    assert (last.code, last.message[:15]) == (ExitCode.PARTIAL, "7 more problems")
    assert events.errors == PROBLEMS_WAITING + 7
