"""A source that does not hold still: the destination gets what the source once was, or keeps what it had."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, FileChangedError, ProtocolError
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import NodeRequest
from rdc.session.runtime.commands import Conversation
from rdc.session.source import answers as asked_files_module
from rdc.session.source.answers import FileAnswers
from rdc.session.transfer import compare as file_comparison_module
from rdc.session.transfer.delta import DeltaFile
from tests.support.running.syncing import Way, command, run_sync
from tests.support.trees.trees import File, describe, litter, read_tree, tree, write_tree

SIZE = 3 << 20
BEFORE = random.Random(1).randbytes(SIZE)
AFTER = BEFORE[: SIZE // 3] + b"inserted" + BEFORE[SIZE // 3 : SIZE // 2] + BEFORE[SIZE // 2 + 100 :]
TICK = 0.02
"""Seconds. More than the kernel's step of file times: two changes in one step cannot be told apart."""


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more" * 1000)


def shrink(path: Path) -> None:
    os.truncate(path, SIZE // 2)


def rewrite(path: Path) -> None:
    """Other bytes in the middle; size and mtime as before."""
    found = path.stat()
    with path.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"other bytes")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def exchange(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"another file")
    other.replace(path)


def vanish(path: Path) -> None:
    path.unlink()


def become_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def state(path: Path) -> File | None:
    if not path.is_file():
        return None
    found = path.stat()
    return File(path.read_bytes(), found.st_mode & 0o7777, found.st_mtime_ns)


MUTATIONS = [grow, shrink, rewrite, exchange, vanish, become_a_directory]

HELD = {"new": None, "another version": AFTER, "the same content": BEFORE}


@pytest.mark.parametrize("at", (0, 1, 2, 3, 5, 8))
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("held", HELD)
def test_changed_at_any_read(
    held: str, mutate: Callable[[Path], None], at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source's n-th read of the file is preceded by the change."""
    source = write_tree(tmp_path / "source", tree({"f": BEFORE, "g": b"still"}))
    old = HELD[held]
    destination = write_tree(
        tmp_path / "destination", tree({} if old is None else {"f": File(old, 0o600, 1)})
    )
    changing = source / "f"
    states = [state(destination / "f"), state(changing)]
    time.sleep(TICK)
    reads = 0
    pread = SourceFile.pread
    identity = os.stat(changing)

    def changed_pread(self: SourceFile, offset: int, length: int) -> bytes:
        nonlocal reads
        if self.identity.inode == identity.st_ino:
            if reads == at:
                mutate(changing)
                states.append(state(changing))
            reads += 1
        return pread(self, offset, length)

    monkeypatch.setattr(SourceFile, "pread", changed_pread)
    run = run_sync(source, destination, SyncOptions(fsync=False))
    monkeypatch.undo()

    found = read_tree(destination)
    assert litter(found) == []
    assert found.get(b"f") in states
    assert isinstance(found[b"g"], File)
    assert run.done.exit in {ExitCode.OK, ExitCode.VANISHED}
    assert bool(run.problems) == (run.done.exit != ExitCode.OK)
    assert all("f: " in problem.message for problem in run.problems)
    if found.get(b"f") == states[0] != states[1]:
        assert run.done.exit == ExitCode.VANISHED

    after = run_sync(source, destination, SyncOptions(delete=True, fsync=False))
    assert after.done.exit == ExitCode.OK
    assert describe(read_tree(source), read_tree(destination)) == []


@pytest.mark.parametrize("mutate", [vanish, become_a_directory])
@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("words", [[], ["-c"]])
def test_gone_between_listing_and_reading(
    words: list[str],
    held: str,
    mutate: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = write_tree(tmp_path / "source", tree({"f": BEFORE, "g": b"still", "d/h": b"still"}))
    old = HELD[held]
    before = tree({} if old is None else {"f": File(old, 0o600, 1)})
    destination = write_tree(tmp_path / "destination", before)
    open_read = Root.open_read

    def open_gone(self: Root, path: bytes) -> SourceFile:
        if self.label == os.fsencode(source) + b"/" and path == b"f" and (source / "f").is_file():
            mutate(source / "f")
        return open_read(self, path)

    monkeypatch.setattr(Root, "open_read", open_gone)
    ended = command("sync", *words, f"{source}/", destination)
    assert ended.code == ExitCode.VANISHED
    assert len(ended.complaints) == 1 and f"{source}/f: cannot open it" in ended.complaints[0]
    found = read_tree(destination)
    assert found.get(b"f") == before.get(b"f")
    assert {b"g", b"d/h"} <= set(found) and litter(found) == []


@pytest.mark.usefixtures("fewest_bytes")
def test_changed_between_its_tree_and_its_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source has forgotten the tree it answered with, and signs the changed file anew."""
    monkeypatch.setattr(asked_files_module, "SOURCE_TREES_BYTES", 1)
    wanted = {name: random.Random(name).randbytes(1 << 20) for name in ("a", "b")}
    source = write_tree(tmp_path / "source", tree(wanted))
    held = {name: File(b"x" + content[:-50_000], 0o644, 1) for name, content in wanted.items()}
    destination = write_tree(tmp_path / "destination", tree(held))
    time.sleep(TICK)
    send_nodes = FileAnswers._send_nodes

    def send_changed_nodes(self: Any, *arguments: Any) -> object:
        (source / "a").write_bytes(b"short now")
        return send_nodes(self, *arguments)

    monkeypatch.setattr(FileAnswers, "_send_nodes", send_changed_nodes)
    run = run_sync(source, destination)
    assert run.done.exit == ExitCode.VANISHED
    assert [problem.path_bytes for problem in run.problems] == [b"a"]
    found = read_tree(destination)
    assert (found[b"a"], found[b"b"]) == (held["a"], File(wanted["b"]))


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize("refused", [1, 99], ids=["one", "all"])
def test_of_several_requests_for_nodes_one_fails(
    refused: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers to the others are nobody's any more: the file alone fails, and is told of once."""
    monkeypatch.setattr(file_comparison_module, "NODES_PER_MESSAGE", 1)
    wanted = {name: random.Random(name).randbytes(2 << 20) for name in ("a", "b")}
    source = write_tree(tmp_path / "source", tree(wanted))
    held = {name: File(content.replace(b"\x01\x02", b""), 0o644, 1) for name, content in wanted.items()}
    destination = write_tree(tmp_path / "destination", tree(held))
    send_nodes = FileAnswers._send_nodes
    asked: list[NodeRequest] = []

    def failing(self: FileAnswers, message: NodeRequest, round_: int) -> Conversation[None]:
        if message.file == 0:
            asked.append(message)
            if len(asked) <= refused:
                raise FileChangedError(b"a", "a: changed")
        yield from send_nodes(self, message, round_)

    monkeypatch.setattr(FileAnswers, "_send_nodes", failing)
    run = run_sync(source, destination)
    assert len(asked) > 1
    assert [problem.path_bytes for problem in run.problems] == [b"a"]
    found = read_tree(destination)
    assert (found[b"a"], found[b"b"]) == (held["a"], File(wanted["b"]))


@pytest.mark.parametrize("way", list(Way))
def test_a_file_that_grows_all_the_time(way: Way, tmp_path: Path) -> None:
    source, destination = tmp_path / "source", tmp_path / "destination"
    write_tree(source, tree({"log": BEFORE[:1000], "still": b"s"}))
    destination.mkdir()
    stop = threading.Event()

    def write() -> None:
        rng = random.Random(2)
        with (source / "log").open("ab", buffering=0) as log:
            while not stop.wait(0.001):
                # By so little in the end that runs that take long have not ever more to do.
                log.write(rng.randbytes(rng.choice((10, 1000, 20_000)) if log.tell() < 8 << 20 else 10))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        codes, versions = set(), []
        for _ in range(60 if way is Way.HERE else 5):
            codes.add(run_sync(source, destination, SyncOptions(fsync=False), way=way).done.exit)
            found = read_tree(destination)
            assert litter(found) == [] and b"still" in found
            if b"log" in found:
                versions.append((destination / "log").read_bytes())
    finally:
        stop.set()
        writer.join()
    assert codes <= {ExitCode.OK, ExitCode.VANISHED}
    final = (source / "log").read_bytes()
    assert all(final.startswith(version) for version in versions)
    assert run_sync(source, destination, way=way).done.exit == ExitCode.OK
    assert (destination / "log").read_bytes() == final


@pytest.mark.usefixtures("fewest_bytes")
@pytest.mark.parametrize("half", ["source", "destination"])
def test_either_half_may_give_up_in_one_process(
    half: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither waits for the other for ever, and what is told is why."""

    def fails(*_: object) -> Conversation[None]:
        raise ProtocolError("made up")
        yield

    owner, name = {
        "source": (FileAnswers, "_send_tree"),
        "destination": (DeltaFile, "_take_tree"),
    }[half]
    monkeypatch.setattr(owner, name, fails)
    source = write_tree(tmp_path / "source", tree({"f": b"newer" * 20_000}))
    destination = write_tree(tmp_path / "destination", tree({"f": b"old" * 20_000}))
    with pytest.raises(ProtocolError, match="made up"):
        run_sync(source, destination, SyncOptions(fsync=False), way=Way.HERE)
    assert (destination / "f").read_bytes() == b"old" * 20_000
