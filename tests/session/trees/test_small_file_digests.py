"""Roots of many small files at once: those that signing each gives, found and kept by the catalog's rules."""

from __future__ import annotations

import os
import random
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.catalog import small_files as small_roots_module
from rdc.catalog.catalog import Catalog
from rdc.catalog.file_state import FileState, is_unsettled, stamps
from rdc.catalog.signer import FileSigner
from rdc.catalog.small_files import READ_BYTES, SMALL_BYTES, small_roots
from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.chunking import SYNC_PARAMS, ChunkParams
from rdc.files.bulk.open_many import OpenedFiles
from rdc.files.root.root import Root
from rdc.model.entries import Identity
from rdc.session.trees.small_file_digests import TOGETHER_BYTES, small_file_digests
from rdc.signature.tree import DIGEST_BYTES, sign
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk
from tests.support.children.catalog_child import later
from tests.support.share import examples
from tests.support.trees.descriptors import open_descriptors

PARAMS = ChunkParams(64, 256)
"""So that files of some kilobytes have several levels."""

BORDERS = (0, 1, 63, 64, 65, 255, 256, 257, 511, 512, 513, 5_000, 6_700, 20_000, 60_000, SMALL_BYTES)


def write(top: Path, contents: dict[str, bytes]) -> Root:
    for name, content in contents.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
    return Root.open(os.fsencode(top))


def roots_of(
    root: Root, contents: dict[str, bytes], params: ChunkParams, store: SignatureStore, *, keep: bool = True
) -> list[bytes]:
    paths = b"".join(os.fsencode(name) + b"\0" for name in contents)
    sizes = array("Q", map(len, contents.values()))
    with small_roots(root, paths, sizes, params, store, keep=keep) as found:
        return split(found.roots, found.missing)


def split(column: bytes, missing: Sequence[int]) -> list[bytes]:
    """One a file, b"" of those without."""
    roots = [column[at : at + DIGEST_BYTES] for at in range(0, len(column), DIGEST_BYTES)]
    assert [row for row, root in enumerate(roots) if not any(root)] == list(missing)
    return [root if any(root) else b"" for root in roots]


@pytest.mark.parametrize("params", [PARAMS, SYNC_PARAMS], ids=["small chunks", "of a sync"])
def test_roots_at_all_borders(tmp_path: Path, params: ChunkParams) -> None:
    rng = random.Random(3)
    sizes = {*BORDERS, params.min_size, *(params.max_size + more for more in (-1, 0, 1)), 2 * params.max_size}
    contents = {f"d/{size}": rng.randbytes(size) for size in sizes}
    # Runs of equal chunks, and a level above them.
    contents |= {f"zeros/{size}": bytes(size) for size in sizes}
    contents["zeros/mixed"] = bytes(9_000) + rng.randbytes(9_000) + bytes(9_000)
    found = roots_of(write(tmp_path, contents), contents, params, NoCatalog())
    assert found == [sign(content, params).root for content in contents.values()]
    if params is PARAMS:
        assert max(len(sign(content, params).levels) for content in contents.values()) == 3


@settings(
    deadline=None,
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.tuples(st.integers(0, 9_000), st.sampled_from([b"", b"\0", b"ab", b"\0" * 300 + b"x"])),
        min_size=1,
        max_size=12,
    ),
    st.randoms(use_true_random=False),
)
def test_roots_are_those_of_the_trees(
    tmp_path: Path, shapes: list[tuple[int, bytes]], rng: random.Random
) -> None:
    contents = {
        f"{row}": (pattern * size)[:size] if pattern else rng.randbytes(size)
        for row, (size, pattern) in enumerate(shapes)
    }
    found = roots_of(write(tmp_path, contents), contents, PARAMS, NoCatalog())
    assert found == [sign(content, PARAMS).root for content in contents.values()]


def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"{row:02}": bytes([row]) * (100_000 + row) for row in range(40)}
    held = []
    read = OpenedFiles.read

    def counting(self: OpenedFiles, rows: list[int]) -> tuple[bytes, bytes]:
        found = read(self, rows)
        held.append(len(found[0]))
        return found

    monkeypatch.setattr(OpenedFiles, "read", counting)
    found = roots_of(write(tmp_path, contents), contents, SYNC_PARAMS, NoCatalog())
    assert found == [sign(content, SYNC_PARAMS).root for content in contents.values()]
    assert sum(held) == sum(map(len, contents.values()))
    assert max(held) <= READ_BYTES


def test_what_does_not_go_together_has_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"{row}": b"%d" % row * 100 for row in range(6)}
    root = write(tmp_path, contents)
    (tmp_path / "1").unlink()
    (tmp_path / "1").symlink_to("0")
    (tmp_path / "2").write_bytes(b"longer than it was listed" * 20)
    (tmp_path / "3").unlink()
    read = OpenedFiles.read

    def meddling(self: OpenedFiles, rows: list[int]) -> tuple[bytes, bytes]:
        (tmp_path / "4").write_bytes(b"X" * 100)
        return read(self, rows)

    monkeypatch.setattr(OpenedFiles, "read", meddling)
    found = roots_of(root, contents, PARAMS, NoCatalog())
    good = {0, 5}
    assert found == [
        sign(content, PARAMS).root if row in good else b"" for row, content in enumerate(contents.values())
    ]


def test_the_catalog_is_asked_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"d/{row}": b"%d" % row * 50 for row in range(300)}
    root = write(tmp_path / "t", contents)
    expected = [sign(content, SYNC_PARAMS).root for content in contents.values()]
    part = dict(list(contents.items())[:256])
    asked: list[int] = []
    read = OpenedFiles.read

    def counting(self: OpenedFiles, rows: list[int]) -> tuple[bytes, bytes]:
        asked.extend(rows)
        return read(self, rows)

    monkeypatch.setattr(OpenedFiles, "read", counting)
    with Catalog(tmp_path / "c", clock=later) as catalog:
        assert roots_of(root, part, SYNC_PARAMS, catalog, keep=False) == expected[:256]
        asked.clear()
        assert roots_of(root, part, SYNC_PARAMS, catalog) == expected[:256]
        assert len(asked) == 256
    # Flushed, and opened again: what one way put the other finds, whole and for this state alone.
    with Catalog(tmp_path / "c", clock=later) as catalog:
        asked.clear()
        (tmp_path / "t" / "d" / "7").write_bytes(b"7" * 49 + b"x")
        assert roots_of(root, part, SYNC_PARAMS, catalog) == [
            sign(b"7" * 49 + b"x", SYNC_PARAMS).root if row == 7 else one
            for row, one in enumerate(expected[:256])
        ]
        assert asked == [7]
        with root.open_read(b"d/8") as source:
            tree = catalog.get(source, SYNC_PARAMS)
            assert tree is not None
            assert (tree.root, tree.size) == (expected[8], 50)
        signer = FileSigner(SYNC_PARAMS, catalog)
        for name in ("d/298", "d/299"):
            with root.open_read(os.fsencode(name)) as source:
                signer.sign(source)
        asked.clear()
        others = {name: contents[name] for name in ("d/298", "d/299", "d/9")}
        assert roots_of(root, others, SYNC_PARAMS, catalog) == [expected[298], expected[299], expected[9]]
        assert asked == []


def test_what_is_too_young_is_not_kept(tmp_path: Path) -> None:
    contents = {f"{row}": b"%d" % row for row in range(20)}
    root = write(tmp_path / "t", contents)
    with Catalog(tmp_path / "c") as catalog:
        roots_of(root, contents, SYNC_PARAMS, catalog)
    with Catalog(tmp_path / "c") as catalog:
        assert not catalog.database.read(lambda c: c.execute("SELECT count(*) FROM signature").fetchone()[0])


NUMBERS = st.integers(0, 2**64 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)


@given(
    NUMBERS,
    st.lists(st.tuples(NUMBERS, NUMBERS, TIMES, TIMES, st.binary(min_size=32, max_size=32)), max_size=9),
    TIMES,
)
def test_stamps_of_many_are_those_of_each(
    file_system: int, rows: list[tuple[int, int, int, int, bytes]], began: int
) -> None:
    params = SYNC_PARAMS.id
    assert stamps(file_system, params, rows, began) == [
        FileState(file_system, Identity(5, inode, size, mtime, ctime), params).stamp(
            root, unsettled=is_unsettled(ctime, began)
        )
        for inode, size, mtime, ctime, root in rows
    ]


@pytest.mark.parametrize("built", [True, False], ids=["in C", "without C"])
def test_of_listed_files_the_large_ones_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: bool
) -> None:
    sizes = {"a": 5, "b/c": READ_BYTES + 1, "b/d": 0, "b/e": SMALL_BYTES}
    contents = {name: os.urandom(size) for name, size in sizes.items()}
    root = write(tmp_path, contents)
    manifest = Manifest()
    for path, listing, _ in Walk(root, FilterList(()), lambda _: None):
        manifest.add(path, listing)
    files = [row for name in contents if (row := manifest.row(os.fsencode(name))) is not None]
    if not built:
        monkeypatch.setattr("rdc.session.trees.small_file_digests.can_open", lambda _: False)
    with small_file_digests(root, manifest, files, FileSigner(SYNC_PARAMS, NoCatalog()), keep=True) as found:
        assert found.sizes == list(sizes.values())
        assert split(found.roots, found.missing) == [
            sign(content, SYNC_PARAMS).root if built and len(content) <= READ_BYTES else b""
            for content in contents.values()
        ]
        assert list(found.rows) == ([0, 2, 3] if built else [])


def test_larger_ones_are_taken_too_where_there_are_few(tmp_path: Path) -> None:
    """Up to what is read at a time; next to many bytes of others each is left to be looked at singly."""
    sizes = [READ_BYTES, READ_BYTES + 1, SMALL_BYTES, SMALL_BYTES + 1, *[SMALL_BYTES] * 300]
    contents = {f"{row:03}": bytes([row % 251]) * size for row, size in enumerate(sizes)}
    root, manifest = write(tmp_path, contents), Manifest()
    for path, listing, _ in Walk(root, FilterList(()), lambda _: None):
        manifest.add(path, listing)
    signer = FileSigner(SYNC_PARAMS, NoCatalog())
    for count, missing in ((4, [1]), (len(sizes), [0, 1, 3])):
        assert (sum(sizes[:count]) > TOGETHER_BYTES) == (count > 4)
        files = range(count)
        with small_file_digests(root, manifest, files, signer, keep=True) as found:
            assert list(found.missing) == missing
            assert split(found.roots, found.missing) == [
                b"" if row in missing else sign(contents[f"{row:03}"], SYNC_PARAMS).root for row in files
            ]


def test_an_interruption_closes_what_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {f"{row}": b"%d" % row for row in range(20)}
    root = write(tmp_path, contents)
    before = open_descriptors()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(small_roots_module, "sign_short", interrupted)
    with pytest.raises(KeyboardInterrupt):
        roots_of(root, contents, SYNC_PARAMS, NoCatalog())
    assert open_descriptors() == before
