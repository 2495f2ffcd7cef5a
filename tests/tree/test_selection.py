"""Which paths a list selects, against the definition in sets."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.files.root.layered_root import PackedNames
from rdc.model.selection import SelectedPaths, check_bounds, read_name
from rdc.tree.selection import Selection
from tests.support.share import examples

PATHS = st.lists(st.sampled_from([b"a", b"b", b"ab", b"c"]), min_size=1, max_size=4).map(b"/".join)
NAMES = st.tuples(st.sampled_from([b"", b"", b"./"]), PATHS, st.sampled_from([b"", b"", b"/"])).map(
    b"".join
) | st.just(b".")
LISTS = st.lists(st.lists(NAMES, max_size=5).map(tuple), min_size=1, max_size=3)


def above(path: bytes) -> Iterator[bytes]:
    while path:
        path = path.rpartition(b"/")[0]
        yield path


@settings(max_examples=examples(1500), deadline=None)
@given(LISTS, st.lists(PATHS | st.just(b""), min_size=1, max_size=6), st.booleans())
def test_a_selection_is_what_its_names_say(
    lists: list[tuple[bytes, ...]], asked: list[bytes], recursive: bool
) -> None:
    selected = [SelectedPaths(b"", names) for names in lists]
    check_bounds(selected)
    read = [read_name(name) for names in lists for name in names]
    ends = {name.path for name in read}
    opened = {name.path for name in read if name.contents}
    parents = {b""} | {path for end in ends for path in above(end)}
    inner = {path for path in parents for name in ends if path in {name, *above(name)}} | {b""}
    selection = Selection(selected, recursive=recursive)

    def whole(path: bytes) -> bool:
        """Return whether all entries of a directory above selected paths take part."""
        if not recursive:
            return path in opened
        return any(each in ends for each in (path, *above(path)))

    def names(path: bytes) -> set[bytes] | None:
        if path in parents and not whole(path):
            below = {each for each in ends | inner if each and each.rpartition(b"/")[0] == path}
            return {each.rpartition(b"/")[2] for each in below}
        if recursive or path in opened:
            return None
        return set() if path in ends or path.rpartition(b"/")[0] in opened else None

    assert sorted(selection.ends) == sorted(ends)
    assert selection.top_counts is any(name.with_top for name in read)
    assert set(selection.restricted) == {path for path in parents if not whole(path)}
    for path in (*asked, *ends, *parents):
        found = selection.names(path)
        assert (None if found is None else set(found)) == names(path), path
        assert selection.is_end(path) is (path in ends)
        assert selection.is_above(path) is (path in parents and not whole(path) and path not in ends)
        for name in (b"a", b"b", b"zz"):
            wanted = names(path)
            assert selection.takes(path, name) is (wanted is None or name in wanted)


def test_a_long_list_takes_little_more_than_its_bytes() -> None:
    names = tuple(b"d%d/e%d/file%d" % (number // 1000, number // 100, number) for number in range(100_000))
    tracemalloc.start()
    selection = Selection([SelectedPaths(b"", names)])
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 20 * len(names)
    assert selection.takes(b"d7/e77", b"file7700") and not selection.takes(b"d7/e77", b"file77")


@given(st.lists(NAMES.map(lambda name: name.replace(b"/", b"|")), unique=True))
def test_packed_names(names: list[bytes]) -> None:
    packed = PackedNames(b"".join(name + b"\0" for name in names))
    assert list(packed) == names and len(packed) == len(names)
    for name in (*names, b"a", b"", b"b"):
        assert (name in packed) is (name in names)
