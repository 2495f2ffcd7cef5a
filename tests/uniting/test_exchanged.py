"""Pages: what is told comes as it was told, and what a lying peer tells is refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.lean.records import replace
from rdc.model import preserved
from rdc.model.preserved import END_NS, packed_time, real_time
from rdc.protocol.messages import Meet, Met, Opened
from rdc.protocol.messages.uniting import Subject
from rdc.protocol.wire.codec import encode
from rdc.uniting import exchanged
from rdc.uniting.columns import SharedRow
from rdc.uniting.exchanged import ADD, REMOVE, RENAME, SET, Action, Agreed, Order, Outcome, Told
from rdc.uniting.journal import OpenPlan
from rdc.uniting.merging import TEXT_BYTES
from rdc.uniting.pages import decode_page
from rdc.uniting.records import UniteOptions
from rdc.uniting.rows import DIRECTORY, ELSEWHERE, FILE, NO_STAMP, SYMLINK, Ancestor, Doubt, Row, Stamp
from rdc.uniting.state import OpenConflict
from tests.uniting.real_world import snapshot
from tests.uniting.remote_runs import lying, unite_in_turns

STAMP = Stamp(3, 0o644, 5, 6, 7)


def row(kind: int, content: bytes = b"") -> Row:
    stamp = STAMP if kind == FILE else STAMP._replace(size=0)
    mode = 0o644 if kind != SYMLINK else 0
    return Row(kind, content, mode, 5, 9, None, stamp, Doubt.NONE, False, b"")


XY = b"x", b"y"
TOLD = Told(
    (1, 4),
    (2,),
    (0, 3),
    {
        b"d": row(DIRECTORY),
        b"d/f": row(FILE, b"changed, at side 1"),
        b"l": row(SYMLINK, b"../to"),
        b"n": row(FILE, exchanged.new_content(3, 5)),
    },
    {b"pipe": "it is neither file, directory nor symlink"},
    (
        OpenPlan(
            bytes(8), {b"a": (STAMP, ELSEWHERE), b"b": (NO_STAMP, None)}, frozenset({(b"x", b"y")}), True
        ),
    ),
)
ORDER = Order(
    bytes(8),
    {b"a": (True, False), b"b": (False, False)},
    frozenset({(b"o", b"p")}),
    (
        Action(RENAME, b"o", b"p", FILE, b"", 0o644, 0, 0, 0),
        Action(ADD, b"l", b"", SYMLINK, b"to", 0, 0, 0, 0),
        Action(SET, b"s", b"", FILE, b"", 0o600, -5, 0, 0),
        Action(REMOVE, b"r", b"", DIRECTORY, b"", 0o755, 0, 0, 0),
    ),
    (b"w", b"d/w"),
)
OUTCOME = Outcome((b"a", b"b"), ((b"a", "a: cannot"), (b"", "no")), {b"c": bytes(16)})
AGREED = Agreed(
    bytes(8),
    bytes(16),
    ((b"o", b"p"),),
    (b"g",),
    {b"f": SharedRow(FILE, bytes(16), b"", 0o644, 5), b"l": SharedRow(SYMLINK, None, b"to", 0, 0)},
    (b"k",),
    (b"t",),
    (OpenConflict(b"c", "kind", (1, 2), (3, -4)),),
)
PAGES: dict[str, tuple[bytes, Callable[[bytes], object], object]] = {
    "told": (exchanged.pack_told(TOLD), lambda page: exchanged.unpack_told(page, 5), TOLD),
    "order": (exchanged.pack_order(ORDER), exchanged.unpack_order, ORDER),
    "outcome": (exchanged.pack_outcome(OUTCOME), exchanged.unpack_outcome, OUTCOME),
    "agreed": (exchanged.pack_agreed(AGREED), exchanged.unpack_agreed, AGREED),
    "paths": (exchanged.pack_paths([b"a", b"b/c"]), exchanged.unpack_paths, [b"a", b"b/c"]),
    "digests": (
        exchanged.pack_digests([None, bytes(16)]),
        lambda page: exchanged.unpack_digests(page, 2),
        [None, bytes(16)],
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_comes_as_it_was_told(name: str) -> None:
    page, read, value = PAGES[name]
    assert exchanged.checked(name, read, page) == value


@pytest.mark.parametrize("name", PAGES)
def test_a_damaged_page_is_refused_or_is_another_page(name: str) -> None:
    """No damage is a traceback, or takes memory that its bytes do not pay for."""
    page, read, _ = PAGES[name]
    for at in range(len(page)):
        for value in (0, 1, 0x7F, 0xFF, page[at] ^ 0x80):
            with suppress(ProtocolError):
                exchanged.checked(name, read, page[:at] + bytes([value]) + page[at + 1 :])
        with pytest.raises(ProtocolError):
            exchanged.checked(name, read, page[:at])


FAR = 10**27


def test_distant_times_are_known_at_the_other_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    time = packed_time(FAR)
    far = row(FILE, exchanged.new_content(3, time))._replace(
        mtime_ns=time, stamp=STAMP._replace(mtime_ns=time, ctime_ns=packed_time(-FAR))
    )
    told = Told((), (), (), {b"f": far}, {}, ())
    order = replace(ORDER, actions=(Action(SET, b"s", b"", FILE, b"", 0o600, time, 0, packed_time(FAR + 1)),))
    agreed = replace(AGREED, rows={b"f": SharedRow(FILE, bytes(16), b"", 0o644, time)})
    pages = exchanged.pack_told(told), exchanged.pack_order(order), exchanged.pack_agreed(agreed)
    monkeypatch.setattr(preserved, "_times", {})
    found = exchanged.unpack_told(pages[0], 0)
    assert found == told and real_time(found.rows[b"f"].mtime_ns) == FAR
    monkeypatch.setattr(preserved, "_times", {})
    (action,) = exchanged.unpack_order(pages[1]).actions
    assert [real_time(action.mtime_ns), real_time(action.listed_mtime_ns)] == [FAR, FAR + 1]
    monkeypatch.setattr(preserved, "_times", {})
    assert real_time(exchanged.unpack_agreed(pages[2]).rows[b"f"].mtime_ns) == FAR
    # A stamp of an ancestor, whose time nobody knows any more, is told as a near time.
    monkeypatch.setattr(preserved, "_times", {})
    assert exchanged.unpack_told(exchanged.pack_told(told), 0).rows[b"f"].mtime_ns == END_NS - 1


@pytest.mark.parametrize("path", [b"..", b"a/../b", b"/a", b"a//b", b"", b".rdc-unite/root", b".rdc-undo"])
def test_no_path_leads_out_or_is_reserved(path: bytes) -> None:
    page = msgpack.packb([path + b"\0"], use_bin_type=True)
    with pytest.raises(ProtocolError):
        exchanged.checked("paths", exchanged.unpack_paths, page)


def test_rows_have_their_directories() -> None:
    original = {b"f": Ancestor(FILE, b"c" * 16, 0o644, 5, (STAMP, STAMP), None)}
    for rows in ({b"x/y": row(FILE, b"c" * 16)}, {b"f/y": row(FILE, b"c" * 16)}):
        told = Told((), (), (), rows, {}, ())
        with pytest.raises(ProtocolError, match="without its directory"):
            exchanged.rows_of(told, original, {b"f": 0}, 1, keeps_inodes=True)


# Lies of a peer in a session


def changed_pair(tmp_path: Path) -> tuple[Path, Path]:
    left, right = tmp_path / "left", tmp_path / "right"
    for side in (left, right):
        side.mkdir()
        for name in ("a", "b", "c"):
            (side / name).write_text(name)
            os.utime(side / name, ns=(5_000_000_123, 5_000_000_123))
    unite_in_turns(left, right, UniteOptions(fsync=False), lambda _: None)
    (left / "a").write_text("edited")
    (right / "b").write_text("edited too")
    for side in (left, right):
        (side / "c").write_text(f"{side.name:>9}")
    return left, right


def text_page(length: int) -> bytes:
    """A page with one text that is said to be so long."""
    page: bytes = msgpack.packb([length.to_bytes(8, "little"), b"short"])
    return page


NOTHING = Order(bytes(8), {}, frozenset(), (), ())
LIES = {
    "rows of no ancestor": (1, Subject.ROWS, exchanged.pack_told(TOLD)),
    "no rows": (1, Subject.ROWS, b""),
    "digests of other files": (1, Subject.DIGESTS, exchanged.pack_digests([None] * 9)),
    "an outcome of garbage": (1, Subject.OUTCOME, b"\x90"),
    "files that are not there": (0, Subject.CONTENTS, exchanged.pack_paths([b"none"])),
    "steps of another ancestor": (0, Subject.STEPS, exchanged.pack_order(NOTHING)),
    "steps of garbage": (0, Subject.STEPS, b"\xc4"),
    "texts that are not there": (0, Subject.READ, exchanged.pack_paths([b"none"])),
    "paths of garbage": (0, Subject.READ, b"\xc4"),
    "texts of other files": (1, Subject.TEXTS, exchanged.pack_texts([b"text", None])),
    "a text that is too long": (1, Subject.TEXTS, text_page(TEXT_BYTES + 1)),
    "a text that is not there": (1, Subject.TEXTS, text_page(9)),
    "something else is agreed": (0, Subject.AGREE, exchanged.pack_agreed(AGREED)),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_ends_the_session_and_nobody_keeps_it(lie: str, tmp_path: Path) -> None:
    left, right = changed_pair(tmp_path)
    side, subject, page = LIES[lie]
    with pytest.raises(RdcError) as caught:
        unite_in_turns(
            left,
            right,
            UniteOptions(fsync=False, merge=True),
            lambda _: None,
            wrap=lying(side, subject, page),
        )
    assert "\n" not in str(caught.value)
    report = unite_in_turns(left, right, UniteOptions(fsync=False), lambda _: None, near=1).report
    assert (report.exit, report.conflicts) == (ExitCode.CONFLICTS, 1)
    assert (left / "b").read_text() == "edited too"
    assert (right / "a").read_text() == "edited"
    both = snapshot(left), snapshot(right)
    assert {path for path in both[0] if both[0][path] != both[1][path]} == {b"c"}


@pytest.mark.parametrize("page", [b"", b"\xc1", b"\x90", encode(Opened())])
def test_a_meeting_in_an_open_session_is_checked_as_any_message(page: bytes) -> None:
    for kind in (Meet, Met):
        with pytest.raises(ProtocolError, match=kind.name):
            decode_page(kind, page)


def test_texts_on_the_wire() -> None:
    for texts in ([], [None], [b"", b"some text", None, b"more"]):
        assert exchanged.unpack_texts(exchanged.pack_texts(texts), len(texts), 9) == texts
    with pytest.raises(ValueError, match="not in"):
        exchanged.unpack_texts(exchanged.pack_texts([b"some text"]), 1, 8)
