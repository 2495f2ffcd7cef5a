"""What DST has of a snapshot is neither fetched nor believed: chunks of its files, and of a kept tree."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files.root.root import Root
from rdc.store import known_chunks
from rdc.store.directory import KEY_BYTES, split_keys
from rdc.store.known_chunks import KnownChunks, Missing
from rdc.store.place import PackStore
from rdc.store.reader import FrameFacts, StoreReader, _Run
from rdc.store.snapshot_tree import SnapshotTree, StoredStream
from rdc.store.tree_rows import LIST_PARAMS, StreamRef
from rdc.store.writer import cut_streams
from tests.support.share import examples
from tests.support.store.stores import put_tree

KEY = bytes(range(32))
NOISE = random.Random(61).randbytes(1_600_000)
OLD = 1_600_000_000_000_000_000
"""An mtime."""


def key_of(content: bytes) -> bytes:
    return blake3(content, key=KEY).digest(KEY_BYTES)


def write(top: Path, files: dict[str, bytes]) -> Path:
    top.mkdir(exist_ok=True)
    for name, content in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
        os.utime(top / name, ns=(OLD, OLD))
    return top


class NotingReader(StoreReader):
    """A reader that notes which frames it decodes."""

    def __init__(self, store: PackStore, elsewhere: KnownChunks) -> None:
        self._taken = set[int]()
        super().__init__(store, elsewhere)

    def _decode(
        self, frame: FrameFacts, runs: Sequence[_Run], decoded: dict[int, bytes], given: dict[bytes, bytes]
    ) -> bytes:
        self._taken.add(frame.number)
        return super()._decode(frame, runs, decoded, given)

    def taken(self) -> set[int]:
        """The frames that were decoded since the last call."""
        taken, self._taken = self._taken, set()
        return taken


class Update:
    """A destination that is to become the newest snapshot of a store."""

    def __init__(self, store: Path, top: bytes = b"", only: bytes | None = None) -> None:
        self.store = PackStore.open(os.fsencode(store))
        self.known = KnownChunks(self.store.head.key)
        self.reader = NotingReader(self.store, self.known)
        self.tree = SnapshotTree(self.reader, self.store.snapshot(self.store.numbers()[-1]))
        self.missing = Missing(self.reader, self.tree, self.known, top, only)
        self.reader.taken()

    def close(self) -> None:
        self.reader.close()
        self.store.close()

    def stream(self, path: bytes) -> StreamRef:
        """The content of a file of the snapshot."""
        above, _, name = path.rpartition(b"/")
        rows = self.tree.rows(above)
        assert rows is not None
        row = rows.listing.names.split(b"\0").index(name)
        return rows.files[rows.file_numbers()[row]].content

    def read(self, path: bytes) -> bytes:
        ref = self.stream(path)
        return StoredStream(self.reader, ref).pread(0, ref.size)

    def frames_of(self, *paths: bytes) -> set[int]:
        """The frames that these files take where nothing is known."""
        found = set[int]()
        reader = StoreReader(self.store)
        for path in paths:
            reader.add_frames(split_keys(reader.expand(self.stream(path))), found, set(), 0)
        reader.close()
        return found


@contextmanager
def updating(
    store: Path, destination: Path, top: bytes = b"", only: bytes | None = None
) -> Iterator[tuple[Update, Root]]:
    root = Root.open(os.fsencode(destination))
    update = Update(store, top, only)
    try:
        yield update, root
    finally:
        update.close()
        root.release()


# KnownChunks.


def test_chunks_of_a_kept_tree_are_known() -> None:
    tree = NOISE[:50_000]
    known = KnownChunks(KEY)
    known.add_tree(b"")
    known.add_tree(tree)
    cut = cut_streams(tree, array("Q", [len(tree)]), LIST_PARAMS, KEY)
    assert len(cut.keys) > 5
    found = [known.chunk(key) or b"" for key in cut.keys]
    assert b"".join(found) == tree
    assert [known.length(key) for key in cut.keys] == list(map(len, found))
    assert all(key in known and key_of(chunk) == key for key, chunk in zip(cut.keys, found, strict=True))
    other = key_of(b"other")
    assert other not in known
    assert (known.chunk(other), known.length(other)) == (None, None)


def test_wanted_chunks_of_files_are_known_at_their_first_place(tmp_path: Path) -> None:
    first, second, third = NOISE[:3000], NOISE[3000:7000], NOISE[7000:7500]
    write(tmp_path, {"a": first + second, "d/b": third + second})
    known = KnownChunks(KEY)
    chunks = {key_of(one): one for one in (first, second, third)}
    wanted = {key_of(second), key_of(third)}
    for path, parts in ((b"a", (first, second)), (b"d/b", (third, second))):
        size = known.add_file(path, [(key_of(one), len(one)) for one in parts], wanted)
        assert size == sum(map(len, parts))
    assert key_of(first) not in known
    assert known.chunk(key_of(second)) is None, "nobody said where the files are"
    root = Root.open(os.fsencode(tmp_path))
    known.read_from(root)
    for key in wanted:
        assert key in known
        assert known.chunk(key) == chunks[key]
        assert known.length(key) == len(chunks[key])
    # `second` is read from a, where it was found first, and what came of a and b later does no harm.
    (tmp_path / "d" / "b").unlink()
    assert known.chunk(key_of(third)) is None
    assert known.chunk(key_of(second)) == second
    (tmp_path / "a").write_bytes(first + second[:-1])
    assert known.chunk(key_of(second)) is None
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("/etc/passwd")
    assert known.chunk(key_of(second)) is None
    root.release()


# Missing.


FILES = {
    "docs/one": NOISE[:100_000],
    "docs/two": NOISE[100_000:300_000],
    "docs/deep/three": NOISE[300_000:400_000],
    "empty": b"",
    "large": NOISE[400_000:],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("store")
    # One put each, so that each file has frames of its own.
    for count in range(1, len(FILES) + 1):
        write(top / "tree", dict(list(FILES.items())[:count]))
        put_tree(top / "tree", top / "st")
    return top / "st"


def test_a_destination_that_is_up_to_date_needs_nothing(store: Path, tmp_path: Path) -> None:
    with updating(store, write(tmp_path / "out", FILES)) as (update, root):
        assert update.missing.frames(root) == set()
        assert update.missing.lists(root) == set()


def test_without_a_destination_all_contents_are_needed(store: Path, tmp_path: Path) -> None:
    with updating(store, tmp_path) as (update, root):
        paths = [os.fsencode(path) for path, content in FILES.items() if content]
        assert update.missing.frames(None) == update.frames_of(*paths)
        assert update.missing.frames(root) == update.frames_of(*paths)


def test_only_what_differs_is_needed(store: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "out", FILES)
    (out / "docs" / "one").unlink()
    os.utime(out / "docs" / "two")  # another mtime, and the same content
    with updating(store, out) as (update, root):
        found = update.missing.frames(root)
        assert found == update.frames_of(b"docs/one")
        update.reader.taken()
        assert update.read(b"docs/two") == FILES["docs/two"]
        assert update.reader.taken() == set()
        assert update.read(b"docs/one") == FILES["docs/one"]
        assert update.reader.taken() <= found


def test_one_directory_or_entry_of_the_snapshot_is_looked_at_alone(store: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with updating(store, tmp_path / "out", b"docs") as (update, root):
        paths = (b"docs/one", b"docs/two", b"docs/deep/three")
        assert update.missing.frames(root) == update.frames_of(*paths)
    with updating(store, tmp_path / "out", b"", b"large") as (update, root):
        assert update.missing.frames(root) == update.frames_of(b"large")
    with updating(store, tmp_path / "out", b"docs", b"deep") as (update, root):
        assert update.missing.frames(root) == update.frames_of(b"docs/deep/three")


def test_files_under_other_names_are_used(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = write(tmp_path / "out", {"moved/far/1": FILES["docs/one"], "moved/2": FILES["docs/two"]})
    (out / "moved" / "link").symlink_to("..")  # followed, it would have no end
    kept = [b"docs/deep/three", b"large"]
    with updating(store, out) as (update, root):
        assert update.missing.frames(root) == update.frames_of(*kept)
        assert update.read(b"docs/two") == FILES["docs/two"]
    monkeypatch.setattr(known_chunks, "EXTRA_SHARE", 0)
    with updating(store, out) as (update, root):
        assert update.missing.frames(root) == update.frames_of(b"docs/one", b"docs/two", *kept)


def test_more_chunks_than_are_looked_for_are_fetched(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_chunks, "WANTED_MOST", 3)
    monkeypatch.setattr(known_chunks, "SLICE_KEYS", 2)
    out = write(tmp_path / "out", {"large": FILES["large"] + b"more"})
    with updating(store, out, b"", b"large") as (update, root):
        assert update.missing.frames(root) == update.frames_of(b"large")
        assert update.read(b"large") == FILES["large"]


def test_a_file_that_only_looks_unchanged_is_not_believed(store: Path, tmp_path: Path) -> None:
    """Its size and mtime are the snapshot's, so its chunks are taken for those of the tree."""
    out = write(tmp_path / "out", FILES)
    two = out / "docs" / "two"
    two.write_bytes(bytes(len(FILES["docs/two"])))
    os.utime(two, ns=(OLD, OLD))
    with updating(store, out) as (update, root):
        update.missing.frames(root)
        assert update.read(b"docs/two") == FILES["docs/two"]


def test_lists_of_keys_are_fetched_before_what_they_name(tmp_path: Path) -> None:
    content = random.Random(5).randbytes(6_000_000)
    put_tree(write(tmp_path / "tree", {"huge": content, "small": b"small"}), tmp_path / "st")
    (tmp_path / "out").mkdir()
    with updating(tmp_path / "st", tmp_path / "out") as (update, root):
        ref = update.stream(b"huge")
        assert ref.level == 1
        lists = update.missing.lists(root)
        assert lists
        update.reader.taken()
        update.reader.expand(ref)
        assert update.reader.taken() <= lists
        assert update.missing.lists(None) == lists


small = st.sampled_from(["a", "b", "c/a", "c/b", "c/d/a"])
content = st.tuples(st.integers(0, 3), st.integers(0, 60_000)).map(
    lambda drawn: NOISE[drawn[0] * 300_000 : drawn[0] * 300_000 + 2_000 + drawn[1]]
)
trees = st.dictionaries(small, content, max_size=5)


@settings(deadline=None, max_examples=examples(40))
@given(st.lists(trees, min_size=1, max_size=3), trees, st.booleans())
def test_frames_and_known_chunks_are_enough(
    versions: list[dict[str, bytes]], here: dict[str, bytes], as_first: bool
) -> None:
    """Whatever DST has, what it lacks is read from the planned frames and from itself alone."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        for version in versions:
            shutil.rmtree(top / "tree", ignore_errors=True)
            put_tree(write(top / "tree", version), top / "st")
        out = write(top / "out", {**(versions[0] if as_first else {}), **here})
        for number, file in enumerate(sorted(one for one in out.rglob("*") if one.is_file())):
            if number % 2:
                os.utime(file)
        with updating(top / "st", out) as (update, root):
            planned = update.missing.frames(root)
            update.reader.taken()
            for path, wanted in versions[-1].items():
                now = out / path
                is_same = now.is_file() and (now.stat().st_size, now.stat().st_mtime_ns) == (len(wanted), OLD)
                if not is_same:
                    assert update.read(os.fsencode(path)) == wanted
                    assert update.reader.taken() <= planned
