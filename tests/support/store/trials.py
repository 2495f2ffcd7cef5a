"""Long trials of a store: kills of two puts and a gc at once, power cuts after each call, flipped bits, and
many generations.

Each is a function of a directory of its own and a seed. What it finds wrong is an AssertionError.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import rdc
from rdc.model.entries import strings
from rdc.store.place import PackStore
from rdc.store.reader import StoreReader
from rdc.store.snapshot_tree import SnapshotTree, StoredStream
from tests.support.power.power_cut import History
from tests.support.power.power_log import Ordering, snapshot
from tests.support.power.recorded_writes import built_recorder, record
from tests.support.store.stores import Problems, put_tree

__all__ = ["contents_of", "cut_everywhere", "flip_bits", "kill_at_once", "many_generations"]

LONG_AGO = (1_000_000_000, 1_000_000_000)
KEPT = 4
"""Snapshots that stay while a store is killed at, so that each gc has something to do."""


def contents_of(store: Path, number: int) -> dict[str, bytes]:
    """The contents of all files of a snapshot by path, read from the packs. Raises RdcError."""
    found: dict[str, bytes] = {}
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        try:
            tree = SnapshotTree(reader, opened.snapshot(number))
            for path in tree:
                rows = tree.rows(path)
                assert rows is not None
                names = strings(rows.listing.names)
                for row, place in rows.file_numbers().items():
                    stream = StoredStream(reader, rows.files[place].content)
                    entry = os.path.join(os.fsdecode(path), os.fsdecode(names[row]))
                    found[entry] = stream.pread(0, stream.size)
        finally:
            reader.close()
    return found


MEASURED_TURNS = 10
"""One in this many turns is not killed, to see how long the others may be killed for."""


class _Tree:
    """A directory that changes, and what is in it."""

    def __init__(self, top: Path, drawn: random.Random) -> None:
        self.top = top
        self._drawn = drawn
        self.contents: dict[str, bytes] = {}
        for name in ("a", "b", "d/e", "d/f"):
            self.write(name, drawn.randbytes(drawn.choice((300, 4000, 150_000))))

    def write(self, name: str, content: bytes) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self.contents[name] = content

    def change(self) -> None:
        """Change one to three files a little."""
        for _ in range(self._drawn.randrange(1, 4)):
            name = self._drawn.choice(sorted(self.contents))
            content = bytearray(self.contents[name])
            at = self._drawn.randrange(len(content))
            content[at : at + self._drawn.randrange(20)] = self._drawn.randbytes(self._drawn.randrange(1, 20))
            self.write(name, bytes(content))


def _child(job: Callable[[], object]) -> int:
    """Begin a job in a process of its own, whose exit code is 0 if nothing is wrong. Return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        job()
        code = 0
    except rdc.RdcError as error:
        # The other gc, or puts that are faster than this one.
        code = 0 if error.code == 40 else 1
        if code:
            os.write(2, f"{error}\n".encode())
    finally:
        os._exit(code)


def kill_at_once(top: Path, seed: int, kills: int) -> int:
    """Kill two puts and a gc that run at once, again and again. After each turn every listed snapshot has
    what was put. Return the number of snapshots that were put."""
    drawn = random.Random(seed)
    store = top / "st"
    trees = [_Tree(top / name, drawn) for name in ("one", "two")]
    put_tree(trees[0].top, store, rdc.StoreOptions(name="one"))
    kept: dict[int, dict[str, bytes]] = {1: dict(trees[0].contents)}
    done = put = turn = 0
    longest = 0.0
    while done < kills:
        for tree in trees:
            tree.change()
        jobs = [partial(put_tree, tree.top, store, rdc.StoreOptions(name=tree.top.name)) for tree in trees]
        began = time.monotonic()
        running = [*map(_child, jobs), _child(partial(rdc.clean_store, store, rdc.GcOptions(wait=0.2)))]
        if turn % MEASURED_TURNS:
            time.sleep(drawn.uniform(0, longest))
            for child in running:
                if drawn.random() < 0.85:
                    os.kill(child, signal.SIGKILL)
        for child in running:
            _, status = os.waitpid(child, 0)
            assert status in (0, signal.SIGKILL), f"exit status {status}"
            done += status == signal.SIGKILL
        if not turn % MEASURED_TURNS:
            longest = time.monotonic() - began
        turn += 1
        put += _check_listed(store, trees, kept)
        _forget_some(store, kept)
    for tree in trees:
        put_tree(tree.top, store, rdc.StoreOptions(name=tree.top.name))
    _check_listed(store, trees, kept)
    rdc.clean_store(store)
    _check_listed(store, trees, kept)
    return put


def _check_listed(store: Path, trees: list[_Tree], kept: dict[int, dict[str, bytes]]) -> int:
    """Check all listed snapshots. Take over new ones, and return how many there are."""
    listed = rdc.snapshots(store)
    new = 0
    for one in listed:
        if one.number not in kept:
            new += 1
            kept[one.number] = dict(trees[one.series == b"two"].contents)
        assert contents_of(store, one.number) == kept[one.number], f"snapshot {one.number} differs"
    assert {one.number for one in listed} == kept.keys()
    return new


def _forget_some(store: Path, kept: dict[int, dict[str, bytes]]) -> None:
    gone = sorted(kept)[:-KEPT]
    if gone:
        rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=tuple(gone), apply=True))
        for number in gone:
            del kept[number]
            os.utime(store / "forgotten" / str(number), LONG_AGO)


def cut_everywhere(top: Path, seed: int, subsets: int) -> int:
    """Cut the power after each call of puts, a forget and a gc. All that is listed then is as it was put, and
    what was listed before and after is listed. Return the number of states of a disk that were looked at.

    `subsets`: random sets of what was not synced, to be lost after each call beside none and all of it.
    """
    drawn = random.Random(seed)
    recorder, place, at = built_recorder(top), top / "place", top / "at"
    place.mkdir()
    store, tree = place / "st", _Tree(top / "one", drawn)
    kept: dict[int, dict[str, bytes]] = {}
    states = 0
    puts: list[tuple[str, ...]] = [("put", "--name=one", str(tree.top), str(store))] * drawn.randrange(3, 5)
    puts[-1] = ("put", "--name=one", "--publish", str(tree.top), str(store))
    gone = sorted(drawn.sample(range(1, len(puts)), 2))
    forget = ("forget", "--apply", str(store), *[f"@{number}" for number in gone])
    for words in (*puts, forget, ("gc", str(store)), puts[0]):
        if words[0] == "gc":
            for number in gone:
                os.utime(store / "forgotten" / str(number), LONG_AGO)
        if words[0] == "put":
            tree.change()
            kept[1 + max(kept, default=0)] = dict(tree.contents)
        before, listed = snapshot(place), _listed(store)
        calls = record(recorder, place, top / "log", "store", *words)
        history, left = History(before, calls), _listed(store)
        assert history.differences(snapshot(place).tree) == []
        for ordering in Ordering:
            for cut in history.cuts(ordering, seed, subsets=subsets):
                shutil.rmtree(at, ignore_errors=True)
                at.mkdir()
                history.state(cut).write(at)
                found = _listed(at / "st")
                assert listed & left <= found <= listed | left, (words, cut)
                assert found == left or cut.prefix < len(history), (words, cut)
                for number in found:
                    assert contents_of(at / "st", number) == kept[number], (words, cut, number)
                states += 1
    return states


def _listed(store: Path) -> set[int]:
    return {one.number for one in rdc.snapshots(store)} if (store / "store").exists() else set()


def flip_bits(top: Path, seed: int, flips: int) -> dict[str, int]:
    """Flip single bits of the files of a store. `verify` names each and all files that it reaches, and
    everything else is read as it was put. Return how many flips there were of each kind of file, and how many
    were harmless: some bits of a zstd frame mean nothing (rdc/store/PACKS.md)."""
    drawn = random.Random(seed)
    store = top / "st"
    tree = _Tree(top / "one", drawn)
    kept: dict[int, dict[str, bytes]] = {}
    for _ in range(5):
        tree.change()
        number = put_tree(tree.top, store, rdc.StoreOptions(name="one")).number
        kept[number] = dict(tree.contents)
    files = sorted(path for path in store.rglob("*") if path.is_file() and path.stat().st_size)
    for path in files:
        path.chmod(0o600)
    counts: dict[str, int] = {}
    for _ in range(flips):
        kind = drawn.choice(("pack", "pack", "pack", "snapshot", "store"))
        path = drawn.choice([one for one in files if _kind(one) == kind])
        content = path.read_bytes()
        changed = bytearray(content)
        changed[drawn.randrange(len(changed))] ^= 1 << drawn.randrange(8)
        path.write_bytes(changed)
        if not _check_damage(store, path, kept):
            kind = "harmless"
        path.write_bytes(content)
        counts[kind] = counts.get(kind, 0) + 1
    assert rdc.verify_store(store, 1.0).damaged == 0
    return counts


def _kind(path: Path) -> str:
    return "pack" if path.suffix == ".pack" else "snapshot" if path.parent.name == "snapshots" else "store"


def _check_damage(store: Path, path: Path, kept: dict[int, dict[str, bytes]]) -> bool:
    """Check what is said of a damaged file, and what is read. Return whether it is damaged at all."""
    problems = Problems()
    try:
        report = rdc.verify_store(store, 1.0, reporter=problems)
    except rdc.RdcError as error:
        # The head: nothing can be read without it.
        assert str(path) in str(error)
        assert _kind(path) == "store"
        return True
    if not report.damaged:
        assert _kind(path) == "pack", f"nothing is wrong with {path}"
        assert all(contents_of(store, number) == contents for number, contents in kept.items())
        return False
    assert any(str(path) in text for text in problems.texts), problems.texts
    said = "\n".join(problems.texts)
    for number, contents in kept.items():
        whole = f"snapshot {number}: its tree cannot be read" in said
        try:
            found = contents_of(store, number)
        except rdc.RdcError:
            found = _readable(store, number)
        for name, content in contents.items():
            if found.get(name) != content:
                assert name not in found, f"snapshot {number}: {name} is wrong"
                assert whole or f"snapshot {number}: {name}" in said, (number, name, said)
    return True


def _readable(store: Path, number: int) -> dict[str, bytes]:
    """Return what a sync restores of a damaged snapshot."""
    out = store.parent / "out"
    shutil.rmtree(out, ignore_errors=True)
    try:
        rdc.sync(f"{store}/@{number}/", f"{out}/", rdc.SyncOptions(fsync=False), catalog=None)
    except rdc.RdcError:
        return {}
    return {str(one.relative_to(out)): one.read_bytes() for one in out.rglob("*") if one.is_file()}


def many_generations(top: Path, seed: int, generations: int) -> tuple[int, float]:
    """Put one changing file many times. Return the greatest depth of a delta, and the size of the store after
    gc, when all but the last were forgotten, as a share of a fresh one's."""
    drawn = random.Random(seed)
    store, fresh, tree = top / "st", top / "fresh", _Tree(top / "one", drawn)
    for _ in range(generations):
        tree.change()
        put_tree(tree.top, store, rdc.StoreOptions(name="one"))
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        depth = max(pack.depth for pack in reader.packs)
        reader.close()
    last = generations
    assert contents_of(store, last) == tree.contents
    rdc.forget_snapshots(store, rdc.ForgetOptions(numbers=tuple(range(1, last)), apply=True))
    for number in range(1, last):
        os.utime(store / "forgotten" / str(number), LONG_AGO)
    rdc.clean_store(store)
    assert contents_of(store, last) == tree.contents
    put_tree(tree.top, fresh, rdc.StoreOptions(name="one"))
    sizes = [sum(one.stat().st_size for one in place.rglob("*.pack")) for place in (store, fresh)]
    return depth, sizes[0] / sizes[1]
