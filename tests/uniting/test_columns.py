"""Tables of rows: against the same rows as a dictionary, and only what differs becomes objects."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files.root.root import Root
from rdc.tree import filter_list
from rdc.uniting import columns
from rdc.uniting.columns import Common, SharedRow, Table
from rdc.uniting.describe import Listing
from rdc.uniting.rows import DIRECTORY, FILE, SYMLINK, Stamp
from tests.support.share import examples
from tests.uniting.pairs import Pair

Rows = dict[bytes, tuple[SharedRow, Stamp]]

NAMES = (b"a", b"a-", b"a.b", b"a0", b"b")

number = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def rows_of_a_tree(draw: st.DrawFn) -> Rows:
    """Rows of which each follows its directory."""
    found: Rows = {}
    inside = [b""]
    while inside:
        above = inside.pop()
        for name in draw(st.sets(st.sampled_from(NAMES), max_size=4 if len(found) < 30 else 0)):
            path = above + b"/" + name if above else name
            kind = draw(st.sampled_from([DIRECTORY, FILE, FILE, SYMLINK]))
            digest = draw(st.none() | st.binary(min_size=16, max_size=16)) if kind == FILE else None
            target = draw(st.sampled_from([b"x", b"../y"])) if kind == SYMLINK else b""
            shared = SharedRow(kind, digest, target, draw(st.integers(0, 0o777)), draw(number))
            stamp = Stamp(
                draw(st.integers(0, 1 << 40)), draw(st.integers(0, 0o7777)), draw(number),
                draw(st.integers(0, (1 << 64) - 1)), draw(number),
            )  # fmt: skip
            found[path] = shared, stamp
            if kind == DIRECTORY:
                inside.append(path)
    return found


def table_of(rows: Rows) -> Table:
    paths = sorted(rows)
    return columns.table_of(paths, [rows[path][0] for path in paths], [rows[path][1] for path in paths])


def rows_in(table: Table) -> Rows:
    return dict(zip(table.paths, table.rows(range(table.size)), strict=True))


@given(rows_of_a_tree(), rows_of_a_tree(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_rows_replaced_in_columns_are_those_replaced_in_a_dictionary(
    before: Rows, new: Rows, data: st.DataObject
) -> None:
    table = table_of(before)
    assert rows_in(table) == dict(sorted(before.items()))
    removed = data.draw(st.sets(st.sampled_from(sorted(before)))) if before else set()
    removed |= before.keys() & new.keys()
    numbers = [at for path in removed if (at := table.number(path)) is not None]
    assert len(numbers) == len(removed)
    expected = {path: row for path, row in before.items() if path not in removed} | new
    spliced = columns.replaced(table, numbers, table_of(new))
    found = columns.table_of_columns(b"".join(pieces) for pieces in spliced.columns())
    assert spliced.size == len(expected)
    assert list(spliced.directories) == list(found.directories)
    assert list(found.paths) == sorted(expected)
    assert rows_in(found) == expected


@given(rows_of_a_tree())
@settings(max_examples=examples(200), deadline=None)
def test_a_directory_has_its_rows_and_no_deeper_ones(rows: Rows) -> None:
    table = table_of(rows)
    for directory in (b"", *table.directories, b"a.b/none"):
        found = [table.paths[at] for at in table.children(directory)]
        assert found == sorted(path for path in rows if path.rpartition(b"/")[0] == directory)


def test_listed_columns_are_the_rows_that_a_run_makes(tmp_path: Path) -> None:
    for name in ("d/a/b", "d/a-/c", "d/a.b/e/f", "d/a0", "g-", "g/h", "z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "d/link").symlink_to("a")
    (tmp_path / "d/a/b").chmod(0o4755)
    root = Root.open(os.fsencode(tmp_path))
    listing = Listing(root, filter_list(()), lambda _: None)
    whole = columns.table_of_directories(listing.directories, [b""])
    rows = listing.load(listing.directories)
    assert list(whole.paths) == sorted(rows)
    for path, (shared, stamp) in rows_in(whole).items():
        row = rows[path]
        times = row.stamp if row.kind != DIRECTORY else row.stamp._replace(mtime_ns=0, ctime_ns=0)
        assert stamp == times
        mtime_ns = row.mtime_ns if row.kind == FILE else 0
        assert shared == SharedRow(row.kind, None, row.content, row.mode, mtime_ns)
    # What a walk says of each directory is what the columns say of it.
    digests = columns.next_digests(whole, columns.digests_of(whole), {})
    assert dict(zip([b"", *whole.directories], digests, strict=True)) == listing.digests
    root.release()


def test_only_directories_that_differ_become_objects(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    load = Common.load

    def noted(self: Common, directories: set[bytes]) -> object:
        found = load(self, directories)
        made.extend(found)
        return found

    monkeypatch.setattr(Common, "load", noted)
    for name in ("a/b/f", "a/c/f", "d/e/f", "d/g/f"):
        pair.both(name, "text")
    pair.unite()
    pair.unite()
    assert made == []
    (pair.left / "a/b/f").write_text("edited")
    (pair.right / "d/g/new").write_text("new")
    pair.unite()
    assert made == [b"a", b"a/b", b"a/b/f", b"a/c", b"d", b"d/e", b"d/g", b"d/g/f"]
    assert pair.texts("a/b/f") == ["edited", "edited"]
    assert pair.texts("d/g/new") == ["new", "new"]
    # What was not looked at stays known: its deletion goes over.
    (pair.left / "d/e/f").unlink()
    pair.unite()
    assert pair.texts("d/e/f") == [None, None]
