"""Tables of numbers travel as differences of rows, for fewer bytes."""

from __future__ import annotations

import random
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest

from rdc.kernel import _kernel
from rdc.protocol.messages import Data, Table
from rdc.session import binaries as filters_module
from rdc.session.binaries import STRIDES, decode_table, encode_table
from rdc.session.source import range_answers as range_answers_module
from tests.end_to_end.transfer.one_file import places, synced
from tests.support.running.paired_sync import kinds


def relocations(rows: int) -> bytes:
    """Of addresses in ascending order, each with another one."""
    rng = random.Random(5)
    found = bytearray()
    for row in range(rows):
        found += struct.pack("<QQQ", 0x2A3410 + 8 * row, 8, 0x81230 + 48 * row + rng.choice((0, 0, 16)))
    return bytes(found)


def test_what_becomes_no_shorter_stays_as_it_is() -> None:
    rng = random.Random(6)
    for content in (b"", bytes(1000), rng.randbytes(1000), b"some words of a text " * 50):
        where = array("Q", [5, len(content)])
        same = bytearray(content)
        assert encode_table(same, where) == 0
        assert same == content
    table = relocations(300)
    for shift, stride in ((0, 24), (4, 24)):
        where = array("Q", [shift, len(table)])
        made = bytearray(table)
        assert encode_table(made, where) == stride
        assert decode_table(made, where, stride) == table
    assert STRIDES == (8, 24)


OLD = random.Random(1).randbytes(300_000)
NEW = OLD[:100_001] + relocations(30_000) + OLD[100_001:]


def test_relocations_come_for_fewer_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = synced(*places(tmp_path / "with", NEW))
    assert "Table" in kinds(run)
    monkeypatch.setattr(filters_module, "encode_table", lambda content, where: 0)
    plain = synced(*places(tmp_path / "without", NEW))
    assert "Table" not in kinds(plain)
    assert run.done.literal_bytes == plain.done.literal_bytes
    assert run.done.bytes_sent < plain.done.bytes_sent * 0.7


def test_no_table_is_made_where_nothing_is_compressed(tmp_path: Path) -> None:
    assert "Table" not in kinds(synced(*places(tmp_path, NEW), compress=False))


@pytest.mark.parametrize("lie", ["as data", "as a table", "of other rows"])
def test_a_table_that_is_none_is_noticed_and_fetched_again(
    lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, since the second attempt is lied to as well; then the whole file."""

    def data(file: int, content: bytearray, places: Any) -> Data | Table:
        where = places.take(len(content))
        if lie == "as a table":
            return Table(file, 24, bytes(content))
        _kernel.difference_words(content, where, 24)
        return Data(file, bytes(content)) if lie == "as data" else Table(file, 8, bytes(content))

    monkeypatch.setattr(range_answers_module, "_data", data)
    run = synced(*places(tmp_path, NEW))
    assert run.done.literal_bytes == len(NEW)
