"""The catalog against a plain dictionary, its racy rule, and its answers for changed files."""

from __future__ import annotations

import os
import stat
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import rdc
from rdc.catalog import file_state
from rdc.catalog.catalog import Catalog
from rdc.catalog.file_state import DISTANT_MARGIN_NS, LOCAL_MARGIN_NS, WRITEBACK_NS, is_racy
from rdc.catalog.signer import FileSigner
from rdc.catalog.small_files import small_roots
from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.files.base.metadata import file_clock
from rdc.files.facts.file_systems import ChangeTimes, FileSystem, file_system_of
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.limits import CATALOG_IN_SYNC
from rdc.signature.tree import SignatureTree, sign
from tests.support.share import examples

SMALL = ChunkParams(64, 256)
LATER = 10 * LOCAL_MARGIN_NS


def later() -> int:
    """A clock ahead of the timestamps of every file of a test."""
    return file_clock() + LATER


class CountedSigner(FileSigner):
    """Counts the files that are really read."""

    def __init__(self, catalog: Catalog, params: ChunkParams = SYNC_PARAMS) -> None:
        super().__init__(params, catalog)
        self.read_files = 0

    def read(self, source: SourceFile, *, shared: bool = True) -> SignatureTree:
        self.read_files += 1
        return super().read(source, shared=shared)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Root]:
    (tmp_path / "files").mkdir()
    root = Root.open(os.fsencode(tmp_path / "files"))
    yield root
    root.close()


def write(root: Root, name: str, data: bytes) -> None:
    Path(os.fsdecode(root.label), name).write_bytes(data)


def open_catalog(tmp_path: Path, clock: Callable[[], int] = later, **kwargs: Any) -> Catalog:
    return Catalog(tmp_path / "cache", clock=clock, **kwargs)


def test_what_was_signed_once_is_not_read_again(tmp_path: Path, place: Root) -> None:
    data = os.urandom(200_000)
    write(place, "f", data)
    for expected, directory in ((1, "cache"), (0, "cache"), (1, "other")):
        with Catalog(tmp_path / directory, clock=later) as catalog:
            signer = CountedSigner(catalog)
            for _ in range(2):  # from the batch that waits, then from the file
                with place.open_read(b"f") as source:
                    tree = signer.sign(source)
                    assert tree.root == catalog.root(source, SYNC_PARAMS) == sign(data, SYNC_PARAMS).root
                    assert tree == sign(data, SYNC_PARAMS)
            assert signer.read_files == expected


def test_nothing_is_opened_or_made_before_it_is_needed(tmp_path: Path, place: Root) -> None:
    write(place, "f", b"x")
    with open_catalog(tmp_path) as catalog, place.open_read(b"f") as source:
        assert catalog.get(source, SYNC_PARAMS) is None
        assert not catalog.is_in_sync(bytes(32))
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("age_ns", [LATER, WRITEBACK_NS, WRITEBACK_NS + 3_600_000_000_000])
@pytest.mark.parametrize("at_once", [False, True], ids=["one", "many"])
def test_what_may_not_have_been_on_disk_is_read_again_after_a_reboot(
    tmp_path: Path, place: Root, monkeypatch: pytest.MonkeyPatch, age_ns: int, at_once: bool
) -> None:
    """A power cut can leave a file with its old bytes and the size and times of the new ones."""
    write(place, "f", b"x" * 1000)
    found = place.list(b"")
    ctime = (tmp_path / "files" / "f").stat().st_ctime_ns

    def known(boot: bytes, *, sign_it: bool = False) -> bool:
        monkeypatch.setattr(file_state, "boot", lambda: boot)
        with Catalog(tmp_path / "cache", clock=lambda: ctime + age_ns) as catalog:
            signer = CountedSigner(catalog)
            if sign_it and at_once:
                sizes = array("Q", found.sizes)
                with small_roots(place, b"f\0", sizes, SYNC_PARAMS, catalog, keep=True):
                    pass
            with place.open_read(b"f") as source:
                if sign_it:
                    signer.sign(source)
                return catalog.root(source, SYNC_PARAMS) is not None

    assert known(b"one boot", sign_it=True)
    assert known(b"one boot")
    assert known(b"the next boot") is (age_ns > WRITEBACK_NS)
    assert known(b"the next boot", sign_it=True)
    assert known(b"the next boot")


def test_only_its_owner_may_read_it(tmp_path: Path, place: Root) -> None:
    before = os.umask(0)
    try:
        write(place, "f", b"x")
        catalog = open_catalog(tmp_path / "a" / "b")
        with place.open_read(b"f") as source:
            FileSigner(SYNC_PARAMS, catalog).sign(source)
        catalog.flush()
        directory = tmp_path / "a" / "b" / "cache"
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert {stat.S_IMODE(p.stat().st_mode) for p in directory.iterdir()} == {0o600}
        catalog.close()
    finally:
        os.umask(before)


@pytest.mark.parametrize("change", ["content", "mtime", "mode", "replaced", "grown", "other parameters"])
def test_any_change_of_the_file_is_another_file(tmp_path: Path, place: Root, change: str) -> None:
    path = tmp_path / "files" / "f"
    path.write_bytes(b"a" * 1000)
    catalog = open_catalog(tmp_path)
    signer = CountedSigner(catalog)
    with place.open_read(b"f") as source:
        signer.sign(source)
    catalog.flush()
    time.sleep(0.02)  # a tick, so that there is something to see
    if change == "content":
        before = path.stat()
        with path.open("r+b") as file:
            file.write(b"b")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "mtime":
        os.utime(path, ns=(0, 0))
    elif change == "mode":
        path.chmod(0o604)
    elif change == "replaced":
        before = path.stat()
        (tmp_path / "files" / "g").write_bytes(b"c" * 1000)
        os.utime(tmp_path / "files" / "g", ns=(before.st_atime_ns, before.st_mtime_ns))
        os.replace(tmp_path / "files" / "g", path)
    elif change == "grown":
        with path.open("ab") as file:
            file.write(b"b")
    else:
        signer = CountedSigner(catalog, SMALL)
        signer.read_files = 1
    with place.open_read(b"f") as source:
        assert signer.sign(source) == sign(path.read_bytes(), signer.params)
    assert signer.read_files == 2
    catalog.close()


# The racy rule


def test_a_file_that_was_just_changed_is_not_kept(tmp_path: Path, place: Root) -> None:
    write(place, "f", b"x")
    ctime = (tmp_path / "files" / "f").stat().st_ctime_ns
    for passed, kept in ((0, False), (LOCAL_MARGIN_NS, False), (-LATER, False), (LOCAL_MARGIN_NS + 1, True)):
        catalog = open_catalog(tmp_path, partial(int, ctime + passed))
        with catalog, place.open_read(b"f") as source:
            FileSigner(SYNC_PARAMS, catalog).sign(source)
            assert (catalog.root(source, SYNC_PARAMS) is not None) is kept


def test_two_writes_in_one_tick_are_never_taken_for_one(tmp_path: Path, place: Root) -> None:
    """Real clock, and real writes of equal size in quick succession: every answer matches the file."""
    path = tmp_path / "files" / "f"
    with Catalog(tmp_path / "cache") as catalog:
        signer = FileSigner(SYNC_PARAMS, catalog)
        for i in range(300):
            data = b"%08d" % i
            with path.open("r+b" if i else "wb") as file:
                file.write(data)
            with place.open_read(b"f") as source:
                assert signer.sign(source).root == sign(data, SYNC_PARAMS).root


def test_the_margin_is_wide_where_the_clock_is_not_ours() -> None:
    at = 10**18
    assert is_racy(at, at + LOCAL_MARGIN_NS + 1, ChangeTimes.DISTANT)
    assert not is_racy(at, at + DISTANT_MARGIN_NS + 1, ChangeTimes.DISTANT)
    assert is_racy(0, at, ChangeTimes.NONE)


def test_files_are_stamped_with_the_clock_that_is_read(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        assert file_system_of(file.fileno()).change_times is ChangeTimes.LOCAL
        for _ in range(200):
            before = file_clock()
            os.fchmod(file.fileno(), 0o600)
            after = time.time_ns()
            # A kernel with fine-grained timestamps may be ahead of its coarse clock, never behind it.
            assert before <= os.fstat(file.fileno()).st_ctime_ns <= after


def test_a_file_system_has_one_lasting_name(tmp_path: Path) -> None:
    names = set()
    for name in ("a", "b"):
        with (tmp_path / name).open("wb") as file:
            names.add(file_system_of(file.fileno()))
    assert len(names) == 1


def test_a_file_system_that_fails_statfs_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A put of a store and a watch ask, too: their runs go on."""

    def failing(_fd: int) -> os.statvfs_result:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fstatvfs", failing)
    (tmp_path / "tree").mkdir()
    with (tmp_path / "tree" / "f").open("wb") as file:
        found = file_system_of(file.fileno())
        assert found == FileSystem(os.fstat(file.fileno()).st_dev, ChangeTimes.NONE)
    for number in (1, 2):
        report = rdc.store_put(tmp_path / "tree", tmp_path / "st", catalog=None)
        assert (report.number, report.exit, report.files) == (number, rdc.ExitCode.OK, 1)


# Against a dictionary

operations = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 3), st.binary(max_size=600)),
        st.tuples(st.just("sign"), st.integers(0, 3), st.sampled_from([SMALL, SYNC_PARAMS])),
        st.tuples(st.just("flush"), st.just(0), st.none()),
        st.tuples(st.just("reopen"), st.just(0), st.none()),
        st.tuples(st.just("settle"), st.integers(0, 9), st.none()),
    ),
    max_size=30,
)


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(operations)
@example(
    [
        ("write", 2, b""),
        ("sign", 2, SYNC_PARAMS),
        ("sign", 2, SMALL),
        ("flush", 0, None),
        ("sign", 2, SYNC_PARAMS),
    ]
)
def test_it_answers_as_a_dictionary_would(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, object]]
) -> None:
    tmp_path = tmp_path_factory.mktemp("dictionary")
    (tmp_path / "files").mkdir()
    root = Root.open(os.fsencode(tmp_path / "files"))
    catalog = open_catalog(tmp_path)
    contents: dict[int, bytes] = {}
    known: dict[tuple[int, ChunkParams], bytes] = {}
    settled: set[bytes] = set()
    for step, (what, n, value) in enumerate(steps):
        name = b"%d" % n
        if what == "write":
            assert isinstance(value, bytes)
            # Each state has a size of its own, because the fake clock disables the racy rule.
            contents[n] = value + bytes(600 + step - len(value))
            write(root, str(n), contents[n])
            known = {k: v for k, v in known.items() if k[0] != n}
        elif what == "sign" and n in contents:
            assert isinstance(value, ChunkParams)
            with root.open_read(name) as source:
                found = catalog.root(source, value)
                assert found == known.get((n, value))
                known[n, value] = FileSigner(value, catalog).sign(source).root
                assert known[n, value] == sign(contents[n], value).root
        elif what == "settle":
            catalog.remember_in_sync(bytes([n]) * 32)
            settled.add(bytes([n]) * 32)
        elif what == "flush":
            catalog.flush()
        elif what == "reopen":
            catalog.close()
            catalog = open_catalog(tmp_path)
        assert {k for k in (bytes([i]) * 32 for i in range(10)) if catalog.is_in_sync(k)} == settled
    catalog.close()
    root.close()


def test_settled_pairs_are_capped_and_the_oldest_go(tmp_path: Path) -> None:
    keys = [i.to_bytes(32, "big") for i in range(CATALOG_IN_SYNC + 50)]
    with open_catalog(tmp_path) as catalog:
        for key in keys[:100]:
            catalog.remember_in_sync(key)
        catalog.flush()
        catalog.remember_in_sync(keys[0])  # again: now among the newest
        catalog.flush()
        for key in keys[100:]:
            catalog.remember_in_sync(key)
        catalog.flush()
        kept = [catalog.is_in_sync(key) for key in keys]
    assert kept == [True] + [False] * 50 + [True] * (len(keys) - 51)
