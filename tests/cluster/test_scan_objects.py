"""Slices of a scan of objects as tasks: merged, they are one scan. Credentials stay where they are."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.errors import UsageError
from rdc.survey.report.terminal import scan_json
from tests.cluster.failing_executors import InThreads
from tests.cluster.plain_content import plain
from tests.support.object_server import SECRET, Bucket, object_server


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with object_server(tmp_path_factory.mktemp("store")) as bucket:
        yield bucket


def process_pool() -> Executor:
    """Workers have the environment of now, in which the server is. One that forks others may be older."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_slices_in_processes(bucket: Bucket, tmp_path: Path) -> None:
    for number in range(24):
        bucket.put(f"tree/d{number % 5}/{number}.txt", b"%d" % (number % 7) * 30_000)
    (tmp_path / "file").write_bytes(b"3" * 30_000)
    (tmp_path / "out").mkdir()
    paths = ["s3://corpus/tree", str(tmp_path / "file")]
    parts = rdc.scan_parts(paths, process_pool, 4, tmp_path / "out")
    assert scan_json(rdc.merge(parts)) == scan_json(rdc.scan(paths, catalog=None))
    for part in parts:
        content = plain(Path(part).read_bytes())
        assert SECRET.encode() not in content
        assert b"access-key" not in content
    # What was done stays, and what cannot be is said before a worker begins.
    assert rdc.scan_parts(paths, process_pool, 4, tmp_path / "out") == parts
    with pytest.raises(UsageError, match=r"^s3://corpus/tree: -x is for file systems"):
        rdc.scan_parts(paths, process_pool, 4, tmp_path / "new", rdc.ScanOptions(one_file_system=True))
    with pytest.raises(UsageError, match=r"^gs://: expected s3://BUCKET/NAME"):
        rdc.scan_parts("gs://corpus/tree", process_pool, 4, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_no_task_has_a_credential(bucket: Bucket, tmp_path: Path) -> None:
    """Nor has a part, nor what lies beside parts while workers read, such as the list of a walk."""
    for number in range(6):
        bucket.put(f"few/{number}.txt", b"%d few words" % number)
    url, out = "s3://corpus/few", tmp_path / "out"
    out.mkdir()

    def contents() -> list[bytes]:
        return [plain(path.read_bytes()) for path in out.rglob("*") if path.is_file()]

    class Seen(InThreads):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            tasks.append(pickle.dumps((args, kwargs)))
            beside.extend(contents())
            return super().submit(fn, *args, **kwargs)

    tasks: list[bytes] = []
    beside: list[bytes] = []
    rdc.merge(rdc.scan_parts(url, Seen(), 3, out))
    parts = rdc.document_parts(url, Seen(), 3, out)
    assert list(rdc.merge_documents(parts).kept) == list(rdc.similar_documents(url).kept)
    named = [*tasks, *contents()]
    assert len(named) == 12
    assert all(url.encode() in content for content in named)
    for content in [*named, *beside]:
        assert SECRET.encode() not in content
        assert b"access-key" not in content
