"""The signer: threads give the results of one thread, in order and in bounded memory, and stop when told."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.catalog import signer as signer_module
from rdc.catalog import signer as signing_module
from rdc.catalog.signer import FileSigner, SignTask, sign_in_order
from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.errors import FileChangedError, FileError, OutOfSpaceError
from rdc.files.root import source_file as source_module
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.library.streams import sign_file
from rdc.signature.codec import decode_signature, encode_signature
from rdc.signature.tree import TreeBuilder, sign
from tests.support.kernel.kernel_streams import streams
from tests.support.share import examples

SMALL = ChunkParams(64, 256)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Root]:
    root = Root.open(os.fsencode(tmp_path))
    yield root
    root.close()


def tasks(root: Root, sizes: list[int]) -> list[SignTask[int]]:
    return [SignTask(i, size, partial(root.open_read, b"%d" % i)) for i, size in enumerate(sizes)]


@pytest.fixture
def fine_grained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduces the sizes for sharing and batching to what a test can afford."""
    monkeypatch.setattr(signer_module, "SHARED_BYTES", 100_000)
    monkeypatch.setattr(signer_module, "THREADS_WORTH", 0)
    monkeypatch.setattr(signer_module, "WHOLE_BYTES", 0)
    monkeypatch.setattr(source_module, "SPAN_BYTES", 30_000)
    monkeypatch.setattr(signing_module, "BATCH_BYTES", 150_000)
    monkeypatch.setattr(signing_module, "BATCH_FILES", 3)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.one_of(st.none(), st.integers(0, 400), st.integers(90_000, 400_000)), min_size=1, max_size=12
    ),
    st.sampled_from([SMALL, SYNC_PARAMS]),
    st.integers(2, 4),
)
def test_threads_give_what_one_gives(
    tmp_path_factory: pytest.TempPathFactory,
    fine_grained: None,
    sizes: list[int | None],
    params: ChunkParams,
    workers: int,
) -> None:
    """None stands for a file that is missing when its turn comes."""
    directory = tmp_path_factory.mktemp("many")
    contents = [None if size is None else os.urandom(size) for size in sizes]
    for i, data in enumerate(contents):
        if data is not None:
            (directory / str(i)).write_bytes(data)
    root = Root.open(os.fsencode(directory))
    listed = tasks(root, [size or 0 for size in sizes])
    results = list(sign_in_order(FileSigner(params, workers=workers), listed))
    assert [signed.key for signed in results] == list(range(len(sizes)))
    for signed, data in zip(results, contents, strict=True):
        if data is None:
            assert isinstance(signed.error, FileError)
            assert signed.tree is None
        else:
            assert signed.tree == sign(data, params)
            assert signed.identity is not None
            assert signed.identity.size == len(data)
    root.close()


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(streams(), st.integers(100, 5000))
def test_one_file_shared_between_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, span: int
) -> None:
    monkeypatch.setattr(signer_module, "SHARED_BYTES", 1)
    monkeypatch.setattr(signer_module, "THREADS_WORTH", 0)
    monkeypatch.setattr(signer_module, "WHOLE_BYTES", 0)
    monkeypatch.setattr(source_module, "SPAN_BYTES", span)
    (tmp_path / "f").write_bytes(data)
    root = Root.open(os.fsencode(tmp_path))
    with root.open_read(b"f") as source:
        for workers in (1, 3):
            assert FileSigner(SMALL, workers=workers).sign(source) == sign(data, SMALL)
    root.close()


@settings(max_examples=examples(60), deadline=None)
@given(st.binary(min_size=1, max_size=256), st.booleans())
def test_a_file_of_one_chunk_has_the_tree_that_a_builder_makes(data: bytes, featured: bool) -> None:
    data = data * 4 if featured else data
    data = data[:256]
    from rdc.chunking import Chunker

    chunker, builder = Chunker(SMALL), TreeBuilder(SMALL)
    for columns in (chunker.feed_columns(data), chunker.finish_columns()):
        builder.add(columns.digests, columns.lengths)
    tree = builder.finish(chunker.traits())
    assert sign(data, SMALL) == tree
    assert decode_signature(encode_signature(tree)) == tree


def test_a_file_that_grew_since_it_was_listed_holds_up_nobody(
    place: Root, tmp_path: Path, fine_grained: None
) -> None:
    """Large files among batches of small ones, in all threads at once."""
    (tmp_path / "f").write_bytes(os.urandom(300_000))
    signer = FileSigner(workers=2)
    listed = [SignTask(i, 0, partial(place.open_read, b"f")) for i in range(60)]
    assert len({signed.root for signed in sign_in_order(signer, listed)}) == 1


def test_little_is_in_flight(place: Root, tmp_path: Path, fine_grained: None) -> None:
    """Only a few files are opened before their results are taken, however many are to come."""
    (tmp_path / "f").write_bytes(bytes(1000))
    opened = 0

    def opener() -> SourceFile:
        nonlocal opened
        opened += 1
        return place.open_read(b"f")

    signer = FileSigner(workers=2)
    results = sign_in_order(signer, (SignTask(i, 1000, opener) for i in range(10_000)))
    for taken in range(1, 400):
        next(results)
        assert opened - taken <= 3 * (2 * signer.workers + 2)
    results.close()


def test_who_stops_taking_stops_the_work(place: Root, tmp_path: Path, fine_grained: None) -> None:
    (tmp_path / "f").write_bytes(b"x")
    opened = threading.Semaphore(0)
    go_on = threading.Event()

    def opener() -> SourceFile:
        opened.release()
        go_on.wait()
        return place.open_read(b"f")

    signer = FileSigner(workers=2)
    results = sign_in_order(signer, (SignTask(i, 1, opener) for i in range(1000)))
    taker = threading.Thread(target=partial(next, results))
    taker.start()
    for _ in range(2):
        assert opened.acquire(timeout=30)  # both threads have begun a batch
    go_on.set()
    taker.join()
    results.close()
    signer.close()
    begun = 2
    while opened.acquire(blocking=False):
        begun += 1
    assert begun < 100


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OutOfSpaceError("full")])
def test_what_is_no_files_fault_ends_it(
    place: Root, tmp_path: Path, error: BaseException, workers: int
) -> None:
    (tmp_path / "f").write_bytes(b"x")

    def failing() -> SourceFile:
        raise error

    good: Callable[[], SourceFile] = partial(place.open_read, b"f")
    signer = FileSigner(workers=workers)
    kind = error if isinstance(error, type) else type(error)
    with pytest.raises(kind):
        list(sign_in_order(signer, [SignTask(i, 1, failing if i == 200 else good) for i in range(1000)]))
    before = time.monotonic()
    signer.close()
    assert time.monotonic() - before < 30


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_changes_meanwhile_is_named(place: Root, tmp_path: Path, workers: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(6 << 20))
    with place.open_read(b"f") as source:
        os.utime(path, ns=(0, 0))
        with pytest.raises(FileChangedError, match="changed while it was read"):
            FileSigner(workers=workers).sign(source)
    with place.open_read(b"f") as source:
        os.truncate(path, 5 << 20)
        with pytest.raises(FileChangedError, match="6291456 bytes"):
            FileSigner(workers=workers).sign(source)


def test_sign_file_follows_links(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "l").symlink_to("f")
    assert sign_file(tmp_path / "l") == sign(b"abc", SYNC_PARAMS)


def test_a_directory_is_told_from_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="found a directory; name a file, or run again"):
        sign_file(tmp_path)
