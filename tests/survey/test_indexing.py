"""TreeIndexer: the catalog knows every file of a tree afterwards, whatever its size and its company."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.catalog.catalog import Catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.small_files import SMALL_BYTES
from rdc.chunking import SYNC_PARAMS
from rdc.files.root.root import Root
from rdc.progress import silent
from rdc.signature.tree import sign
from rdc.survey import indexing
from rdc.survey.indexing import IndexedFiles, TreeIndexer
from rdc.tree import filter_list
from tests.support.children.catalog_child import later
from tests.support.share import examples
from tests.support.storage.slow_storage import SlowStorage

SIZES = st.sampled_from([0, 1, 700, 5_000, SMALL_BYTES, SMALL_BYTES + 1, 600_000])
NAMES = st.sampled_from([b"a", b"b/c", b"b/d", b"e/f/g", b"e/h", b"line\n", b"\xff"])


def index(top: Path, cache: Path, workers: int = 2) -> list[IndexedFiles]:
    root, catalog = Root.open(os.fsencode(top)), Catalog(cache, clock=later)
    signer = FileSigner(catalog=catalog, workers=workers)
    try:
        return list(TreeIndexer(root, filter_list([]), signer, silent).run())
    finally:
        signer.close()
        catalog.close()
        root.close()


def counts(done: list[IndexedFiles], *, known: bool) -> tuple[int, int]:
    """Files and bytes."""
    chosen = [one for one in done if one.known == known and one.error is None]
    return sum(one.files for one in chosen), sum(one.bytes for one in chosen)


def write(top: Path, sizes: dict[bytes, int]) -> dict[bytes, bytes]:
    """Writes files of these sizes below `top`. Returns their contents."""
    found = {name: random.Random(name).randbytes(size) for name, size in sizes.items()}
    for name, content in found.items():
        path = Path(os.fsdecode(os.path.join(os.fsencode(top), name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return found


@settings(max_examples=examples(30), deadline=None)
@given(st.dictionaries(NAMES, SIZES), st.sampled_from([1, 2]), st.sampled_from([1, 3, 512]))
def test_every_file_is_known_afterwards(sizes: dict[bytes, int], workers: int, batch: int) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "BATCH_FILES", batch)
        patch.setattr(indexing, "ALONE_FILES", batch)
        top, cache = Path(place, "top"), Path(place, "cache")
        top.mkdir()
        contents = write(top, sizes)
        total = len(sizes), sum(sizes.values())
        assert counts(index(top, cache, workers), known=False) == total
        assert counts(index(top, cache, workers), known=True) == total
        root, catalog = Root.open(os.fsencode(top)), Catalog(cache, clock=later)
        for name, content in contents.items():
            with root.open_read(name) as source:
                assert catalog.root(source, SYNC_PARAMS) == sign(content, SYNC_PARAMS).root
        catalog.close()
        root.close()


def test_a_file_that_fails_is_one_error_and_the_rest_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "top"
    write(top, {b"%d" % number: 100 for number in range(20)} | {b"large": SMALL_BYTES + 1})
    listed = TreeIndexer._small

    def change(self: TreeIndexer, *words: Any) -> object:
        found = list(listed(self, *words))
        (top / "3").unlink()
        (top / "4").write_bytes(b"longer by now" * 100)
        (top / "large").unlink()
        return iter(found)

    monkeypatch.setattr(TreeIndexer, "_small", change)
    done = index(top, tmp_path / "cache")
    assert sorted(one.error.path_bytes for one in done if one.error is not None) == [b"3", b"large"]
    assert counts(done, known=False) == (19, 18 * 100 + 1_300)


def test_few_files_wait_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither many large files nor many that fail gather until the end of the walk."""
    monkeypatch.setattr(indexing, "ALONE_FILES", 4)
    monkeypatch.setattr(indexing, "BATCH_FILES", 4)
    monkeypatch.setattr(indexing, "SMALL_BYTES", 50)
    top = tmp_path / "top"
    write(top, {b"%d/%s" % (number, name): len(name) * 30 for number in range(40) for name in (b"a", b"bc")})
    waiting = 0
    wait = TreeIndexer._wait

    def watched(self: TreeIndexer, path: bytes, size: int) -> None:
        nonlocal waiting
        wait(self, path, size)
        waiting = max(waiting, len(self._alone))

    monkeypatch.setattr(TreeIndexer, "_wait", watched)
    assert counts(index(top, tmp_path / "cache"), known=False) == (80, 40 * 90)
    # Batches in work, each with the large files of the directories between it and the next.
    assert waiting <= 24


@pytest.mark.parametrize("depth", [1, 12])
def test_small_files_are_opened_as_many_at_a_time_as_depth_says(tmp_path: Path, depth: int) -> None:
    top, storage = tmp_path / "top", tmp_path / "storage"
    storage.mkdir()
    write(top, {b"%d" % number: 100 for number in range(100)})
    ran = SlowStorage(storage).run(
        "index", "-q", f"--catalog={tmp_path / 'cache'}", f"--depth={depth}", top, open=2000
    )
    assert (ran.code, ran.errors) == (0, "")
    assert depth * 3 // 4 <= ran.deepest <= depth
