"""A new version shares with a copy of the old one all that did not change, and is right in every case."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rdc.files.base.syscalls import clone_range
from rdc.files.replace import cloning
from rdc.files.replace.staged_clones import SINGLE_REFUSALS
from rdc.files.root.root import Root
from rdc.model.options import Backup
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import Way, run_sync
from tests.support.trees.reflinks import own_bytes, reflink, rewrite

FAST = SyncOptions(fsync=False)
MIB = 1 << 20
OLD = random.Random(1).randbytes(6 * MIB)


def edited(content: bytes, *places: int) -> bytes:
    new = bytearray(content)
    for at in places:
        new[at : at + 4] = bytes(byte ^ 0x55 for byte in new[at : at + 4])
    return bytes(new)


def synced(top: Path, old: bytes, new: bytes, options: SyncOptions = FAST, way: Way = Way.HERE) -> int:
    """Bytes that the new version does not share with a copy of the old one. Its content is compared."""
    source, target = top / "src", top / "dst"
    source.mkdir(exist_ok=True)
    target.mkdir(exist_ok=True)
    (target / "image").write_bytes(old)
    reflink(target / "image", top / "snapshot")
    rewrite(source / "image", new)
    run_sync(source, target, options, way=way)
    assert (target / "image").read_bytes() == new
    assert (top / "snapshot").read_bytes() == old
    return own_bytes(target / "image")


def test_four_bytes_of_a_long_file(sharing: Path) -> None:
    old = random.Random(2).randbytes(24 * MIB)
    assert synced(sharing, old, edited(old, 13_000_000), SyncOptions()) <= 64 << 10


@pytest.mark.parametrize("way", Way)
def test_whoever_is_the_child(sharing: Path, way: Way) -> None:
    assert synced(sharing, OLD, edited(OLD, 3_000_000), way=way) <= 64 << 10


# Made when a test needs them: all that is here from the start makes each fork of the tests slower.


def whole() -> bytes:
    return OLD


def odd() -> bytes:
    """With a tail of less than a block."""
    return OLD[:-77]


def with_zeros() -> bytes:
    return OLD[: 2 * MIB] + bytes(2 * MIB) + OLD[2 * MIB :]


def twice() -> bytes:
    return OLD * 2


@pytest.mark.parametrize(
    ("base", "change", "most"),
    [
        pytest.param(
            whole, lambda old: edited(old, *range(9000, 6 * MIB, MIB // 4)), 24 * (8 << 10), id="many edits"
        ),
        pytest.param(whole, lambda old: edited(old, 0, 6 * MIB - 4), 64 << 10, id="both ends"),
        pytest.param(whole, lambda old: old[: 5 * MIB + 77], 64 << 10, id="shorter"),
        pytest.param(odd, lambda old: old + b"x" * 3000, 64 << 10, id="longer"),
        pytest.param(odd, lambda old: edited(old, 100), 16 << 10, id="a tail of less than a block"),
        pytest.param(whole, lambda old: old[2 * MIB :], 128 << 10, id="whole blocks removed"),
        pytest.param(
            whole, lambda old: old[:MIB] + b"y" * 65536 + old[MIB:], 256 << 10, id="whole blocks inserted"
        ),
        pytest.param(
            whole,
            lambda old: old[:MIB] + b"y" * 5 + old[MIB:],
            5 * MIB + (64 << 10),
            id="a few bytes inserted",
        ),
        pytest.param(whole, lambda old: old[3 * MIB :] + old[: 3 * MIB], 256 << 10, id="halves exchanged"),
        pytest.param(with_zeros, lambda old: edited(old, 100_000), 64 << 10, id="beside a run of zeros"),
        pytest.param(with_zeros, lambda old: edited(old, 3 * MIB), 256 << 10, id="within a run of zeros"),
        pytest.param(
            whole, lambda old: old[:MIB] + bytes(MIB) + old[2 * MIB :], MIB + (64 << 10), id="zeros over data"
        ),
        pytest.param(
            with_zeros, lambda old: old[: 3 * MIB] + old[4 * MIB :], 384 << 10, id="a shorter run of zeros"
        ),
        pytest.param(twice, lambda old: edited(old, 7 * MIB), 128 << 10, id="content that occurs twice"),
    ],
)
def test_only_what_changed_is_written(
    sharing: Path, base: Callable[[], bytes], change: Callable[[bytes], bytes], most: int
) -> None:
    old = base()
    assert synced(sharing, old, change(old)) <= most


@pytest.mark.parametrize("sparse", [False, True])
def test_random_changes_are_right(sharing: Path, sparse: bool) -> None:
    rng = random.Random(7)
    for _ in range(12):
        old = bytearray(rng.choice((whole, with_zeros))()[: rng.randrange(200_000, 3 * MIB)])
        new = bytearray(old)
        for _ in range(rng.randrange(1, 6)):
            at, length = rng.randrange(len(new)), rng.choice((1, 4000, 4096, 70_000))
            what = rng.choice(("zeros", "noise", "copy", "remove", "insert"))
            some = {
                "zeros": bytes(length),
                "noise": rng.randbytes(length),
                "copy": bytes(old[at // 2 : at // 2 + length]),
                "remove": b"",
                "insert": rng.randbytes(4096),
            }[what]
            new[at : at if what == "insert" else at + length] = some
        synced(sharing, bytes(old), bytes(new), SyncOptions(fsync=False, sparse=sparse))


def test_a_base_that_changes_before_it_is_cloned(sharing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its old content is not what the clone holds. What somebody wrote stays, and the next run goes on."""
    clone, changes = clone_range, iter(range(1))

    def after_a_write(source: int, offset: int, length: int, destination: int, at: int) -> None:
        for _ in changes:
            with open(f"/proc/self/fd/{source}", "r+b") as base:
                base.seek(2_000_000)
                base.write(b"meanwhile")
        clone(source, offset, length, destination, at)

    monkeypatch.setattr(cloning, "clone_range", after_a_write)
    (sharing / "src").mkdir()
    (sharing / "dst").mkdir()
    (sharing / "dst" / "image").write_bytes(OLD)
    rewrite(sharing / "src" / "image", edited(OLD, 4_000_000))
    run = run_sync(sharing / "src", sharing / "dst", FAST)
    assert next(changes, None) is None, "it was changed"
    assert [problem.path_bytes for problem in run.problems] == [b"image"]
    written = OLD[:2_000_000] + b"meanwhile" + OLD[2_000_009:]
    assert (sharing / "dst" / "image").read_bytes() == written
    assert run_sync(sharing / "src", sharing / "dst", FAST).problems == []
    assert (sharing / "dst" / "image").read_bytes() == edited(OLD, 4_000_000)


def refusing(monkeypatch: pytest.MonkeyPatch, code: int) -> list[int]:
    """Every clone is refused. Returns the sizes asked for."""
    asked: list[int] = []

    def refuse(source: int, offset: int, length: int, destination: int, at: int) -> None:
        asked.append(length)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(cloning, "clone_range", refuse)
    return asked


@pytest.mark.parametrize(
    ("code", "calls"),
    [(errno.EOPNOTSUPP, 1), (errno.EXDEV, 1), (errno.EPERM, 1), (errno.EINVAL, SINGLE_REFUSALS)],
)
def test_a_refusal_is_remembered_and_costs_nothing_else(
    tmp_path: Path, code: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = refusing(monkeypatch, code)
    source, target = tmp_path / "src", tmp_path / "dst"
    source.mkdir()
    target.mkdir()
    for number in range(12):
        content = OLD[number * 1000 :][: 1 << 20]
        (target / f"{number}").write_bytes(content)
        rewrite(source / f"{number}", edited(content, 500_000))
    run_sync(source, target, FAST)
    assert len(asked) == calls
    for number in range(12):
        assert (target / f"{number}").read_bytes() == (source / f"{number}").read_bytes()


def test_a_file_system_that_cannot_is_asked_once(ext4: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone, asked = clone_range, list[int]()

    def counted(source: int, offset: int, length: int, destination: int, at: int) -> None:
        asked.append(length)
        clone(source, offset, length, destination, at)

    monkeypatch.setattr(cloning, "clone_range", counted)
    planned: list[bool] = []
    may_clone = cloning.may_clone

    def noted(root: Root, source: int, destination: int | None = None) -> bool:
        may = may_clone(root, source, destination)
        if destination is None:  # the plan's question
            planned.append(may)
        return may

    monkeypatch.setattr(cloning, "may_clone", noted)
    for name in "abc":
        (ext4 / "src").mkdir(exist_ok=True)
        (ext4 / "dst").mkdir(exist_ok=True)
        (ext4 / "dst" / name).write_bytes(OLD[:MIB])
        rewrite(ext4 / "src" / name, edited(OLD[:MIB], 1000))
    run_sync(ext4 / "src", ext4 / "dst", FAST)
    assert len(asked) == 1
    first = planned.index(False)
    assert 0 < first < len(planned) - 2 and not any(planned[first:]), "nor is anything planned again"


# In place


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize(
    ("size", "change", "most"),
    [
        pytest.param(6 * MIB, lambda old: edited(old, 3_000_000), 4 << 10, id="four bytes"),
        pytest.param(
            6 * MIB, lambda old: edited(old, *range(9000, 6 * MIB, MIB // 4)), 24 * (8 << 10), id="many edits"
        ),
        pytest.param(100_000, lambda old: edited(old, 50_000), 8 << 10, id="a file that is not cloned"),
        pytest.param(6 * MIB - 77, lambda old: old + b"x" * 3000, 16 << 10, id="longer"),
    ],
)
def test_blocks_that_stay_go_on_to_be_shared(
    sharing: Path, size: int, change: Callable[[bytes], bytes], most: int, way: Way
) -> None:
    old = OLD[:size]
    assert synced(sharing, old, change(old), SyncOptions(fsync=False, inplace=True), way=way) <= most


def test_a_backup_of_a_file_that_is_written_into_is_a_clone(sharing: Path) -> None:
    options = SyncOptions(fsync=False, inplace=True, backup=Backup(b"~"))
    assert synced(sharing, OLD, edited(OLD, 3_000_000), options) <= 4 << 10
    assert (sharing / "dst" / "image~").read_bytes() == OLD
    assert own_bytes(sharing / "dst" / "image~") == 0
