"""Finds similar files: candidates by traits and sketches, then measured by windows, then groups.

One reading of a file gives its traits and its sketch. Two files are a candidate if four traits agree, and so
many samples of their sketches as all but one in a thousand similar pairs have. Each candidate is confirmed by
comparing all windows, the strongest first. Pairs that are in one group already are not compared: n files that
are all similar cost n - 1 comparisons. Files that only seem similar cost a bounded number each.

Rows come in the order of paths, whatever order a user names them in, and no rule depends on the number of
files. So the result is a function of the files alone.
"""

from __future__ import annotations

from array import array

from rdc.lean.records import dataclass
from rdc.limits.searches import SIMILAR_PAIRS
from rdc.model.similar import SimilarFile, SimilarGroup, SimilarOptions, SimilarSummary
from rdc.progress import check_stop, silent
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.pairs import keys_of
from rdc.similarity.traits import Traits
from rdc.similarity.union_find import UnionFind
from rdc.survey.read.content_digests import ContentReader
from rdc.survey.read.ordered_threads import usable_workers
from rdc.survey.similar.file_traits import FileTraits, read_traits
from rdc.survey.similar.sketches import Sketches
from rdc.survey.similar.window_sets import WindowSets
from rdc.survey.walk.hard_links import split_names
from rdc.survey.walk.storage_use import StorageUse
from rdc.survey.walk.walk_paths import walk_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["ReadFiles", "Similar", "find_similar", "rank_similar", "read_files"]

MATCHES_LEAST = 4
"""Fewest agreeing traits of a candidate: 95 of 100 pairs at a resemblance of 0.5 have that many. So have 13
million pairs of a million unrelated files, which their sketches tell apart."""

RANKED_CANDIDATES = 256
"""Most files that are compared with the query."""

VAIN_MOST = 1024
"""Fruitless comparisons of one file after which its weaker candidates are left out. In a flood of files that
resemble each other a little less than the threshold, every pair is a candidate."""

PAIRS_A_FILE = 16
"""Similar pairs of one file, with `more_pairs`. Few versions of a file exist, so this is enough."""


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """The files that were read, and their traits."""

    files: FileColumns
    traits: FileTraits
    searched: int


@dataclass(frozen=True, slots=True)
class Edge:
    """Two files that were compared and are similar, as positions in FileTraits.rows."""

    first: int
    second: int
    jaccard: float
    first_in_second: float
    second_in_first: float


class Similar:
    """The result. Iterate for the groups, those with the most bytes first."""

    def __init__(self, read: ReadFiles, edges: list[Edge], summary: SimilarSummary) -> None:
        self._read = read
        self.edges = edges
        """Enough similar pairs to connect every group; more with `more_pairs`."""
        self.summary = summary
        self._best: dict[int, tuple[float, float, int]] = {}
        for edge in edges:
            self._note(edge.first, (edge.jaccard, edge.first_in_second, edge.second))
            self._note(edge.second, (edge.jaccard, edge.second_in_first, edge.first))

    def __iter__(self) -> Iterator[SimilarGroup]:
        sets = UnionFind()
        for edge in self.edges:
            sets.join(edge.first, edge.second)
        members: dict[int, array[int]] = {}
        for position in sorted(self._best):
            members.setdefault(sets.top(position), array("I")).append(position)
        sizes, rows = self._read.files.sizes, self._read.traits.rows
        weight = {top: sum([sizes[rows[position]] for position in group]) for top, group in members.items()}
        for top in sorted(members, key=lambda top: (-weight[top], members[top][0])):
            yield SimilarGroup(tuple([self._file(position) for position in members[top]]))

    def _note(self, position: int, found: tuple[float, float, int]) -> None:
        if position not in self._best or found[0] > self._best[position][0]:
            self._best[position] = found

    def _file(self, position: int) -> SimilarFile:
        jaccard, contained, like = self._best[position]
        files, rows = self._read.files, self._read.traits.rows
        copies = tuple([files.shown(copy) for copy in self._read.traits.copies.of(rows[position])])
        size = files.sizes[rows[position]]
        return SimilarFile(
            files.shown(rows[position]), size, jaccard, contained, files.shown(rows[like]), copies
        )


def read_files(
    paths: Sequence[bytes],
    options: SimilarOptions,
    reporter: Reporter,
    catalog: SignatureStore,
    stop: StopSignal | None = None,
) -> ReadFiles:
    """Traits of all files at and below `paths` whose sizes `options` allow. Files that cannot be read are
    reported."""
    tree, searched = walk_paths(
        sorted(paths),
        options.rules,
        reporter,
        one_file_system=options.one_file_system,
        use=StorageUse(options.depth, options.max_rate),
        stop=stop,
    )
    most = options.max_size
    rows = [
        row
        for row, size in enumerate(tree.sizes)
        if size >= max(1, options.min_size) and (most is None or size <= most)
    ]
    chosen, _ = split_names(tree, rows)
    files = tree.chosen(chosen)
    del tree
    reader = ContentReader(files, reporter, options.workers or usable_workers())
    return ReadFiles(files, read_traits(files, range(len(files)), reader, catalog), searched)


def find_similar(
    read: ReadFiles,
    options: SimilarOptions = SimilarOptions(),  # noqa: B008
    reporter: Reporter = silent,
    *,
    more_pairs: bool = False,
    stop: StopSignal | None = None,
) -> Similar:
    """Groups of files in which each resembles another by at least `options.threshold`.

    `more_pairs`: pairs inside one group are compared too, up to PAIRS_A_FILE per file. Raises
    StoppedError once `stop` is set.
    """
    rows = read.traits.rows
    index = _index(read)
    found = index.pairs(MATCHES_LEAST)
    sets = WindowSets(reporter)
    sketches = Sketches(read.files, read.traits, sets, options.threshold)
    candidates, left_out = found.strongest(SIMILAR_PAIRS, read.traits.sketches, sketches.least)
    groups, edges = UnionFind(), []
    vain, pairs_of = array("H", bytes(2 * len(rows))), bytearray(len(rows))
    compared = failed = 0
    for first, second in map(keys_of, candidates):
        check_stop(stop)
        known = groups.top(first) == groups.top(second)
        if known and (not more_pairs or max(pairs_of[first], pairs_of[second]) >= PAIRS_A_FILE):
            continue
        if max(vain[first], vain[second]) >= VAIN_MOST:
            left_out += 1
            continue
        if sketches.differ(first, second):
            continue
        truth = sets.compare(read.files, rows[first], rows[second])
        if truth is None:
            continue
        compared += 1
        if truth.jaccard < options.threshold:
            failed += 1
            vain[first] += 1
            vain[second] += 1
            continue
        groups.join(first, second)
        for position in (first, second):
            pairs_of[position] = min(pairs_of[position] + 1, PAIRS_A_FILE)
        edges.append(Edge(first, second, truth.jaccard, truth.first_in_second, truth.second_in_first))
    grouped = {position for edge in edges for position in (edge.first, edge.second)}
    summary = SimilarSummary(
        searched=read.searched,
        files=len(index),
        groups=len({groups.top(position) for position in grouped}),
        grouped=len(grouped),
        min_matches=MATCHES_LEAST,
        candidates=compared,
        false_candidates=failed,
        left_out=left_out + found.skipped,
    )
    return Similar(read, edges, summary)


def rank_similar(
    query: ReadFiles,
    read: ReadFiles,
    limit: int,
    options: SimilarOptions = SimilarOptions(),  # noqa: B008
    reporter: Reporter = silent,
) -> list[SimilarFile]:
    """At most `limit` files that resemble the one file of `query` by at least `options.threshold`, best
    first.

    Among equally similar files, those that contain more of it come first. The file itself is left out.
    """
    if not len(query.traits.rows) or not query.traits.of(0):
        return []
    target = query.traits.rows[0]
    size = query.files.sizes[target]
    matches = _index(read).query(Traits(query.traits.of(0)), RANKED_CANDIDATES, MATCHES_LEAST, size=size)
    sets = WindowSets(reporter)
    found = []
    itself = (query.files.devices[target], query.files.inodes[target])
    for match in matches:
        row = read.traits.rows[match.key]
        truth = sets.compare(read.files, row, target, query.files)
        if truth is None or truth.jaccard < options.threshold:
            continue
        shown = [
            read.files.shown(copy)
            for copy in (row, *read.traits.copies.of(row))
            if (read.files.devices[copy], read.files.inodes[copy]) != itself
        ]
        if shown:
            file = SimilarFile(
                shown[0],
                read.files.sizes[row],
                truth.jaccard,
                truth.first_in_second,
                query.files.shown(target),
                tuple(shown[1:]),
            )
            found.append((-truth.jaccard, -truth.second_in_first, match.key, file))
    return [file for *_, file in sorted(found, key=lambda one: one[:3])[:limit]]


def _index(read: ReadFiles) -> SimilarityIndex:
    index = SimilarityIndex()
    rows = read.traits.rows
    traits = map(read.traits.of, range(len(rows)))
    index.add_many(range(len(rows)), traits, map(read.files.sizes.__getitem__, rows))
    return index
