"""A name becomes a hard link without losing a write, whoever writes when."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import rdc.files.names.name_change
from rdc.errors import FileChangedError, FileError
from rdc.files.base.syscalls import rename_exchange
from rdc.files.base.taking_names import make_durable
from rdc.files.names.leased_files import LeasedFile, same_bytes
from tests.files.names.link_pairs import Pair
from tests.support.trees.saved_files import CONTENT, TIME, replace


def wants_to_write(path: Path) -> None:
    """What a writer's open(2) does to a lease, without waiting for its end."""
    with pytest.raises(BlockingIOError):
        os.open(path, os.O_WRONLY | os.O_NONBLOCK)


@contextmanager
def writing(path: Path, content: bytes) -> Iterator[None]:
    """Somebody opens the file and overwrites its first bytes; waits for a lease as long as it takes. What
    happens here happens while he waits."""
    waiting = threading.Event()

    def write() -> None:
        waiting.set()
        with path.open("r+b") as file:
            file.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    waiting.wait()
    yield
    writer.join()


def await_break(held: LeasedFile) -> None:
    while held.is_intact():
        pass


def test_a_link(pair: Pair) -> None:
    before = os.stat(pair.name)
    pair.swap.prepare()
    pair.swap.leave(first=True)
    make_durable([pair.kept.fileno()])
    make_durable([], [pair.swap.directory])
    assert pair.beside.read_bytes() == CONTENT
    pair.swap.finish()
    now = os.stat(pair.name)
    assert now.st_ino == os.stat(pair.place / "kept").st_ino != before.st_ino
    assert now.st_nlink == 2
    assert (now.st_mode, now.st_mtime_ns, now.st_uid) == (before.st_mode, before.st_mtime_ns, before.st_uid)
    assert sorted(os.listdir(pair.place)) == ["kept", "old"]
    assert pair.name.read_bytes() == CONTENT


def test_a_writer_before_the_exchange_keeps_the_file(pair: Pair) -> None:
    with writing(pair.name, b"new"):
        await_break(pair.old)
        pair.swap.prepare()
        with pytest.raises(FileChangedError, match="that it is written to"):
            pair.swap.leave(first=True)
        pair.expect_untouched()
        pair.let_go()
    assert pair.name.read_bytes() == b"new" + CONTENT[3:]
    assert (pair.place / "kept").read_bytes() == CONTENT


def test_a_writer_that_found_the_file_before_the_exchange(pair: Pair) -> None:
    """He waits in open(2) when the names change places; its old name stands for having found it."""
    pair.swap.prepare()
    pair.swap.leave(first=True)
    with writing(pair.beside, b"new"):
        await_break(pair.old)
        with pytest.raises(FileChangedError):
            pair.swap.finish()
        pair.expect_untouched()
        pair.let_go()
    assert pair.name.read_bytes() == b"new" + CONTENT[3:]
    assert (pair.place / "kept").read_bytes() == CONTENT


def test_a_writer_to_the_kept_file(pair: Pair) -> None:
    """What it had when it was compared would else be lost: the old file alone still has it."""
    pair.swap.prepare()
    wants_to_write(pair.place / "kept")
    with pytest.raises(FileChangedError):
        pair.swap.leave(first=True)
    pair.expect_untouched()


def test_a_writer_to_the_link_keeps_what_it_writes_to(pair: Pair) -> None:
    """Who opens the name after the exchange has the kept file, and must find it there when he has written."""
    pair.swap.prepare()
    pair.swap.leave(first=True)
    with writing(pair.name, b"new"):
        await_break(pair.kept)
        pair.swap.finish()
        assert sorted(os.listdir(pair.place)) == ["kept", "old"]
        pair.let_go()
    assert pair.name.read_bytes() == b"new" + CONTENT[3:]
    assert os.stat(pair.name).st_ino == os.stat(pair.place / "kept").st_ino


def test_two_writers_who_found_different_files_under_the_name(pair: Pair) -> None:
    """One before the exchange, one after it: neither loses a byte, and it is said where they are."""
    pair.swap.prepare()
    pair.swap.leave(first=True)
    with writing(pair.beside, b"one"), writing(pair.name, b"two"):
        await_break(pair.old)
        await_break(pair.kept)
        with pytest.raises(FileError, match="both it and the file it became were written to") as caught:
            pair.swap.finish()
        pair.let_go()
    assert pair.beside.name in str(caught.value)
    assert pair.name.read_bytes() == b"two" + CONTENT[3:]
    assert pair.beside.read_bytes() == b"one" + CONTENT[3:]


def test_a_process_that_was_stopped_for_long(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease ran out between look and exchange, and the kept file was written to."""
    times = iter((0.0, 100.0))
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    monkeypatch.setattr(LeasedFile, "describe_change", lambda held: None)
    pair.swap.prepare()
    os.utime(pair.place / "kept", ns=(5, 5))  # as a write would have left it
    with pytest.raises(FileChangedError, match="the file it should become was written to"):
        pair.swap.leave(first=True)
    pair.expect_untouched()


def test_truncation_counts_as_writing(pair: Pair) -> None:
    def truncate() -> None:
        os.truncate(pair.name, 1)

    truncating = threading.Thread(target=truncate)
    truncating.start()
    await_break(pair.old)
    pair.swap.prepare()
    with pytest.raises(FileChangedError):
        pair.swap.leave(first=True)
    pair.let_go()
    truncating.join()
    assert pair.name.read_bytes() == CONTENT[:1]
    assert (pair.place / "kept").read_bytes() == CONTENT


def test_a_file_saved_before_the_exchange(pair: Pair) -> None:
    pair.swap.prepare()
    replace(pair.name, b"saved")
    with pytest.raises(FileChangedError, match="another file in its place"):
        pair.swap.leave(first=True)
    pair.expect_untouched()
    assert pair.name.read_bytes() == b"saved"


def test_a_file_saved_right_before_the_exchange(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody saves a file between the last look and the exchange."""

    def saving(one: bytes, other: bytes, directory: int) -> None:
        monkeypatch.undo()
        replace(pair.name, b"saved")
        rename_exchange(one, other, directory)

    monkeypatch.setattr(rdc.files.names.name_change, "rename_exchange", saving)
    pair.swap.prepare()
    with pytest.raises(FileChangedError, match="another file in its place"):
        pair.swap.leave(first=True)
    pair.expect_untouched()
    assert pair.name.read_bytes() == b"saved"


def test_a_file_saved_after_the_exchange(pair: Pair) -> None:
    pair.swap.prepare()
    pair.swap.leave(first=True)
    replace(pair.name, b"saved")
    pair.swap.finish()
    pair.expect_untouched()
    assert pair.name.read_bytes() == b"saved"


def test_a_file_saved_after_the_exchange_and_a_writer_to_the_one_before(pair: Pair) -> None:
    """The saved file is the last word on what the name holds."""
    pair.swap.prepare()
    pair.swap.leave(first=True)
    wants_to_write(pair.beside)
    replace(pair.name, b"saved")
    with pytest.raises(FileChangedError):
        pair.swap.finish()
    pair.expect_untouched()
    assert pair.name.read_bytes() == b"saved"


@pytest.mark.parametrize("times", [1, 2, 3])
def test_files_saved_while_one_is_put_back(pair: Pair, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right before the exchange, and each of those that put it back, somebody saves a newer one."""
    exchange, saved = rename_exchange, 0

    def saving(one: bytes, other: bytes, directory: int) -> None:
        nonlocal saved
        if saved <= times:
            saved += 1
            replace(pair.name, b"saved %d" % saved)
        exchange(one, other, directory)

    monkeypatch.setattr(rdc.files.names.name_change, "rename_exchange", saving)
    pair.swap.prepare()
    with pytest.raises(FileChangedError):
        pair.swap.leave(first=True)
    pair.expect_untouched()
    assert pair.name.read_bytes() == b"saved %d" % (times + 1)


def test_files_saved_without_end(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is said where the file lies."""
    exchange, saved = rename_exchange, 0

    def saving(one: bytes, other: bytes, directory: int) -> None:
        nonlocal saved
        saved += 1
        replace(pair.name, b"saved %d" % saved)
        exchange(one, other, directory)

    pair.swap.prepare()
    pair.swap.leave(first=True)
    monkeypatch.setattr(rdc.files.names.name_change, "rename_exchange", saving)
    wants_to_write(pair.beside)
    with pytest.raises(FileError, match=r"look at \.rdc-[0-9a-f]{16}\.old beside it"):
        pair.swap.finish()
    found = {path.read_bytes() for path in pair.place.iterdir()}
    assert {b"saved %d" % saved, b"saved %d" % (saved - 1)} <= found


def test_a_file_that_is_gone_before_the_exchange(pair: Pair) -> None:
    pair.swap.prepare()
    pair.name.unlink()
    with pytest.raises(FileChangedError, match="another file in its place"):
        pair.swap.leave(first=True)
    assert os.listdir(pair.place) == ["kept"]


def test_a_name_that_is_removed_while_the_file_goes_back(pair: Pair) -> None:
    """Nobody can tell whether the old or the new file was meant: it comes back."""
    pair.swap.prepare()
    pair.swap.leave(first=True)
    wants_to_write(pair.beside)
    pair.name.unlink()
    with pytest.raises(FileChangedError):
        pair.swap.finish()
    pair.expect_untouched()
    assert pair.name.read_bytes() == CONTENT


@pytest.mark.parametrize("late", [False, True], ids=["before the exchange", "after it"])
@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.chmod(0o600),
        lambda path: os.utime(path, ns=(5, 5)),
        lambda path: os.chown(path, 1, 1),
        lambda path: os.setxattr(path, "user.colour", b"red"),
    ],
    ids=["mode", "mtime", "owner", "attribute"],
)
def test_metadata_that_changes_stays_changed(pair: Pair, late: bool, change: Callable[[Path], None]) -> None:
    pair.swap.prepare()
    if late:
        pair.swap.leave(first=True)
        change(pair.beside)
        with pytest.raises(FileChangedError):
            pair.swap.finish()
    else:
        change(pair.name)
        with pytest.raises(FileChangedError):
            pair.swap.leave(first=True)
    pair.expect_untouched()
    assert os.stat(pair.name).st_ctime_ns > TIME


def test_the_directory_moves(pair: Pair) -> None:
    moved = pair.place.with_name(pair.place.name + "-moved")
    pair.swap.prepare()
    pair.place.rename(moved)
    try:
        pair.swap.leave(first=True)
        pair.swap.finish()
        assert os.stat(moved / "old").st_ino == os.stat(moved / "kept").st_ino
    finally:
        moved.rename(pair.place)


def test_undoing_puts_the_old_file_back(pair: Pair) -> None:
    pair.swap.prepare()
    pair.swap.leave(first=True)
    pair.swap.undo()
    pair.expect_untouched()


def test_comparison_stops_for_a_writer(pair: Pair) -> None:
    wants_to_write(pair.name)
    with pytest.raises(FileChangedError):
        same_bytes(pair.kept, pair.old)
