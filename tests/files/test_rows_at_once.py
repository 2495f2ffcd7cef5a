"""Files of one call at a depth: results in order, whatever becomes of single files, calls and threads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rdc.files.depth import WAIT_NANOSECONDS
from rdc.limits import DEPTH_LIMIT
from tests.support.project_paths import TOP
from tests.support.storage.slow_storage import SlowStorage
from tests.support.trees.trees import File, read_tree, tree, write_tree

FILES = 300


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> SlowStorage:
    return SlowStorage(tmp_path_factory.mktemp("native"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Small files of several directories, one of them empty and one large."""
    made: dict[str, File] = {f"d{i % 3}/f{i:03}": File(b"%d" % i * i) for i in range(FILES)}
    made["d1/large"] = File(bytes(range(256)) * 2000)
    write_tree(tmp_path / "source", tree(made))
    return tmp_path / "source"


RUNS = 10
"""Runs of which one has to show what others on the machine may prevent."""


def copied_at(storage: SlowStorage, wanted: int, source: Path, top: Path, *words: str, **waits: Any) -> int:
    """Most calls that were in flight in one of RUNS first copies; the first that has `wanted` is the last."""
    deepest = 0
    for number in range(RUNS):
        copy = top / f"copy{number}"
        ran = storage.run("sync", "--no-fsync", *words, f"{source}/", copy, **waits)
        assert ran.code == 0, ran.errors
        assert read_tree(copy) == read_tree(source)
        deepest = max(deepest, ran.deepest)
        if deepest >= wanted:
            break
    return deepest


def test_the_bounds_are_those_of_the_header() -> None:
    header = (TOP / "rdc/files/depth/rows_at_once.h").read_text()
    assert re.findall(r"RDC_DEPTH_LIMIT (\d+)", header) == [str(DEPTH_LIMIT)]
    assert re.findall(r"RDC_WAIT_NANOSECONDS (\d+)", header) == [str(WAIT_NANOSECONDS)]


def test_no_thread_where_nothing_waits(storage: SlowStorage, source: Path, tmp_path: Path) -> None:
    """The one thread that is started is the source of a local sync. A disk that others keep busy may make one
    wait, but not each of the runs."""
    started = []
    for number in range(RUNS):
        copy = tmp_path / f"copy{number}"
        ran = storage.run("sync", "--no-fsync", f"{source}/", copy)
        assert ran.code == 0, ran.errors
        assert read_tree(copy) == read_tree(source)
        started.append(ran.threads)
        if ran.threads == 1:
            break
    assert started[-1] == 1, started


@pytest.mark.parametrize("words", [(), ("--depth=16",)])
def test_calls_that_wait_are_made_at_the_same_time(
    storage: SlowStorage, source: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert copied_at(storage, 16, source, tmp_path, *words, open=2000) >= 16
    # One at a time, the files alone would take 1.2 s.
    alone = storage.run("sync", "--no-fsync", "--depth=1", f"{source}/", tmp_path / "other", open=2000)
    assert (alone.code, alone.threads) == (0, 1), alone.errors
    assert alone.deepest <= 2


@pytest.mark.parametrize("side", ["written", ".rdc-"])
def test_directories_of_one_file_do_not_wait_for_each_other(
    storage: SlowStorage, tmp_path: Path, side: str
) -> None:
    """Neither where their files are read nor where they are written, under names aside."""
    write_tree(tmp_path / "source", tree({f"d{i:02}/written": File(b"%d" % i) for i in range(64)}))
    deepest = copied_at(storage, 16, tmp_path / "source", tmp_path, "--depth=16", open=20_000, name=side)
    assert deepest == 16


def test_one_slow_file_holds_up_no_others(storage: SlowStorage, source: Path, tmp_path: Path) -> None:
    """With fixed shares the neighbours of the slow file would wait for it: then the others are not staged."""
    script = """
import os, sys, threading, time
from rdc.files.bulk.open_many import OpenedFiles
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
root = Root.open(os.fsencode(sys.argv[1]))
root = root.having(ReadPolicy(depth=4))
paths = [b"d0/f%03d\\0" % i for i in range(0, 300, 3)]
begun = time.monotonic()
with OpenedFiles(root, b"".join(paths)) as opened:
    print(time.monotonic() - begun, len(opened.failed), *opened.sizes)
"""
    # The slow file takes 400 ms, the 99 others none.
    fastest = 99.0
    for _ in range(RUNS):
        ran = storage.run_python("-c", script, source, open=400_000, name="d0/f033")
        assert ran.code == 0, ran.errors
        seconds, failed, *sizes = ran.output.split()
        assert failed == "0"
        assert [int(size) for size in sizes] == [len(b"%d" % i) * i for i in range(0, FILES, 3)]
        fastest = min(fastest, float(seconds))
        if fastest < 2 * 0.4:
            return
    pytest.fail(f"it takes {fastest} s at best, as if others had waited")


def test_no_descriptor_is_free(storage: SlowStorage, source: Path) -> None:
    """Such a file counts as failed, so that the caller repeats it alone. Fewer are tried from then on."""
    script = """
import os, sys
from rdc.files.bulk.open_many import OpenedFiles
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
root = Root.open(os.fsencode(sys.argv[1]))
root = root.having(ReadPolicy(depth=32))
paths = b"".join([b"d0/f%03d\\0" % i for i in range(0, 300, 3)])
found = []
for _ in range(4):
    with OpenedFiles(root, paths) as opened:
        found += [root.depths.opening.now, len(opened.failed)]
print(*found)
"""
    ran = storage.run_python("-c", script, source, open=2000, most_open=6)
    assert ran.code == 0, ran.errors
    found = [int(word) for word in ran.output.split()]
    assert found[::2] == [16, 8, 4, 4]
    assert found[1] > 0
    assert found[7] == 0


def test_a_sync_with_few_descriptors(storage: SlowStorage, source: Path, tmp_path: Path) -> None:
    """Both sides together try 64 files at once, then 32."""
    words = ("sync", "--no-fsync", "--depth=32", f"{source}/", tmp_path / "copy")
    ran = storage.run(*words, open=1000, most_open=40)
    assert ran.code == 0, ran.errors
    assert read_tree(tmp_path / "copy") == read_tree(source)


def test_no_thread_may_be_started(storage: SlowStorage, source: Path, tmp_path: Path) -> None:
    """A limit of a cgroup does this. A sync between processes starts no thread of its own."""
    script = """
import os, sys
from rdc.files.bulk.open_many import look
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
root = Root.open(os.fsencode(sys.argv[1]))
root = root.having(ReadPolicy(depth=16))
found = look(root, [b"d0/f%03d" % i for i in range(0, 300, 3)])
print(root.depths.opening.now, len(found.content), None in found.identities)
"""
    ran = storage.run_python("-c", script, source, no_thread=1)
    assert ran.code == 0, ran.errors
    total = sum(len(b"%d" % i) * i for i in range(0, FILES, 3))
    assert ran.output.split() == ["1", str(total), "False"]
    assert ran.threads == 0
