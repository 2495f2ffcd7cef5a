"""Slices of documents as tasks: merged parts are one search, whatever dies. Checks are those of scans."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

import rdc
from rdc.cluster import slice_task
from rdc.errors import ExitCode, IncompatiblePeerError, OutOfSpaceError, RdcError, StoppedError, UsageError
from rdc.files.own.output_file import Output
from rdc.progress import Event, Problem, Progressed
from tests.cluster.failing_executors import InThreads, killing_pool, process_pool
from tests.documents.corpora import everything
from tests.documents.sliced_corpus import LOOSE, write_corpus


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write_corpus(tmp_path / "tree")
    (tmp_path / "out").mkdir()
    return tmp_path / "tree"


def whole(tree: Path) -> tuple[object, ...]:
    return everything(rdc.similar_documents(tree, LOOSE))


def merged(parts: tuple[str, ...]) -> tuple[object, ...]:
    return everything(rdc.merge_documents(parts, LOOSE))


@pytest.mark.parametrize("make", [process_pool, lambda: ThreadPoolExecutor(3)])
def test_parts_of_an_executor_are_one_search(tree: Path, tmp_path: Path, make: type[Executor]) -> None:
    events: list[Event] = []
    parts = rdc.document_parts(tree, make, 5, tmp_path / "out", LOOSE, reporter=events.append)
    assert merged(parts) == whole(tree)
    names = [f"slice-{number}-of-5.rdcdocs" for number in range(1, 6)]
    assert sorted(os.listdir(tmp_path / "out")) == names
    done = [event for event in events if isinstance(event, Progressed)]
    assert len(done) == 5
    assert done[-1].done == done[-1].total == sum(file.stat().st_size for file in tree.rglob("*.*"))


def test_killed_workers_are_replaced(tree: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    make = killing_pool(tmp_path / "marks", {1, 4})
    parts = rdc.document_parts(tree, make, 6, tmp_path / "out", LOOSE, reporter=events.append)
    assert merged(parts) == whole(tree)
    assert len(os.listdir(tmp_path / "marks")) >= 1
    assert any("a worker died" in event.message for event in events if isinstance(event, Problem))


def test_a_run_goes_on_from_whole_parts(tree: Path, tmp_path: Path) -> None:
    stop = threading.Event()
    pool = InThreads(lambda number: stop.set() if number == 3 else None)
    with pytest.raises(StoppedError):
        rdc.document_parts(tree, pool, 8, tmp_path / "out", LOOSE, stop=stop)
    names = sorted(os.listdir(tmp_path / "out"))
    assert 3 <= len(names) <= 5
    first, second = (tmp_path / "out" / name for name in names[:2])
    content = bytearray(first.read_bytes())
    content[-60] ^= 1
    first.write_bytes(content)
    second.write_bytes(b"")
    again = InThreads()
    assert merged(rdc.document_parts(tree, again, 8, tmp_path / "out", LOOSE)) == whole(tree)
    assert again.submitted == 8 - len(names) + 2


def test_a_part_of_another_search_is_not_replaced(tree: Path, tmp_path: Path) -> None:
    parts = rdc.document_parts(tree, InThreads(), 3, tmp_path / "out", LOOSE)
    before = [Path(part).read_bytes() for part in parts]
    with pytest.raises(
        UsageError, match=r"slice-1-of-3\.rdcdocs: made with other.*--field differs.*another directory"
    ):
        rdc.document_parts(tree, InThreads(), 3, tmp_path / "out", rdc.DocumentOptions(field="body"))
    assert [Path(part).read_bytes() for part in parts] == before
    # A scan of the same tree has parts of other names.
    rdc.merge(rdc.scan_parts(tree, InThreads(), 3, tmp_path / "out"))
    assert [Path(part).read_bytes() for part in parts] == before
    Path(parts[0]).write_bytes(before[1])
    with pytest.raises(UsageError, match=r"slice-1-of-3\.rdcdocs: expected slice 1/3, found another part"):
        rdc.document_parts(tree, InThreads(), 3, tmp_path / "out", LOOSE)


def test_a_worker_without_the_mount_is_refused(tree: Path, tmp_path: Path) -> None:
    def unmount(number: int) -> None:
        if number == 1:
            tree.rename(tmp_path / "elsewhere")
            tree.mkdir()

    with pytest.raises(UsageError, match=r"^slice \d/4: worker .*tree is another directory there than here"):
        rdc.document_parts(tree, InThreads(unmount), 4, tmp_path / "out")


def test_a_worker_with_another_version_is_refused(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_task, "__version__", "9.9")
    with pytest.raises(IncompatiblePeerError, match=r"^worker with rdc 9\.9 on "):
        rdc.document_parts(tree, InThreads(), 2, tmp_path / "out")
    assert os.listdir(tmp_path / "out") == []


def test_a_full_disk_is_reported(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(output: Output, _: object) -> None:
        raise OutOfSpaceError(f"{os.fsdecode(output.path)}: No space left on device")

    monkeypatch.setattr("rdc.documents.slice_part.write_output", full)
    with pytest.raises(
        RdcError, match=r"2 of 2 slices have no part.*slice-\d-of-2.rdcdocs: No space"
    ) as raised:
        rdc.document_parts(tree, InThreads(), 2, tmp_path / "out")
    assert raised.value.code is ExitCode.PARTIAL
    assert os.listdir(tmp_path / "out") == []


def test_bad_arguments_are_named(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="slice 0/0"):
        rdc.document_parts(tree, InThreads(), 0, tmp_path / "out")
    with pytest.raises(UsageError, match="at least one path"):
        rdc.document_parts([], InThreads(), 1, tmp_path / "out")
    with pytest.raises(UsageError, match="threshold 3"):
        rdc.document_parts(tree, InThreads(), 1, tmp_path / "out", rdc.DocumentOptions(threshold=3))
