"""Round trips as latency shows them: a wire on which only the way takes time, beside what a run reports.

The report counts by the rounds that messages say they have. Here nothing is read off messages: bytes sent in
one tick arrive in the next, work takes none, and a run of n round trips lasts 2 n ticks.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode
from rdc.model.location import Location
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Done, Role
from rdc.session.runtime.driver import Runner
from rdc.session.serve import answer, greeting
from rdc.session.sync_run import SyncRun
from rdc.session.trees.source_tree import SourceTree
from tests.support.running.syncing import contents_of
from tests.support.trees.trees import LONG_AGO, File, Tree, describe, read_tree, tree, write_tree

DIALLERS = pytest.mark.parametrize("dialler", list(Role), ids=lambda role: f"{role.name.lower()} dials")


@dataclass(slots=True)
class Measured:
    report: SyncReport
    ticks: int
    """From the first byte until the side where the user sits is through."""


def measure(source: Path, destination: Path, dialler: Role, options: SyncOptions | None = None) -> Measured:
    here = SyncRun(
        Location(None, contents_of(source)),
        Location(None, contents_of(destination)),
        options or SyncOptions(fsync=False),
        lambda _event: None,
        NoCatalog(),
    )
    signer = FileSigner(catalog=NoCatalog())
    near, far = Connection(True, greeting(signer.params)), Connection(False, greeting(signer.params))
    held = SourceTree.open(contents_of(source))
    try:
        conversation = here.fetch() if dialler is Role.DESTINATION else here.send(held)
        mine, theirs = Runner(conversation, near), Runner(answer(signer), far)
        ticks = 0
        inbound: dict[int, bytes] = {id(mine): b"", id(theirs): b""}
        while not mine.over:
            outbound = {id(end): _work(end, inbound[id(end)]) for end in (mine, theirs)}
            inbound = {id(mine): outbound[id(theirs)], id(theirs): outbound[id(mine)]}
            assert mine.over or any(inbound.values()), "both sides wait for the other"
            ticks += not mine.over
        return Measured(here.totals(mine.value, near), ticks)
    finally:
        held.root.close()


def _work(end: Runner[Done] | Runner[None], data: bytes) -> bytes:
    """All that the side does in no time, once `data` is there; what it sends."""
    end.connection.receive_data(data)
    sent = bytearray()
    while not end.over:
        end.advance(polled=True)
        if end.over or end.waits:
            end.connection.flush()
        more = end.connection.data_to_send()
        sent += more
        if end.waits and not more:
            break
    sent += end.connection.data_to_send()
    return bytes(sent)


def big(seed: int) -> bytes:
    return random.Random(seed).randbytes(2_000_000)


def edited(content: bytes) -> bytes:
    for at in range(100_000, len(content), 400_000):
        content = content[:at] + b"an edit" + content[at + 3 :]
    return content


def many(count: int, seed: bytes = b"") -> Tree:
    return tree({f"directory-{i // 60:04}/file-{i:05}": b"content %d %s" % (i, seed) for i in range(count)})


CASES: dict[str, Callable[[], tuple[Tree, Tree | None]]] = {
    "nothing changed": lambda: (many(300), many(300)),
    "a first copy": lambda: (many(300) | tree({"big": big(1)}), None),
    "an edited file": lambda: (tree({"big": edited(big(2))}), tree({"big": big(2)})),
    "one file of thousands": lambda: (
        many(1_200) | tree({"directory-0007/file-00420": b"other"}),
        many(1_200),
    ),
    "all mtimes": lambda: (many(300), many(300)),
    "everything at once": lambda: (
        many(600)
        | tree({"big": edited(big(3)), "new": big(4)[:200_000], "directory-0003/file-00190": b"changed"}),
        many(700) | tree({"big": big(3), "old": big(4)[:190_000]}),
    ),
}


@DIALLERS
@pytest.mark.parametrize("case", CASES)
def test_a_run_lasts_as_many_round_trips_as_it_reports(case: str, dialler: Role, tmp_path: Path) -> None:
    after, before = CASES[case]()
    source = write_tree(tmp_path / "source", after)
    destination = tmp_path / "destination"
    if before is not None:
        write_tree(destination, before)
    if case == "all mtimes":
        for top, _, names in os.walk(source):
            for name in names:
                os.utime(os.path.join(top, name), (7, 7))
    options = SyncOptions(fsync=False, delete=True)
    measured = measure(source, destination, dialler, options)
    assert measured.report.exit == ExitCode.OK
    assert describe(read_tree(source), read_tree(destination)) == []
    assert measured.report.round_trips <= 10
    # The last message may travel one way only, and nobody waits for an answer to it.
    assert measured.ticks in (2 * measured.report.round_trips - 1, 2 * measured.report.round_trips), measured


@dataclass(frozen=True, slots=True)
class Update:
    """A common update, what it may take in round trips, and in bytes."""

    before: Tree
    after: Tree
    trips: int
    bytes: int


def words(seed: int, size: int) -> bytes:
    """Text that compresses as source code does."""
    rng = random.Random(seed)
    return b"".join(b"%x %s\n" % (rng.getrandbits(20), b"name" * rng.randrange(9)) for _ in range(size // 24))


def reworded(content: bytes, edits: int) -> bytes:
    """With `edits` lines changed."""
    lines = content.split(b"\n")
    for number in range(edits):
        lines[(number * 2 + 1) * len(lines) // (2 * edits)] = b"edit %d" % number
    return b"\n".join(lines)


def newer(content: bytes) -> File:
    return File(content, mtime_ns=LONG_AGO + 10**9)


def ten_of_a_thousand() -> Update:
    old = {f"directory-{i // 60:02}/file-{i:04}": words(i, 1_000 + i % 50 * 600) for i in range(1_000)}
    new = {name: newer(reworded(old[name], 2)) for name in list(old)[50::97]}
    return Update(tree(old), tree(old) | tree(new), 4, 5_200)


def ten_of_ten_thousand() -> Update:
    old = {f"directory-{i // 60:03}/file-{i:05}": b"content %d" % i for i in range(10_000)}
    large = {name: words(i, 20_000) for i, name in enumerate(list(old)[50::997])}
    new = {name: newer(reworded(content, 2)) for name, content in large.items()}
    return Update(tree(old | large), tree(old) | tree(new), 5, 6_100)


def two_large_files() -> Update:
    old = {name: words(seed, 6_000_000) for seed, name in enumerate(("one", "two"))}
    return Update(tree(old), tree({name: newer(reworded(old[name], 5)) for name in old}), 5, 5_900)


def a_hundred_of_ten_thousand() -> Update:
    old = {f"directory-{i // 60:03}/file-{i:05}": b"content %d" % i for i in range(10_000)}
    large = {name: words(i, 20_000) for i, name in enumerate(list(old)[50::97])}
    new = {name: newer(reworded(content, 2)) for name, content in large.items()}
    return Update(tree(old | large), tree(old) | tree(new), 5, 40_000)


@DIALLERS
@pytest.mark.parametrize(
    "update", [ten_of_a_thousand, ten_of_ten_thousand, a_hundred_of_ten_thousand, two_large_files]
)
def test_what_a_common_update_takes(update: Callable[[], Update], dialler: Role, tmp_path: Path) -> None:
    """Unchanged files keep their times, as from one release to the next."""
    one = update()
    source, destination = (
        write_tree(tmp_path / "source", one.after),
        write_tree(tmp_path / "destination", one.before),
    )
    measured = measure(source, destination, dialler)
    assert describe(read_tree(source), read_tree(destination)) == []
    report = measured.report
    assert report.round_trips <= one.trips, report.by_kind
    assert report.bytes_sent + report.bytes_received <= one.bytes, report.by_kind
