"""A copy of a store by sync: killed anywhere, or made during a put or a gc, what it lists restores."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

import rdc
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.files.base.store_guard import comes_last
from rdc.files.bulk.open_many import MemoryFile
from rdc.files.root.root import Root
from rdc.model.entries import Listed
from rdc.progress import Problem
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Role
from rdc.session.destination.conversation import WHOLE_STORE
from rdc.session.destination.store_landing import StoreLanding
from rdc.session.runtime.commands import Conversation
from rdc.store import place as placing
from rdc.store.copied_store import CopiedStore
from rdc.store.index_file import decode_index
from rdc.store.place import PackStore
from rdc.store.publish import published_snapshot
from tests.support.power.power_cut import History
from tests.support.power.power_log import Ordering, snapshot
from tests.support.power.recorded_writes import built_recorder, record
from tests.support.running.paired_sync import Program, sync_in_turns
from tests.support.running.syncing import Way, run_sync
from tests.support.store.stores import Problems, put_tree, state_of

T = TypeVar("T")
NOISE = random.Random(5).randbytes(120_000)
MIRROR = rdc.SyncOptions(delete=True, fsync=False)


class Source:
    """A store to copy. What its snapshots have is known by the keys of their trees."""

    def __init__(self, top: Path) -> None:
        self.tree, self.store = top / "tree", top / "st"
        self.trees: dict[int, bytes] = {}
        self._version = 0
        for _ in range(2):
            self.put()

    def put(self) -> None:
        self._version += 1
        (self.tree / "docs").mkdir(parents=True, exist_ok=True)
        changed = bytearray(NOISE)
        for at in range(self._version, len(NOISE), 10_000):
            changed[at] ^= 1
        (self.tree / "docs" / "noise").write_bytes(changed)
        (self.tree / f"new {self._version}").write_bytes(b"text %d\n" % self._version * 100)
        put_tree(self.tree, self.store)
        self.trees.update(trees_of(self.store))

    def forget_for_good(self, *numbers: int) -> None:
        """Forget snapshots, and write again what the others need: all packs are replaced."""
        rdc.forget_snapshots(self.store, rdc.ForgetOptions(numbers=numbers, apply=True))
        for number in numbers:
            os.utime(self.store / "forgotten" / str(number), (1_000_000_000, 1_000_000_000))
        before = set(self.store.rglob("*.pack"))
        rdc.clean_store(self.store)
        assert not before & set(self.store.rglob("*.pack"))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return Source(tmp_path)


def trees_of(store: Path) -> dict[int, bytes]:
    with PackStore.open(os.fsencode(store)) as opened:
        return {number: opened.snapshot(number).tree.keys for number in opened.numbers()}


def check_copy(copy: Path, trees: dict[int, bytes]) -> int:
    """Every listed snapshot is one that was put, and all of it can be read. Return how many there are."""
    if not (copy / "store").exists():
        return 0
    listed = trees_of(copy)
    assert all(trees[number] == keys for number, keys in listed.items())
    problems = Problems()
    assert rdc.verify_store(copy, 1.0, reporter=problems).damaged == 0, problems.texts
    return len(listed)


def check_index(copy: Path) -> int | None:
    """All that the index names is there, and is what it says. Return how many snapshots it has; None
    without an index."""
    if not (copy / "index").exists():
        return None
    index = decode_index((copy / "index").read_bytes()).index
    with PackStore.open(os.fsencode(copy)) as opened:
        assert {name: opened.pack_end(name) for name in index.packs} == index.packs
        assert [published_snapshot(opened, one.number) for one in index.snapshots] == list(index.snapshots)
    return len(index.snapshots)


class Named(Enum):
    """How the store is named as SRC."""

    WITH_SLASH = "st/"
    WITHOUT = "st"

    def places(self, store: Path, copy: Path) -> tuple[bytes, bytes]:
        """Return SRC and DST of a sync that makes `copy`, which has the same name as the store."""
        if self is Named.WITH_SLASH:
            return os.fsencode(store) + b"/", os.fsencode(copy) + b"/"
        assert copy.name == store.name
        return os.fsencode(store), os.fsencode(copy.parent) + b"/"


def copied(source: Source, copy: Path, named: Named, options: rdc.SyncOptions = MIRROR) -> rdc.SyncReport:
    src, dst = named.places(source.store, copy)
    return rdc.sync(os.fsdecode(src), os.fsdecode(dst), options, catalog=None)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "there").mkdir()
    return tmp_path / "there" / "st"


@pytest.mark.parametrize("named", list(Named))
@pytest.mark.parametrize("way", list(Way))
def test_a_copy_follows_its_store(source: Source, copy: Path, way: Way, named: Named) -> None:
    """The first one says that snapshots are restored in another way."""
    for change in (str, source.put, partial(source.forget_for_good, 1, 2), source.put):
        change()
        for _ in range(2):
            expected = [] if copy.exists() else [WHOLE_STORE]
            run = run_sync(*named.places(source.store, copy), MIRROR, way=way)
            assert run.problems == []
            assert [event.message for event in run.events if isinstance(event, Problem)] == expected
            assert state_of(copy) == state_of(source.store)
    assert check_copy(copy, source.trees) == 2


@pytest.mark.parametrize("named", list(Named))
@pytest.mark.parametrize("order", ["first copy", "packs replaced"])
def test_after_a_power_cut_the_copy_has_what_it_lists(
    source: Source, tmp_path: Path, order: str, named: Named
) -> None:
    top, copy = tmp_path / "top", tmp_path / "top" / "st"
    top.mkdir()
    if order == "packs replaced":
        copied(source, copy, named)
        source.put()
        source.forget_for_good(1, 2)
    before = snapshot(top)
    words = ("sync", "--delete", *map(os.fsdecode, named.places(source.store, copy)))
    history = History(before, record(built_recorder(tmp_path), top, tmp_path / "log", *words))
    assert history.differences(snapshot(top).tree) == []
    assert state_of(copy) == state_of(source.store)
    found, drawn = set(), random.Random(1)
    for prefix in range(len(history) + 1):
        ordering = list(Ordering)[prefix % len(Ordering)]
        cut = drawn.choice(list(history.cuts_at(prefix, ordering, drawn, subsets=1)))
        at = tmp_path / "at"
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir()
        history.state(cut).write(at)
        found.add(check_copy(at / "st", source.trees))
    assert {0, 2} <= found if order == "first copy" else {1, 2} <= found
    assert check_copy(at / "st", source.trees) == len(trees_of(source.store)), "what was told is lost"


class Stopping(Program):
    """One end that fails after some commands."""

    def __init__(self, commands: int) -> None:
        self.left = commands

    def converse(self, conversation: Conversation[T], connection: Connection) -> Conversation[T]:
        answer = None
        try:
            while True:
                command = conversation.send(answer) if answer is not None else next(conversation)
                if not self.left:
                    conversation.throw(RdcError("stopped here"))
                self.left -= 1
                answer = yield command
        except StopIteration as ended:
            found: T = ended.value
            return found


@pytest.mark.parametrize("dialler", [Role.DESTINATION, Role.SOURCE])
def test_a_copy_that_ends_after_any_message_has_what_it_lists(
    source: Source, tmp_path: Path, dialler: Role
) -> None:
    """Both ends run in this process. The next run completes the copy."""
    first = tmp_path / "first"
    rdc.sync(f"{source.store}/", f"{first}/", MIRROR, catalog=None)
    source.put()
    source.forget_for_good(1, 2)
    for start in (None, first):
        commands, ended, seen = 0, False, set()
        while not ended:
            copy = tmp_path / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            if start is not None:
                shutil.copytree(start, copy)
            else:
                copy.mkdir()
            destination = Stopping(commands)
            ends = (destination, Program()) if dialler is Role.DESTINATION else (Program(), destination)
            try:
                sync_in_turns(source.store, copy, MIRROR, dialler=dialler, programs=ends)
                ended = True
            except RdcError:
                pass
            seen.add(check_copy(copy, source.trees))
            commands += 1
        assert commands > 5
        assert state_of(copy) == state_of(source.store)
        assert len(seen) > 1


def shown(monkeypatch: pytest.MonkeyPatch, directory: bytes, change: Callable[[], object]) -> None:
    """Have `change` happen when a directory of the source was listed."""
    real = CopiedStore.restated

    def restated(root: CopiedStore, path: bytes, listed: Listed) -> Listed:
        found = real(root, path, listed)
        if path == directory:
            monkeypatch.setattr(CopiedStore, "restated", real)
            change()
        return found

    monkeypatch.setattr(CopiedStore, "restated", restated)


@pytest.mark.parametrize("named", list(Named))
@pytest.mark.parametrize("directory", [b"", b"forgotten", b"packs", b"snapshots"])
def test_a_put_during_the_copy_is_not_in_it(
    source: Source, copy: Path, directory: bytes, named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pack may be, and its snapshot comes with the next copy."""
    shown(monkeypatch, within(directory, named), source.put)
    assert copied(source, copy, named).exit is ExitCode.OK
    assert len(source.trees) == 3
    assert check_copy(copy, source.trees) == 2
    copied(source, copy, named)
    assert state_of(copy) == state_of(source.store)


def within(directory: bytes, named: Named) -> bytes:
    """Return the path of a directory of the store below what the sync shows."""
    return directory if named is Named.WITH_SLASH else (b"st/" + directory).rstrip(b"/")


@pytest.mark.parametrize("named", list(Named))
@pytest.mark.parametrize("directory", [b"", b"forgotten", b"packs", b"snapshots"])
@pytest.mark.parametrize("was_published", [True, False])
def test_a_copied_index_names_what_the_copy_has(
    source: Source,
    copy: Path,
    directory: bytes,
    was_published: bool,
    named: Named,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A put that ends during the copy replaces the index, by one that names a later pack."""

    def publish() -> None:
        rdc.store_put(source.tree, source.store, rdc.StoreOptions(publish=True), catalog=None)

    def put() -> None:
        source.put()
        publish()

    if was_published:
        publish()
    shown(monkeypatch, within(directory, named), put)
    assert copied(source, copy, named).exit is ExitCode.OK
    assert check_index(copy) == (3 if was_published else None)
    copied(source, copy, named)
    assert check_index(copy) == len(trees_of(source.store))
    assert state_of(copy) == state_of(source.store)


@pytest.mark.parametrize("entry", [b"", b"st"])
def test_the_first_index_is_not_changed_by_a_later_one(source: Source, entry: bytes) -> None:
    """Small files of a source are in memory, and whoever reads them looks whether they changed."""
    rdc.store_put(source.tree, source.store, rdc.StoreOptions(publish=True), catalog=None)
    first = (source.store / "index").read_bytes()
    path = b"st/index" if entry else b"index"
    opened = Root.open(os.fsencode(source.store.parent if entry else source.store))
    shown = CopiedStore(opened, entry)
    opened.release()
    listed = shown.identity(path)
    rdc.store_put(source.tree, source.store, rdc.StoreOptions(publish=True), catalog=None)
    assert (source.store / "index").read_bytes() != first
    with shown.open_read(path) as file:
        content = file.whole()
        assert content == first
        MemoryFile(shown, path, file.identity, content).check_unchanged()
    assert shown.identity(path) == listed
    assert shown.identity(path[:-5] + b"store").size == 68
    shown.release()


def test_a_gc_during_the_copy_removes_nothing(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    rdc.forget_snapshots(source.store, rdc.ForgetOptions(numbers=(1,), apply=True))
    os.utime(source.store / "forgotten" / "1", (1_000_000_000, 1_000_000_000))

    def clean() -> None:
        with pytest.raises(RdcError, match="the store is in use"):
            rdc.clean_store(source.store, rdc.GcOptions(wait=0.0))

    shown(monkeypatch, b"snapshots", clean)
    rdc.sync(f"{source.store}/", f"{copy}/", MIRROR, catalog=None)
    assert check_copy(copy, source.trees) == 1


def test_a_gc_of_the_copy_waits_for_snapshots_whose_packs_have_arrived(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    rdc.sync(f"{source.store}/", f"{copy}/", MIRROR, catalog=None)
    source.put()
    real = StoreLanding.land

    def land(landing: StoreLanding, *arguments: Any) -> None:
        with pytest.raises(RdcError, match="the store is in use"):
            rdc.clean_store(copy, rdc.GcOptions(wait=0.0))
        real(landing, *arguments)

    monkeypatch.setattr(StoreLanding, "land", land)
    rdc.sync(f"{source.store}/", f"{copy}/", MIRROR, catalog=None)
    assert check_copy(copy, source.trees) == 3


@pytest.mark.parametrize("named", list(Named))
def test_packs_stay_while_the_copy_is_in_use(
    source: Source, copy: Path, named: Named, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "LOCK_SECONDS", 0.05)
    copied(source, copy, named)
    source.put()
    source.forget_for_good(1, 2)
    problems = Problems()
    with PackStore.open(os.fsencode(copy)) as restoring:
        restoring.hold()
        src, dst = map(os.fsdecode, named.places(source.store, copy))
        report = rdc.sync(src, dst, MIRROR, reporter=problems, catalog=None)
    assert report.exit is ExitCode.PARTIAL
    assert ["as the copy is in use" in text for text in problems.texts] == [True]
    assert problems.texts[0].startswith(str(copy))
    assert check_copy(copy, source.trees) == 1
    copied(source, copy, named)
    assert state_of(copy) == state_of(source.store)


def test_without_all_packs_no_snapshot_arrives_and_none_goes(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    rdc.sync(f"{source.store}/", f"{copy}/", MIRROR, catalog=None)
    source.put()
    source.forget_for_good(1, 2)
    before = trees_of(copy)
    (pack,) = source.store.rglob("*.pack")
    real = StoreLanding.land

    def land(landing: StoreLanding, *arguments: Any) -> None:
        (copy / pack.relative_to(source.store)).unlink()
        real(landing, *arguments)

    monkeypatch.setattr(StoreLanding, "land", land)
    problems = Problems()
    options = rdc.SyncOptions(delete=True, ignore_errors=True, fsync=False)
    report = rdc.sync(f"{source.store}/", f"{copy}/", options, reporter=problems, catalog=None)
    assert report.exit is ExitCode.PARTIAL
    assert any("no snapshot was brought" in text for text in problems.texts), problems.texts
    assert trees_of(copy) == before
    assert check_copy(copy, source.trees) == 2
    monkeypatch.undo()
    assert rdc.sync(f"{source.store}/", f"{copy}/", MIRROR, catalog=None).exit is ExitCode.OK
    assert state_of(copy) == state_of(source.store)


@pytest.mark.parametrize(
    "options",
    [
        rdc.SyncOptions(rules=(rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"*.pack"),)),
        rdc.SyncOptions(existing=True),
        rdc.SyncOptions(max_size=1),
        rdc.SyncOptions(inplace=True),
    ],
)
@pytest.mark.parametrize("named", list(Named))
def test_a_part_of_a_store_is_no_copy(
    source: Source, copy: Path, options: rdc.SyncOptions, named: Named
) -> None:
    with pytest.raises(UsageError, match="a copy of it may not be whole"):
        copied(source, copy, named, options)
    assert not copy.exists() or os.listdir(copy) == []


@pytest.mark.parametrize("named", list(Named))
@pytest.mark.parametrize("way", list(Way))
def test_over_another_store_nothing_is_copied(source: Source, copy: Path, way: Way, named: Named) -> None:
    """Nor into one."""
    other = copy
    put_tree(source.tree, other)
    before = state_of(other)
    for options in (MIRROR, rdc.SyncOptions()):
        with pytest.raises(RdcError, match="SRC is not a copy of it"):
            run_sync(*named.places(source.store, other), options, way=way)
        with pytest.raises(RdcError, match="SRC is not a copy of it"):
            run_sync(os.fsencode(source.store), other, options, way=way)
        with pytest.raises(RdcError, match="SRC is not a copy of it"):
            run_sync(source.tree, other, options, way=way)
    assert state_of(other) == before


def test_a_symlink_to_a_store_is_copied_as_one(source: Source, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("st")
    rdc.sync(f"{tmp_path}/link", f"{copy.parent}/", MIRROR, catalog=None)
    assert os.readlink(copy.parent / "link") == "st"


def test_what_comes_last() -> None:
    assert all(map(comes_last, (b"store", b"lock", b"snapshots/1", b"forgotten/1")))
    assert not any(map(comes_last, (b"packs", b"packs/ab", b"packs/ab/abcd.pack")))
    assert comes_last(b"st/snapshots/1", b"st")
    assert comes_last(b"packs/ab", b"st")
    assert not comes_last(b"st/packs/ab", b"st")
