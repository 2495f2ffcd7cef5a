"""Directories listed ahead: the walk of a loop, whatever is slow, large, missing or left early."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.errors import FileError
from rdc.files.depth import Depths, Looking
from rdc.limits import DIRECTORY_BYTES, ENTRY_BYTES
from rdc.model.entries import EMPTY_LISTING, NO_INODES, Kind, Listed, PackedListing, strings
from rdc.tree import walk as list_ahead
from rdc.tree.walk import ListAhead
from tests.support.share import examples
from tests.support.storage.slow_storage import SlowStorage
from tests.support.trees.trees import tree, write_tree

Tree = dict[bytes, list[bytes]]
"""The names of the directories in each directory."""


class Directories:
    """A tree that counts what is listed at a time, and what of it nobody has taken."""

    lists_ahead = True

    def __init__(self, tree: Tree, depth: int, missing: frozenset[bytes], wait: float = 0) -> None:
        self.depths = Depths(depth)
        self._tree = tree
        self._missing = missing
        self._wait = wait
        self._lock = threading.Lock()
        self.running = self.most = self.ahead = self.most_ahead = 0

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(self._wait)
            names = self._tree[path]
            size = ENTRY_BYTES * len(names) + sum(len(name) + 1 for name in names)
            if path in self._missing or size > limit:
                raise FileError(path, "closed")
            with self._lock:
                self.ahead += size
                self.most_ahead = max(self.most_ahead, self.ahead)
            return Listed(_listing(names), NO_INODES, (b"of " + path,))
        finally:
            with self._lock:
                self.running -= 1

    def list_many(self, todo: Sequence[bytes], *, looking: Looking) -> None:
        """Each is listed for itself."""

    def viewed(self, path: bytes, listed: Listed) -> Listed:
        with self._lock:
            self.ahead -= ENTRY_BYTES * listed.listing.count + len(listed.listing.names)
        return listed


def _listing(names: list[bytes]) -> PackedListing:
    empty = EMPTY_LISTING.packed()
    n = len(names)
    joined = b"".join(name + b"\0" for name in names)
    kinds = bytes([Kind.DIRECTORY]) * n
    return PackedListing(
        n, joined, kinds, bytes(2 * n), bytes(8 * n), bytes(8 * n), bytes(4 * n), bytes(4 * n), empty.targets
    )


def walk(directories: Directories) -> list[tuple[bytes, list[bytes], tuple[bytes, ...] | str]]:
    """All directories in pre-order, with their names and reserved names or their error."""
    lister, todo = ListAhead(directories), [b""]
    found: list[tuple[bytes, list[bytes], tuple[bytes, ...] | str]] = []
    while todo:
        path = todo.pop()
        try:
            listed: Listed = lister.take(path, todo)
        except FileError as error:
            found.append((path, [], str(error)))
            continue
        names = strings(listed.listing.names)
        found.append((path, names, listed.reserved))
        todo += [path + b"/" + name if path else name for name in reversed(names)]
    lister.close()
    return found


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    made: Tree = {b"": []}
    for number in range(draw(st.integers(0, 60))):
        above = draw(st.sampled_from(sorted(made)))
        name = b"%04d" % number
        made[above].append(name)
        made[above + b"/" + name if above else name] = []
    return made


@settings(max_examples=examples(150))
@given(trees(), st.sampled_from([2, 5, 16]), st.data())
def test_the_same_walk(made: Tree, depth: int, data: st.DataObject) -> None:
    missing = frozenset(data.draw(st.sets(st.sampled_from(sorted(made)), max_size=5)))
    deep = Directories(made, depth, missing)
    assert walk(deep) == walk(Directories(made, 1, missing))
    # The walk itself may list one more.
    assert deep.most <= depth + 1
    assert deep.running == deep.ahead == 0


def test_what_is_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories of half the bound, which are listed when their turn comes, among small ones."""
    bound = 40_000
    monkeypatch.setattr(list_ahead, "AHEAD_BYTES", bound)
    top = [b"%04d" % number for number in range(60)]
    made: Tree = {b"": top}
    for number, name in enumerate(top):
        made[name] = [b"%06d" % below for below in range(150 if number % 10 == 3 else 6)]
        made |= {name + b"/" + below: [] for below in made[name]}
    deep = Directories(made, 8, frozenset(), wait=0.0005)
    assert walk(deep) == walk(Directories(made, 1, frozenset()))
    assert deep.most > 4
    # The directory that the walk is at is no part of the bound.
    assert deep.most_ahead <= bound + ENTRY_BYTES * 150 + 150 * 7


def test_a_walk_that_ends_early_leaves_no_thread() -> None:
    names = [b"%03d" % number for number in range(40)]
    made: Tree = {b"": names} | {name: [] for name in names}
    before = set(threading.enumerate())
    lister = ListAhead(Directories(made, 8, frozenset(), wait=0.01))
    lister.take(b"", [])
    lister.take(b"000", names[:0:-1])
    assert set(threading.enumerate()) > before
    lister.close()
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_slow_directories_are_listed_together(tmp_path: Path, flat: bool, many: bool) -> None:
    """By itself, in a tree of many directories and in one large directory."""
    paths = [f"f{i:04}" if flat else f"d{i % 200:03}/f{i:04}" for i in range(600)]
    write_tree(tmp_path / "tree", tree(dict.fromkeys(paths, b"")))
    storage = SlowStorage(tmp_path)
    script = """
import os, sys
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk
root = Root.open(os.fsencode(sys.argv[1]))
root = root.having(ReadPolicy(depth=int(sys.argv[2])))
walk = Walk(root, FilterList([]), print)
if sys.argv[3] == "many":
    for listed in walk.many():
        sys.stdout.write(listed.text.decode())
else:
    for path, listing, _ in walk:
        print(path, listing)
"""
    runs = [
        storage.run_python(
            "-c", script, tmp_path / "tree", depth, "many" if many else "one", list=4000, stat=500
        )
        for depth in ("1", "0")
    ]
    assert [ran.errors for ran in runs] == ["", ""]
    assert runs[0].output == runs[1].output
    assert runs[0].threads == 0
    assert runs[1].deepest >= 4
    assert many or runs[1].seconds < runs[0].seconds
