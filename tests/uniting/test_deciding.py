"""What a run decides wherever its sides are: doubts of two journals, and rows that an ancestor can have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode
from rdc.progress import Problem
from rdc.uniting.deciding import Deciding, _drop_orphans, shared_row
from rdc.uniting.journal import OpenPlan
from rdc.uniting.records import UniteOptions
from rdc.uniting.rows import DIGEST_BYTES, DIRECTORY, FILE, NO_STAMP, SYMLINK, Ancestor, Stamp

STAMP = Stamp(1, 0o644, 2, 3, 4)


def row(kind: int, content: bytes = b"") -> Ancestor:
    return Ancestor(kind, content, 0o644, 5, (STAMP, STAMP), None)


paths = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map("/".join).map(str.encode)


@given(st.dictionaries(paths, st.sampled_from([FILE, DIRECTORY, SYMLINK]).map(row)))
def test_each_row_that_stays_has_its_directory_and_no_other_goes(rows: dict[bytes, Ancestor]) -> None:
    left = dict(rows)
    _drop_orphans(left)

    def is_kept(path: bytes) -> bool:
        parent = path.rpartition(b"/")[0]
        return not parent or (parent in rows and rows[parent].kind == DIRECTORY and is_kept(parent))

    assert left == {path: each for path, each in rows.items() if is_kept(path)}


def test_the_plans_of_both_journals_are_doubts() -> None:
    deciding = Deciding((b"left", b"right"), UniteOptions(), lambda _: None, None, {})
    one = OpenPlan(b"g" * 8, {b"f": (STAMP, None)}, frozenset({(b"a", b"b")}))
    other = OpenPlan(b"g" * 8, {b"f": (None, NO_STAMP), b"g": (None, None)}, frozenset())
    asked: list[int] = []

    def can_rename(side: int) -> bool:
        asked.append(side)
        return side == 1

    rules = deciding._rules([one, other], can_rename)
    assert rules.unfinished == {b"f": ((STAMP, None), (None, NO_STAMP)), b"g": ((None, None),)}
    assert rules.begun == {(b"a", b"b")}
    assert [rules.can_rename(side) for side in (0, 1, 0, 1)] == [False, True, False, True]
    assert asked == [0, 1]  # each file system is tried once


def test_a_held_entry_counts_more_than_a_conflict() -> None:
    deciding = Deciding((b"left", b"right"), UniteOptions(), lambda _: None, None, {})
    deciding._report(Problem(ExitCode.OK, b"", "a note"))
    assert deciding._code(conflicts=False) is ExitCode.OK
    assert deciding._code(conflicts=True) is ExitCode.CONFLICTS
    deciding._report(Problem(ExitCode.PARTIAL, b"f", "held"))
    assert deciding._code(conflicts=True) is ExitCode.PARTIAL


def test_only_a_digest_is_a_known_content() -> None:
    assert shared_row(row(FILE, b"d" * DIGEST_BYTES)).digest == b"d" * DIGEST_BYTES
    assert shared_row(row(FILE, b"changed, at side 0, 1 2")).digest is None
    assert shared_row(row(SYMLINK, b"target")).target == b"target"
