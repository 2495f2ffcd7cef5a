"""Roots of the source's files: those that signing each gives; what cannot be read is named."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rdc.catalog.signer import FileSigner
from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.store import NoCatalog, SignedFiles, SmallFiles
from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode, ProtocolError
from rdc.files.bulk.open_many import OpenedFiles
from rdc.files.root.root import Root
from rdc.protocol.messages import FileFailed
from rdc.session.runtime.commands import Command, Send
from rdc.session.source import answers as module
from rdc.session.source.answers import FileRoots, Rooted, SourceSignatures
from rdc.signature.tree import sign
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.walk import Walk
from tests.support.trees.descriptors import open_descriptors


class Told(NoCatalog):
    """A catalog that knows nothing, and counts what it is told of."""

    def __init__(self) -> None:
        self.small = 0

    def put_small(self, files: SmallFiles, signed: SignedFiles, chosen: Sequence[int], began: int) -> None:
        self.small += len(chosen)


class Case:
    """Files that were listed, and may be others by now."""

    def __init__(self, place: Path, contents: Sequence[bytes]) -> None:
        self.place = place
        for number, content in enumerate(contents):
            (place / f"{number:03}").write_bytes(content)
        self.root = Root.open(os.fsencode(place))
        manifest = Manifest()
        for path, packed, _ in Walk(self.root, FilterList(()), lambda _: None):
            manifest.add(path, packed)
        description: Any = SimpleNamespace(manifest=manifest)
        self.catalog = Told()
        signer = FileSigner(catalog=self.catalog, workers=1)
        files = SourceSignatures(self.root, description, signer)
        self.roots = FileRoots(self.root, description, signer, files)

    def find(self, files: Sequence[int], *, keep: bool = False) -> tuple[Rooted, list[FileFailed]]:
        failed: list[FileFailed] = []
        work = self.roots.find(files, 5, keep=keep)
        while True:
            try:
                step: Command = next(work)
            except StopIteration as stop:
                return stop.value, failed
            assert isinstance(step, Send)
            assert isinstance(step.message, FileFailed)
            assert step.round == 5
            failed.append(step.message)


def gone(path: Path) -> None:
    path.unlink()


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def written(path: Path) -> None:
    """With the size and the mtime that were listed."""
    before = path.stat()
    path.write_bytes(b"z" * before.st_size)
    os.utime(path, ns=(0, before.st_mtime_ns))


def linked(path: Path) -> None:
    """To a file that was not listed, which must not be told of."""
    path.unlink()
    path.symlink_to("/etc/passwd")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def kept(path: Path) -> None:
    pass


CHANGES = [kept, kept, written, longer, gone, linked, directory]

contents = st.integers(0, 9).map(lambda seed: random.Random(seed).randbytes(seed * 7)) | st.sampled_from(
    [bytes(SMALL_BYTES), bytes(SMALL_BYTES + 1)]
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bounds that a dozen files reach."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "OPENED_FILES_LEAST", 2)
        patch.setattr(module, "most_opened", lambda: 5)
        yield


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(contents, *[st.sampled_from(CHANGES)] * 2), min_size=1, max_size=12), st.data())
def test_roots_are_of_what_is_there_when_they_are_asked_for(
    few: None, tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    """Asked twice, of any files and whether the catalog is to be told or not."""
    case = Case(tmp_path_factory.mktemp("place"), [content for content, *_ in drawn])
    for turn in (1, 2):
        for path, change in zip(sorted(case.place.iterdir()), [one[turn] for one in drawn], strict=False):
            if path.is_file() and not path.is_symlink():
                change(path)
        files = sorted(data.draw(st.sets(st.integers(0, len(drawn) - 1), min_size=1)))
        found, failed = case.find(files, keep=data.draw(st.booleans()))
        paths = [case.place / f"{file:03}" for file in files]
        readable = [path.is_file() and not path.is_symlink() for path in paths]
        there = [path.read_bytes() for path, good in zip(paths, readable, strict=True) if good]
        assert found.files == [file for file, good in zip(files, readable, strict=True) if good]
        assert found.sizes == [len(content) for content in there]
        assert found.roots == b"".join(sign(content, SYNC_PARAMS).root for content in there)
        assert [one.file for one in failed] == sorted(set(files) - set(found.files))
        assert all(one.code is not ExitCode.OK and f"{one.file:03}" in one.message for one in failed)


def test_small_files_are_read_once_and_told_of_where_that_is_wanted(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path, [b"%d" % row for row in range(10)])
    before = open_descriptors()
    first, _ = case.find(range(10))
    assert open_descriptors() == before
    assert case.catalog.small == 0
    assert case.find(range(10), keep=True)[0] == first
    assert case.catalog.small == 10
    (tmp_path / "003").write_bytes(b"4")
    read: list[int] = []
    read_rows = OpenedFiles.read

    def counted(self: OpenedFiles, rows: Sequence[int]) -> tuple[bytes, bytes]:
        assert len(self) <= 5
        read.append(len(rows))
        return read_rows(self, rows)

    monkeypatch.setattr(OpenedFiles, "read", counted)
    again, _ = case.find(range(10))
    assert (again.roots[4 * 32 : 5 * 32], again.roots[: 3 * 32]) == (
        again.roots[3 * 32 : 4 * 32],
        first.roots[: 3 * 32],
    )
    assert sum(read) == 1


def test_of_a_large_tree_the_catalog_remembers(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 bytes an entry are too much here then."""
    monkeypatch.setattr(module, "ROOTS_REMEMBERED", 3)
    case = Case(tmp_path, [b"%d" % row for row in range(4)])
    case.find(range(4))
    assert case.catalog.small == 4


@pytest.mark.parametrize("more", [[], [0, 1, 2]], ids=["singly", "many"])
@pytest.mark.parametrize("wrong", [4, 5, 1 << 40], ids=["directory", "end", "nowhere"])
def test_what_was_not_listed_as_a_file_is_not_opened(
    few: None, tmp_path: Path, more: list[int], wrong: int
) -> None:
    (tmp_path / "a directory").mkdir()
    case = Case(tmp_path, [b"x"] * 4)
    with pytest.raises(ProtocolError, match="no listed regular file"):
        case.find([*more, wrong])
