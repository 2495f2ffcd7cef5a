"""Names that a file system may take for reserved ones, and directories that only rdc works in."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.files.base.paths import (
    OWN_DIRECTORIES,
    PARTS_NAME,
    RESERVED_PATTERN,
    is_reserved,
    lies_in_own_directory,
    refused_component,
    refused_rows,
    stands_for_reserved,
)

IGNORED = [chr(point) for point in range(0x80, 0xFFFF) if unicodedata.category(chr(point)) == "Cf"]
IGNORED += list("\u034f\u115f\u17b4\u180b\u3164\ufe0f\uffa0\U000e0100\U000e0020")


@st.composite
def forms(draw: st.DrawFn) -> bytes:
    """A reserved name as a file system may find it."""
    name = draw(st.from_regex(RESERVED_PATTERN, fullmatch=True)).decode()
    text = ""
    for letter in name:
        text += draw(st.sampled_from(("", "", "", *IGNORED)))
        text += draw(st.sampled_from((letter, letter.upper())))
    text = text.replace("s", draw(st.sampled_from(("s", "\u017f"))))
    return (text + draw(st.sampled_from(("", ".", " ", "..", "\u200b", ":x", "::$DATA")))).encode()


@given(forms())
def test_every_form_is_refused(name: bytes) -> None:
    assert stands_for_reserved(name)
    assert refused_rows([b"a", name, "é".encode()]) == [1]
    assert refused_component(b"a/" + name + b"/b") == name


@given(st.lists(st.binary(max_size=40).map(lambda name: name.replace(b"\\0", b"").replace(b"/", b""))))
def test_rows_are_those_of_single_names(names: list[bytes]) -> None:
    expected = [row for row, name in enumerate(names) if stands_for_reserved(name)]
    assert refused_rows(names) == expected
    assert all(stands_for_reserved(name) for name in names if is_reserved(name))


@pytest.mark.parametrize("name", ["RDC-UN~1", "rdc-un~12", "RD3F2A~1", "RDC-01~1.TMP", "RDC~1.PAR"])
def test_short_names_are_refused(name: str) -> None:
    assert stands_for_reserved(name.encode())


@pytest.mark.parametrize(
    "name", [".rdc", ".rdc-", ".rdc-undone", "rdc-undo", "a~1", ".rdcundo", "READ~1.TXT", ".rdc-ündo", "~"]
)
def test_other_names_are_not(name: str) -> None:
    assert not stands_for_reserved(name.encode())
    assert refused_rows([name.encode()]) == []


def opened(path: Path) -> bool:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY)
    try:
        return lies_in_own_directory(fd)
    finally:
        os.close(fd)


def test_a_directory_is_known_by_what_it_is(tmp_path: Path) -> None:
    """Not by its path: a link leads to it under any name."""
    for number, name in enumerate(OWN_DIRECTORIES):
        deep = tmp_path / "tree" / os.fsdecode(name) / "1/kept"
        deep.mkdir(parents=True)
        (tmp_path / str(number)).symlink_to(deep)
        (tmp_path / f"top{number}").symlink_to(deep.parent.parent)
        assert all(map(opened, (deep, deep.parent, deep.parent.parent, tmp_path / str(number))))
        assert opened(tmp_path / f"top{number}")
    (tmp_path / os.fsdecode(PARTS_NAME)).mkdir()
    (tmp_path / "tree/.rdc-undone").mkdir()
    for path in (
        tmp_path,
        tmp_path / "tree",
        tmp_path / "tree/.rdc-undone",
        tmp_path / os.fsdecode(PARTS_NAME),
    ):
        assert not opened(path)
    assert not opened(Path("/"))
