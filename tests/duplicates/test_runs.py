"""Runs of equal chunks: equal bytes, whole blocks, inside the files, and no fewer than expected."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.duplicates.share import ChunkedFile, RunFinder
from rdc.model.duplicates import EqualRuns, RootedPath
from rdc.signature.tree import sign
from tests.support.running.deduping import blob
from tests.support.share import examples

PARAMS = ChunkParams(64, 256)
BLOCK = 512


def found_in(*contents: bytes, finder: RunFinder | None = None, protected: int = 0) -> list[EqualRuns]:
    """The runs found in files with these contents; the first `protected` files are protected."""
    finder = finder or RunFinder()
    runs = []
    for number, content in enumerate(contents):
        name = RootedPath(0, b"%d" % number)
        runs += finder.add(ChunkedFile(name, b"v", BLOCK, sign(content, PARAMS), number < protected))
    return runs


def check(runs: list[EqualRuns], contents: tuple[bytes, ...]) -> int:
    """Checks the properties of any run. Returns the bytes covered."""
    covered = 0
    taken: dict[bytes, list[tuple[int, int]]] = {}
    for one in runs:
        source, own = contents[int(one.source.path)], contents[int(one.destination.path)]
        for source_offset, offset, length in zip(one.source_offsets, one.offsets, one.lengths, strict=True):
            assert source_offset % BLOCK == offset % BLOCK == 0
            assert length > 0
            ends = (offset + length == len(own), source_offset + length == len(source))
            assert length % BLOCK == 0 or ends == (True, True)
            assert own[offset : offset + length] == source[source_offset : source_offset + length]
            assert offset + length <= len(own)
            if one.source == one.destination:
                assert source_offset + length <= offset
            taken.setdefault(one.destination.path, []).append((offset, offset + length))
            covered += length
    for ranges in taken.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(ranges)))
    return covered


pieces = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([100, 512, 700, 2048, 5000])), min_size=1, max_size=8
).map(lambda parts: b"".join(blob(seed, size) for seed, size in parts))


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(pieces, min_size=1, max_size=4))
def test_runs_are_what_they_say(contents: list[bytes]) -> None:
    check(found_in(*contents), tuple(contents))


def test_an_edit_in_place_costs_a_few_chunks() -> None:
    old = blob(1, 200_000)
    new = bytearray(old)
    new[100_000:100_010] = b"0123456789"
    contents = (old, bytes(new))
    runs = found_in(*contents)
    (one,) = runs
    assert len(one) == 2
    assert check(runs, contents) > 200_000 - 4 * 256 - 2 * BLOCK
    # The last, partial block is shared too: both files end with it.
    assert one.offsets[-1] + one.lengths[-1] == 200_000


def test_a_file_that_grew_shares_whole_blocks_only() -> None:
    contents = (blob(1, 100_001), blob(1, 100_001) + blob(2, 5_000))
    (one,) = found_in(*contents)
    assert list(one.source_offsets) == list(one.offsets) == [0]
    assert check([one], contents) % BLOCK == 0


def test_an_insertion_of_whole_blocks_is_found_and_of_less_is_not() -> None:
    content = blob(1, 100_000)
    for insertion, expected in ((BLOCK * 3, True), (BLOCK * 3 + 1, False)):
        contents = (content, blob(2, insertion) + content)
        assert (check(found_in(*contents), contents) > 90_000) == expected


def test_identical_files_are_left_to_their_groups() -> None:
    assert found_in(blob(1, 50_000), blob(1, 50_000)) == []


def test_repeats_within_a_file() -> None:
    part = blob(1, 40 * BLOCK)
    contents = (part + blob(2, 10 * BLOCK) + part,)
    runs = found_in(*contents)
    assert check(runs, contents) > 35 * BLOCK
    zeros = (bytes(100 * BLOCK),)
    assert check(found_in(*zeros), zeros) > 90 * BLOCK


def test_protected_files_are_only_shared_with() -> None:
    content = blob(1, 100_000)
    contents = (content, content + b"x", content + b"yy")
    assert {one.destination.path for one in found_in(*contents, protected=2)} == {b"2"}


def test_volumes_are_apart() -> None:
    finder = RunFinder()
    for number in (0, 1):
        tree = sign(blob(1, 50_000) + b"%d" % number, PARAMS)
        file = ChunkedFile(RootedPath(0, b"%d" % number), b"volume %d" % number, BLOCK, tree, False)
        assert finder.add(file) == []


def test_what_is_not_remembered_is_counted() -> None:
    finder = RunFinder(most_chunks=10)
    contents = (blob(1, 100_000), blob(1, 100_000) + b"x")
    check(found_in(*contents, finder=finder), contents)
    assert finder.forgotten > 500
