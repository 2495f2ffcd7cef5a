"""The files of a two-way sync: what was written is read again, and whatever is damaged is worth nothing."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.uniting.ancestor_file import DamagedError, Head, decode, encode
from rdc.uniting.columns import SharedRow
from rdc.uniting.journal import OpenPlan, read_plans
from rdc.uniting.rows import DIRECTORY, FILE, NO_STAMP, SYMLINK, Stamp
from rdc.uniting.state import PairDirectory, RootState
from tests.support.project_paths import TOP

FIXTURES = TOP / "fixtures" / "at_rest"
HEAD = Head(b"g" * 8, b"o" * 16, b"t" * 16, 77, 1_700_000_000, b"/the/other", 3)
PATHS = [b"a", b"d", b"d/e", b"d/l"]
ROWS = [
    SharedRow(FILE, b"c" * 16, b"", 0o644, 5), SharedRow(DIRECTORY, None, b"", 0o755, 0),
    SharedRow(FILE, None, b"", 0o600, -7), SharedRow(SYMLINK, None, b"../a", 0, 0),
]  # fmt: skip
STAMPS = [Stamp(3, 0o644, 5, 11, 21), Stamp(0, 0o755, 9, 12, 22), Stamp(1 << 40, 0o600, -7, 13, 0), NO_STAMP]

digests = st.one_of(st.none(), st.binary(min_size=16, max_size=16))
numbers = st.integers(-(1 << 62), 1 << 62)
names = st.binary(min_size=1, max_size=6).filter(
    lambda name: name not in (b".", b"..") and not {0, 47} & {*name}
)


@given(st.lists(st.tuples(names, digests, st.integers(0, 0o777), numbers), unique_by=lambda row: row[0]))
def test_an_ancestor_is_read_as_it_was_written(drawn: list[tuple[bytes, bytes | None, int, int]]) -> None:
    drawn.sort()
    paths = [name for name, *_ in drawn]
    rows = [SharedRow(FILE, digest, b"", mode, time) for _, digest, mode, time in drawn]
    stamps = [Stamp(abs(time), mode, time, abs(time), time) for _, _, mode, time in drawn]
    found = decode(encode(HEAD, paths, rows, stamps))
    head = replace(found.head, listing=b"")  # computed from the rows
    assert (head, found.paths, found.rows, found.stamps) == (HEAD, paths, rows, stamps)


def test_all_kinds_are_read_again() -> None:
    found = decode(encode(HEAD, PATHS, ROWS, STAMPS))
    assert (list(found.paths), list(found.rows), list(found.stamps)) == (PATHS, ROWS, STAMPS)
    other = decode(encode(Head(b"g" * 8, b"t" * 16, b"o" * 16, 1, 1, b"/", 0), PATHS, ROWS, [NO_STAMP] * 4))
    assert other.shared == found.shared
    assert decode(encode(HEAD, PATHS[:3], ROWS[:3], STAMPS[:3])).shared != found.shared


def test_every_cut_and_every_flipped_bit_is_damage() -> None:
    whole = encode(HEAD, PATHS, ROWS, STAMPS)
    for size in range(len(whole)):
        with pytest.raises(DamagedError):
            decode(whole[:size])
    for at in range(len(whole)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(DamagedError):
            decode(bytes(flipped))


@pytest.mark.parametrize(
    ("paths", "kinds"),
    [
        ([b"a", b"a"], [FILE, FILE]),
        ([b"b", b"a"], [FILE, FILE]),
        ([b"d/e"], [FILE]),
        ([b"d", b"d/e"], [FILE, FILE]),
        ([b".."], [FILE]),
        ([b"d", b"d/.."], [DIRECTORY, FILE]),
        ([b"/a"], [FILE]),
        ([b""], [FILE]),
        ([b".rdc-undo"], [DIRECTORY]),
        ([b"a"], [7]),
    ],
)
def test_paths_that_no_tree_has_are_damage(paths: list[bytes], kinds: list[int]) -> None:
    """Whoever planted the file gave it a digest that fits."""
    rows = [SharedRow(kind, None, b"", 0, 0) for kind in kinds]
    with pytest.raises(DamagedError):
        decode(encode(HEAD, paths, rows, [NO_STAMP] * len(paths)))


def test_a_planted_length_is_refused_before_anything_of_that_length_is_made() -> None:
    from blake3 import blake3

    from rdc.lean.zstd import zstandard

    whole = encode(HEAD, PATHS, ROWS, STAMPS)
    size = int.from_bytes(whole[8:16], "little")
    huge = zstandard.ZstdCompressor().compress(bytes(64 << 20))
    body = whole[: 16 + size] + len(huge).to_bytes(8, "little") + huge
    with pytest.raises(DamagedError, match="a section of"):
        decode(body + blake3(body).digest())


# The journal

PLAN = OpenPlan(
    b"12345678",
    {b"a": (Stamp(1, 2, 3, 4, 5), None), b"d/b": (None, NO_STAMP), b"c": (None, None)},
    frozenset({(b"old", b"new/er")}),
)


def written(tmp_path: Path, *plans: OpenPlan) -> bytes:
    root = Root.open(os.fsencode(tmp_path))
    with RootState(root, write=True) as state:
        pair = PairDirectory.open(state, b"0123456789abcdef", make=True)
        assert pair is not None
        for plan in plans:
            pair.begin(plan)
        pair.close()
    root.release()
    return (tmp_path / ".rdc-unite/0123456789abcdef/journal").read_bytes()


def test_plans_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert read_plans(written(tmp_path, PLAN, PLAN)) == ([PLAN, PLAN], True)


def test_a_journal_that_was_cut_has_the_plans_before_the_cut(tmp_path: Path) -> None:
    first = len(written(tmp_path, PLAN))
    whole = written(tmp_path, PLAN)
    for size in range(len(whole)):
        plans, readable = read_plans(whole[:size])
        assert readable
        # The last line feed tells nothing.
        assert len(plans) == (size >= first - 1) + (size >= len(whole) - 1)


def test_a_damaged_plan_is_never_taken_for_one_that_was_not_begun(tmp_path: Path) -> None:
    whole = written(tmp_path, PLAN)
    for at in range(2, len(whole) - 20):
        flipped = bytearray(whole)
        flipped[at] ^= 1
        plans, readable = read_plans(bytes(flipped))
        assert plans == [PLAN] or not readable, at


@given(st.binary(max_size=200))
def test_garbage_is_no_journal_and_no_traceback(data: bytes) -> None:
    plans, _ = read_plans(data)
    assert plans == []


def test_the_kept_ancestor_is_read() -> None:
    """A file of each version that was ever written: see docs/contributing/formats.md."""
    found = decode((FIXTURES / "unite-1.ancestor").read_bytes())
    assert (list(found.paths), list(found.rows), list(found.stamps), found.head) == (
        PATHS,
        ROWS,
        STAMPS,
        HEAD,
    )


def test_damage_of_the_kept_ancestor_is_named() -> None:
    whole = (FIXTURES / "unite-1.ancestor").read_bytes()
    rng = random.Random(1)
    for _ in range(300):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        with pytest.raises(DamagedError):
            decode(bytes(flipped))
