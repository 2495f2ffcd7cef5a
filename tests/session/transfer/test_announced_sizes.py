"""Content keeps to the size that was announced, however it comes: a source that lies costs no disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace as changed
from pathlib import Path

import pytest
from blake3 import blake3

from rdc.errors import ExitCode, FileError, OutOfSpaceError, ProtocolError
from rdc.files.replace.replacement import Replacement
from rdc.lean.records import replace
from rdc.limits import DATA_BYTES
from rdc.protocol.messages import Data, FileBatch, FileEnd, FileFailed, Message, Resized, Role
from rdc.session.source.file_sender import FileSender
from tests.session.transfer.size_cases import OPTIONS, PART, ROLES, noise, places
from tests.support.running.paired_sync import sync_in_turns
from tests.support.trees.trees import describe, read_tree
from tests.support.wire.lying_source import Written, answering, disk_bytes

BLOCK = 4096
"""Bytes of a file system's block: what a file of one byte takes."""


@ROLES
@pytest.mark.parametrize("size", [0, 5, 200_000, 5 << 20])
@pytest.mark.parametrize("more", [1, 60 << 20])
def test_a_file_that_does_not_end_is_cut_off_at_its_size(
    size: int, more: int, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5 bytes were listed and 1.5 GB came, whatever --max-size said."""
    source, destination = places(tmp_path, {"big": noise(1, size)}, {})
    ended = []

    def lie(message: Message) -> Sequence[Message]:
        if not isinstance(message, FileBatch | FileEnd):
            return [message]
        file = message.files[0] if isinstance(message, FileBatch) else message.file
        first = message.payload if isinstance(message, FileBatch) else b""
        parts = [Data(file, bytes(first)[at : at + DATA_BYTES]) for at in range(0, len(first), DATA_BYTES)]
        beyond = [Data(file, PART[: min(more - at, DATA_BYTES)]) for at in range(0, more, DATA_BYTES)]
        ended.append(file)
        return [*parts, *beyond, FileEnd(file, size + more, bytes(32))]

    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    with pytest.raises(
        ProtocolError, match=f"big: expected the {size} bytes that the remote side announced, found"
    ):
        sync_in_turns(source, destination, changed(OPTIONS, max_size=6 << 20), dialler=dialler)
    assert ended
    assert written.bytes <= size
    assert disk_bytes(destination) <= 2 * size + BLOCK
    assert not (destination / "big").exists()


@ROLES
def test_a_file_that_ends_early_is_refused(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less than was announced may be less than --min-size."""
    source, destination = places(tmp_path, {"f": noise(1, 300_000)}, {})

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, Data):
            return [Data(message.file, b"short")]
        return (
            [FileEnd(message.file, 5, blake3(b"short").digest())]
            if isinstance(message, FileEnd)
            else [message]
        )

    answering(monkeypatch, lie)
    with pytest.raises(
        ProtocolError, match="f: expected the 300000 bytes that the remote side announced, found 5;"
    ):
        sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert os.listdir(destination) == []


def grows(monkeypatch: pytest.MonkeyPatch, path: Path, content: bytes) -> None:
    """The file gets other content between its listing and the first question for whole files."""
    send = FileSender.send

    def late(self: FileSender, files: tuple[int, ...], round_: int, packing: int = 0) -> object:
        path.write_bytes(content)
        return send(self, files, round_, packing)

    monkeypatch.setattr(FileSender, "send", late)


@ROLES
@pytest.mark.parametrize("size", [0, 7, 400_000, 6 << 20])
@pytest.mark.parametrize("before", [3, 300_000])
def test_a_file_of_another_size_by_now_is_announced_anew_and_lands(
    before: int, size: int, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, {"f": noise(1, before), "g": b"still"}, {})
    grows(monkeypatch, source / "f", noise(2, size))
    run = sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert run.problems == []
    assert describe(read_tree(source), read_tree(destination)) == []


@ROLES
@pytest.mark.parametrize("size", [9, 400_000])
def test_a_size_announced_anew_is_looked_at_as_a_listed_one(
    size: int, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What --min-size and --max-size leave alone stays out, and is named; all else lands."""
    source, destination = places(tmp_path, {"f": noise(1, 300_000), "g": noise(3, 1000)}, {})
    grows(monkeypatch, source / "f", noise(2, size))
    written = Written().watch(monkeypatch)
    options = changed(OPTIONS, min_size=10, max_size=300_000)
    run = sync_in_turns(source, destination, options, dialler=dialler)
    assert [(problem.code, problem.path_bytes) for problem in run.problems] == [(ExitCode.VANISHED, b"f")]
    assert f"expected 300000 bytes, found {size}" in run.problems[0].message
    assert sorted(os.listdir(destination)) == ["g"]
    assert written.bytes <= 1000


@ROLES
def test_what_is_dropped_keeps_to_its_size_too(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that cannot be written is passed over, and not for ever."""
    source, destination = places(tmp_path, {"f": noise(1, 300_000)}, {})

    def refuse(self: Replacement, buffer: object) -> None:
        raise FileError(self.path, "f: cannot write it")

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, FileEnd):
            return [*[Data(message.file, PART)] * 9, replace(message, size=300_000 + 9 * DATA_BYTES)]
        return [message]

    monkeypatch.setattr(Replacement, "write", refuse)
    answering(monkeypatch, lie)
    with pytest.raises(
        ProtocolError, match="f: expected the 300000 bytes that the remote side announced, found 824288;"
    ):
        sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert disk_bytes(destination) <= BLOCK


@ROLES
@pytest.mark.parametrize("size", [1 << 50, (1 << 63) - 1])
def test_a_size_that_fits_no_disk_takes_none(
    size: int, dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, {"f": noise(1, 300_000)}, {})

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, FileEnd):
            return [FileFailed(message.file, ExitCode.PARTIAL, "no more")]
        return [Resized(message.file, size), message] if isinstance(message, Data) else [message]

    answering(monkeypatch, lie)
    with pytest.raises(OutOfSpaceError, match="f: cannot make a temporary file beside it"):
        sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert os.listdir(destination) == []


@ROLES
def test_a_large_size_takes_no_disk_before_content_comes(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twentieth of the disk is announced, and a piece of it comes."""
    source, destination = places(tmp_path, {"f": noise(1, 300_000)}, {})
    found = os.statvfs(destination)
    announced = found.f_bavail * found.f_frsize // 20
    taken: list[int] = []

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, FileEnd):
            taken.append(disk_bytes(destination))
            return [FileFailed(message.file, ExitCode.PARTIAL, "no more")]
        return [Resized(message.file, announced), message] if isinstance(message, Data) else [message]

    answering(monkeypatch, lie)
    sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert len(taken) == 1
    assert disk_bytes(destination) <= (1 << 20) + BLOCK


@ROLES
def test_a_copy_of_another_file_has_the_size_that_was_announced(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 bytes that say "like that one" do not write as much as that one has, for each small file."""
    large = noise(1, 3 << 20)
    source, destination = places(tmp_path, {"a": large, **{f"n{row}": b"tiny" for row in range(9)}}, {})

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, FileBatch):
            held.append(message)
            return []
        if isinstance(message, FileEnd):
            return [message, *(each for batch in held for each in lie_of(message, batch))]
        return [message]

    def lie_of(end: FileEnd, batch: FileBatch) -> Sequence[Message]:
        return [FileEnd(file, end.size, end.digest, None, end.file) for file in batch.files]

    held: list[FileBatch] = []
    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    with pytest.raises(
        ProtocolError, match=f"expected the 4 bytes that the remote side announced, found {len(large)};"
    ):
        sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert written.bytes <= len(large)


@ROLES
def test_a_batch_of_other_sizes_lands_nothing(
    dialler: Role, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, destination = places(tmp_path, {f"n{row}": b"tiny" for row in range(9)}, {})

    def lie(message: Message) -> Sequence[Message]:
        if isinstance(message, FileBatch):
            payload = PART[: 50_000 * len(message.files)]
            sizes = (50_000,) * len(message.files)
            return [FileBatch(message.files, sizes, blake3(payload).digest(), payload)]
        return [message]

    answering(monkeypatch, lie)
    written = Written().watch(monkeypatch)
    run = sync_in_turns(source, destination, OPTIONS, dialler=dialler)
    assert {problem.path_bytes for problem in run.problems} == {b"n%d" % row for row in range(9)}
    assert os.listdir(destination) == []
    assert written.bytes == 0


# Files by descent
