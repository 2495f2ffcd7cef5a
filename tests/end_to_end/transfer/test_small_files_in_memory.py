"""Small files are in memory between the questions about them: opened once a side, no change unseen."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, FileChangedError
from rdc.files.bulk.open_many import MemoryFile
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Role, TreeAnswer
from rdc.session.source import answers as asked_files_module
from rdc.session.source.answers import SourceSignatures
from rdc.session.transfer import bases as bases_module
from rdc.session.transfer.bases import Bases
from rdc.session.transfer.compare import Steps
from rdc.session.transfer.delta import DeltaFile
from tests.support.running.paired_sync import Remembering, sync_in_turns

FILES = 5
LENGTH = 40_000


def contents(number: int) -> tuple[bytes, bytes]:
    """Two versions of a file, alike but for two edits."""
    old = random.Random(number).randbytes(LENGTH)
    return old, old[:9000] + b"inserted" + old[9000:25_000] + old[25_300:]


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    source, destination = tmp_path / "src", tmp_path / "dst"
    for directory, version in ((source, 1), (destination, 0)):
        directory.mkdir()
        for number in range(FILES):
            (directory / f"f{number}").write_bytes(contents(number)[version])
    return source, destination


@pytest.fixture
def opens(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often files were opened for reading, by the directory they are in."""
    counted: Counter[str] = Counter()
    open_read = Root.open_read

    def counting(self: Root, path: bytes) -> SourceFile:
        counted[Path(os.fsdecode(self.label)).name] += 1
        return open_read(self, path)

    monkeypatch.setattr(Root, "open_read", counting)
    return counted


def arrived(trees: tuple[Path, Path]) -> bool:
    return all((trees[1] / f"f{number}").read_bytes() == contents(number)[1] for number in range(FILES))


def test_each_is_opened_once_a_side(trees: tuple[Path, Path], opens: Counter[str]) -> None:
    run = sync_in_turns(*trees)
    assert arrived(trees)
    assert run.done.reused_bytes > FILES * LENGTH * 0.9
    assert opens == {"src": FILES, "dst": FILES}


@pytest.mark.parametrize("room", (0, 3 * LENGTH))
def test_beyond_the_bound_they_are_opened_again(
    trees: tuple[Path, Path], opens: Counter[str], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    held: list[int] = []
    take = DeltaFile._take_tree

    def taking(self: DeltaFile) -> Steps[TreeAnswer]:
        tree = yield from take(self)
        held.append(self._shared.bases.cached_bytes)
        return tree

    monkeypatch.setattr(DeltaFile, "_take_tree", taking)
    for module in (asked_files_module, bases_module):
        monkeypatch.setattr(module, "CACHED_CONTENT_BYTES", room)
    sync_in_turns(*trees)
    assert arrived(trees)
    assert min(opens.values()) > FILES
    assert max(held) <= room


def rewrite(path: Path) -> None:
    """Other bytes, of the same number."""
    path.write_bytes(random.Random(99).randbytes(path.stat().st_size))
    os.utime(path, (2_000_000_000, 2_000_000_000))


def exchange(path: Path) -> None:
    path.with_name("other").write_bytes(b"another file")
    path.with_name("other").replace(path)


@pytest.mark.parametrize("mutate", (rewrite, exchange, Path.unlink), ids=lambda f: f.__name__)
def test_a_source_that_changes_after_its_tree_was_sent_is_named(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, mutate: Callable[[Path], None]
) -> None:
    sign = SourceSignatures.sign_whole

    def signing(self: SourceSignatures, file: int, source: SourceFile) -> object:
        found = sign(self, file, source)
        if source.path == b"f2":
            mutate(trees[0] / "f2")
        return found

    monkeypatch.setattr(SourceSignatures, "sign_whole", signing)
    run = sync_in_turns(*trees)
    assert [(problem.code, problem.path_bytes) for problem in run.problems] == [(ExitCode.VANISHED, b"f2")]
    for number in range(FILES):
        kept = number == 2
        assert (trees[1] / f"f{number}").read_bytes() == contents(number)[not kept]


@pytest.mark.parametrize("mutate", (rewrite, exchange), ids=lambda f: f.__name__)
def test_a_base_that_changes_after_it_was_signed_stays(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, mutate: Callable[[Path], None]
) -> None:
    sign = Bases.sign
    mutated: list[bool] = []

    def signing(self: Bases, state: Any, round_: int) -> object:
        yield from sign(self, state, round_)
        if state.path == b"f2" and not mutated:
            mutated.append(True)
            mutate(trees[1] / "f2")

    monkeypatch.setattr(Bases, "sign", signing)
    run = sync_in_turns(*trees)
    assert mutated
    assert [problem.path_bytes for problem in run.problems] == [b"f2"]
    assert (trees[1] / "f2").read_bytes() not in contents(2)
    assert not sync_in_turns(*trees).problems
    assert arrived(trees)


def test_what_is_held_says_what_the_file_said_and_whether_it_still_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    root = Root.open(os.fsencode(tmp_path))
    with root.open_read(b"file") as source:
        held = MemoryFile(root, b"file", source.identity, source.whole())
    assert (held.pread(3, 4), held.size, held.path) == (b"tent", 7, b"file")
    held.check_unchanged()
    with pytest.raises(FileChangedError):
        held.pread(3, 5)
    rewrite(path)
    with pytest.raises(FileChangedError):
        held.check_unchanged()
    path.unlink()
    with pytest.raises(FileChangedError):
        held.check_unchanged()
    root.close()


def test_the_catalog_is_not_told_of_what_is_replaced(trees: tuple[Path, Path]) -> None:
    class Told(Remembering):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        def put(self, source: SourceFile, tree: object, began: int) -> None:
            self.sizes.append(source.size)

    (trees[0] / "f4").write_bytes(contents(4)[0])  # touched, and the same
    told = Told()
    sync_in_turns(*trees, SyncOptions(fsync=False), dialler=Role.DESTINATION, catalog=told)
    assert told.sizes == [LENGTH]
