"""Whole files as they are sent: small ones together, each as it is by now, or with the reason why not."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from blake3 import blake3

from rdc.errors import ExitCode, ProtocolError
from rdc.files.replace.staged_clones import StagedClones
from rdc.files.root.root import Root
from rdc.files.root.source_file import SourceFile
from rdc.limits import DATA_BYTES, SMALL_FILE_BYTES
from rdc.protocol.messages import Data, FileBatch, FileEnd, FileFailed, Message, Resized
from rdc.session.runtime.commands import Conversation, Send
from rdc.session.source import file_sender as module
from rdc.session.source import range_answers as digesting
from rdc.session.source.file_sender import FileSender
from rdc.session.source.tree_description import Demand, Description
from rdc.store.snapshot_root import open_snapshot
from rdc.tree.manifest import Manifest
from tests.support.store.stores import put_tree

LONG = SMALL_FILE_BYTES + 1


class Source:
    """A tree of two directories, listed once; what is sent of it, and how often the other side was heard."""

    def __init__(self, place: Path, contents: Sequence[bytes]) -> None:
        (place / "d").mkdir()
        self.paths = [place / "d" / f"{number:03}" for number in range(len(contents))]
        for path, content in zip(self.paths, contents, strict=True):
            path.write_bytes(content)
        root = Root.open(os.fsencode(place))
        manifest = Manifest()
        for directory in (b"", b"d"):
            manifest.add(directory, root.listed(directory).listing)
        self.heard = 0
        # Row 0 is the directory itself.
        self.sender = FileSender(
            root, cast(Description, SimpleNamespace(manifest=manifest)), self._listen, Demand(manifest)
        )

    def _listen(self) -> Conversation[None]:
        self.heard += 1
        yield from ()

    def send(self, *files: int) -> list[Message]:
        return [
            command.message
            for command in self.sender.send(tuple(file + 1 for file in files), 3)
            if isinstance(command, Send)
        ]


def blob(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def test_small_files_share_a_message(tmp_path: Path) -> None:
    contents = [blob(number, 100 * number) for number in range(5)]
    (batch,) = Source(tmp_path, contents).send(0, 1, 3, 4)
    assert isinstance(batch, FileBatch)
    payload = contents[0] + contents[1] + contents[3] + contents[4]
    assert batch == FileBatch((1, 2, 4, 5), (0, 100, 300, 400), blake3(payload).digest(), payload)


@pytest.mark.parametrize(("name", "bound"), [("FILES_PER_BATCH", 3), ("DATA_BYTES", 350)])
def test_a_message_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bound: int) -> None:
    monkeypatch.setattr(module, name, bound)
    source = Source(tmp_path, [blob(number, 100) for number in range(10)])
    sent = source.send(*range(10))
    batches = [message for message in sent if isinstance(message, FileBatch)]
    assert batches == sent
    assert [len(batch.files) for batch in batches] == [3, 3, 3, 1]
    assert [file for batch in batches for file in batch.files] == list(range(1, 11))
    assert source.heard == 4


def test_a_long_file_comes_in_pieces_with_its_digest_behind(tmp_path: Path) -> None:
    content = blob(1, 2 * DATA_BYTES + 5)
    source = Source(tmp_path, [b"small", content, b"small too"])
    before, *pieces, end = source.send(0, 1, 2)
    # What is small comes first, since all small ones of a directory are read at once.
    assert isinstance(before, FileBatch)
    assert before.files == (1, 3)
    datas = [message for message in pieces if isinstance(message, Data)]
    assert b"".join(data.payload for data in datas) == content
    assert max(len(data.payload) for data in datas) <= DATA_BYTES
    assert end == FileEnd(2, len(content), blake3(content).digest(), None)
    # Between two pieces the user gets to see what the destination tells.
    assert source.heard >= len(datas)


def test_a_file_that_changed_since_comes_alone_with_its_new_size_and_time(tmp_path: Path) -> None:
    source = Source(tmp_path, [b"one", b"two", b"three"])
    source.paths[1].write_bytes(b"another two")
    os.utime(source.paths[1], ns=(5, 7))
    batch, resized, data, end = source.send(0, 1, 2)
    assert isinstance(batch, FileBatch)
    assert batch.files == (1, 3)
    assert resized == Resized(2, 11)
    assert data == Data(2, b"another two")
    assert end == FileEnd(2, 11, blake3(b"another two").digest(), 7)


def test_a_file_that_is_gone_fails_and_no_other(tmp_path: Path) -> None:
    source = Source(tmp_path, [b"one", b"two", blob(3, LONG)])
    source.paths[1].unlink()
    source.paths[2].unlink()
    batch, *failures = source.send(0, 1, 2)
    assert isinstance(batch, FileBatch)
    assert batch.files == (1,)
    failed = {failure.file: failure.code for failure in failures if isinstance(failure, FileFailed)}
    assert failed == {2: ExitCode.VANISHED, 3: ExitCode.VANISHED}
    assert len(failures) == 2


def test_a_file_that_changes_while_it_is_sent_fails(tmp_path: Path) -> None:
    source = Source(tmp_path, [blob(1, LONG)])
    commands = source.sender.send((1,), 3)
    sent = []
    for command in commands:
        if isinstance(command, Send):
            sent.append(command.message)
            if isinstance(command.message, Data):
                source.paths[0].write_bytes(b"other")
    assert isinstance(sent[-1], FileFailed)
    assert not any(isinstance(message, FileEnd) for message in sent)


def test_a_file_of_its_old_size_is_not_announced_anew(tmp_path: Path) -> None:
    source = Source(tmp_path, [b"one"])
    source.paths[0].write_bytes(b"two")
    os.utime(source.paths[0], ns=(5, 7))
    assert source.send(0) == [Data(1, b"two"), FileEnd(1, 3, blake3(b"two").digest(), 7)]


def test_equal_contents_are_named(tmp_path: Path) -> None:
    source = Source(tmp_path, [blob(1, LONG), blob(1, LONG), blob(2, LONG)])
    ends = [message for message in source.send(0, 1, 2) if isinstance(message, FileEnd)]
    assert [end.like for end in ends] == [None, 1, None]
    # Whoever asks again did not get it from there.
    first, last = source.send(1)
    assert first == Data(2, blob(1, LONG))
    assert isinstance(last, FileEnd)
    assert last.like is None


def test_contents_of_a_snapshot_are_hashed_for_other_processes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process their keys serve: the destination writes the memory that was compared with them."""
    contents = [blob(1, 3 * LONG), blob(1, 3 * LONG), blob(2, 3 * LONG)]
    Source(tmp_path, contents)
    put_tree(tmp_path / "d", tmp_path / "st")
    found = open_snapshot(os.fsencode(f"{tmp_path}/st/@1/"), os.path.isdir, Root.open)
    assert found is not None
    manifest = Manifest()
    manifest.add(b"", found[0].listed(b"").listing)
    description = cast(Description, SimpleNamespace(manifest=manifest))
    hashed = list[bytes]()

    def digest_of(source: SourceFile, *, hollow: bool) -> bytes:
        hashed.append(source.path)
        return real(source, hollow=hollow)

    real = digesting.digest_of
    monkeypatch.setattr(module, "digest_of", digest_of)
    with ExitStack() as stack:
        stack.callback(found[0].release)
        root = found[0]
        for clones in (None, StagedClones()):
            sender = FileSender(root, description, nothing_heard, Demand(manifest), clones)
            sent = [command.message for command in sender.send((0, 1, 2), 3) if isinstance(command, Send)]
            ends = [message for message in sent if isinstance(message, FileEnd)]
            payload = b"".join([message.payload for message in sent if isinstance(message, Data)])
            assert payload == contents[0] + contents[2]
            assert [end.like for end in ends] == [None, 0, None]
            # A copy at the destination is compared with the content.
            assert ends[1].digest == blake3(contents[1]).digest()
            digests = [blake3(contents[row]).digest() == ends[row].digest for row in (0, 2)]
            assert digests == [clones is None] * 2
        assert hashed == [b"001", b"001"]


def nothing_heard() -> Conversation[None]:
    yield from ()


@pytest.mark.parametrize("row", [0, 3, 1 << 40])
def test_only_listed_files_are_sent(tmp_path: Path, row: int) -> None:
    source = Source(tmp_path, [b"one", b"two"])
    with pytest.raises(ProtocolError, match=f"entry {row}"):
        list(source.sender.send((row,), 3))
