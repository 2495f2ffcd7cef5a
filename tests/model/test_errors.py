"""Names as people see them: never two alike, never more than a line, and none that cannot be read back."""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdc.cli.main import run as run_command
from rdc.errors import ExitCode, FileError, RdcError, one_line, printable
from rdc.files.base.paths import changed, failure, refused
from rdc.protocol.wire.fields import Text
from rdc.report.output import csv_name, plain_text
from tests.support.running.deduping import blob
from tests.support.running.fake_environment import FakeProcess

# What an escape looks like is the most likely part of a name that is shown as another one.
PARTS = st.one_of(
    st.binary(max_size=3),
    st.text(max_size=3).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from(
        [b"\\", b"\\x41", b"\\\\", b"\\u202e", b"x5c", b"\xff", b"\x1b[A", b"\n", b"A", b"'", b"="]
    ),
    st.sampled_from(
        [c.encode() for c in "\x85\u200b\u200d\u202e\u2066\ufeff\u00ad\u3164\ufe0f\u034f\u2800é\U000e0101"]
    ),
)
NAMES = st.lists(PARTS, max_size=6).map(b"".join)


def read_back(shown: str) -> bytes:
    """The name that printable() shows so."""
    out = bytearray()
    for part in re.findall(r"\\x..|\\u....|\\U........|\\\\|[^\\]+", shown):
        if part == "\\\\":
            out += b"\\"
        elif part.startswith("\\x"):
            out += bytes.fromhex(part[2:])
        elif part.startswith("\\"):
            out += chr(int.from_bytes(bytes.fromhex(part[2:]))).encode()
        else:
            out += part.encode()
    return bytes(out)


@given(NAMES)
@example("a\x85".encode())
@example(b"a\x85")
@example(b"a\\x85")
def test_a_name_can_be_told_from_what_is_shown(name: bytes) -> None:
    """The inverse is what makes printable() injective."""
    assert read_back(printable(name)) == name
    assert printable(os.fsdecode(name)) == printable(name)


@given(NAMES, NAMES)
def test_two_names_never_look_alike(first: bytes, second: bytes) -> None:
    assert (printable(first) == printable(second)) == (first == second)
    assert (plain_text(printable(first)) == plain_text(printable(second))) == (first == second)
    assert (csv_name(first) == csv_name(second)) == (first == second)


@given(NAMES)
def test_what_is_shown_is_one_line_that_moves_no_cursor(name: bytes) -> None:
    shown = printable(name)
    assert shown.isprintable()
    for ch in shown:
        assert unicodedata.category(ch) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        assert unicodedata.bidirectional(ch) not in {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }


def test_characters_that_take_no_room_are_escaped() -> None:
    """Default_Ignorable_Code_Point of Unicode 15, of which some are letters and marks to isprintable()."""
    ignorable = [
        0xAD,
        0x34F,
        0x61C,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
    ]
    ignorable += [
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
        0x3164,
        *range(0xFE00, 0xFE10),
        0xFEFF,
        0xFFA0,
    ]
    ignorable += [*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)]
    ignorable += range(0xE0000, 0xE1000)
    assert [hex(code) for code in ignorable if not printable(chr(code)).isascii()] == []
    assert printable("naïve ラ 😀 e\u0301") == "naïve ラ 😀 e\u0301"


@given(NAMES, st.text(max_size=20))
def test_a_message_shows_a_name_as_it_is_shown_elsewhere(name: bytes, text: str) -> None:
    """Whatever a message passes through, the names in it are escaped once."""
    message = f"{printable(name)}: {one_line(text)}"
    assert one_line(message) == message
    assert str(RdcError(message)) == message
    assert str(FileError(name, str(RdcError(message)))) == message
    field = Text(1 << 20)
    assert field.unpack(field.pack(message)) == message


@given(NAMES)
def test_errors_of_files_show_names_as_they_are_shown_elsewhere(name: bytes) -> None:
    for error in (
        failure(OSError(13, "no"), name, name, "read it"),
        failure(OSError(28, "no"), name, name, "read it"),
        failure(OSError(2, "no"), name, name, "read it", reading=True),
        refused(name, name, "read it", expected="a", found="b", advice="c"),
        changed(name, name, "a", "b"),
    ):
        assert str(error).startswith(f"{printable(name)}: ")


HOSTILE = (
    b"a\\x1bz",
    b"a\x1bz",
    b"a\\\\x1bz",
    b"caf\xc2\x85",
    b"caf\x85",
    b"caf\\x85",
    "r\u202ecod".encode(),
)


@pytest.mark.parametrize(
    "words", [["sync", "-v"], ["sync", "-i"], ["dupes"], ["scan", "--csv=errors"], ["similar"]]
)
def test_verbs_show_each_name_so_that_it_can_be_told(tmp_path: Path, words: list[str]) -> None:
    """Entries that are named as they land, and entries that are named because they are skipped."""
    top = tmp_path / "src"
    top.mkdir()
    for name in HOSTILE:
        path = os.path.join(os.fsencode(top), name)
        if "errors" in words[-1]:
            os.mkfifo(path)  # only what is skipped is named
        else:
            Path(os.fsdecode(path)).write_bytes(blob(1, 50_000) + (name if words == ["similar"] else b""))
    operands = [f"{top}/", f"{tmp_path}/dst"] if words[0] == "sync" else [str(top)]
    process = FakeProcess()
    code = run_command([*words, "--no-catalog", *operands], process.environment)
    assert code in (ExitCode.OK, ExitCode.PARTIAL)
    shown = process.out + process.err
    for name in HOSTILE:
        assert re.search(rf"(^|[/ ,\"]){re.escape(printable(name))}($|[:,\"\n])", shown, re.MULTILINE), (
            name,
            shown,
        )


def test_a_locale_that_lacks_a_character_shows_no_byte_in_its_place(tmp_path: Path) -> None:
    """An e with an accent and the byte \\xe9 are two names in every locale."""
    from rdc.cli.environment import process_environment

    process_environment()
    assert codecs.lookup_error("rdc.escape")(UnicodeEncodeError("ascii", "é", 0, 1, "")) == ("\\u00e9", 1)
    assert "é".encode("ascii", "rdc.escape") != printable(b"\xe9").encode("ascii", "rdc.escape")
