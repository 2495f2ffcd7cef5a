"""Finds similar files and folders, for `rdc similar`."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from itertools import chain
from operator import eq

from blake3 import blake3

from rdc.chunking import SYNC_PARAMS
from rdc.errors import FileError
from rdc.files.base.paths import changed
from rdc.files.facts.extents import data_bytes, holes
from rdc.kernel import Cutter, shared_numbers, sorted_pairs, window_hashes, window_sketch
from rdc.kernel.constants import SKETCH_BYTES, WINDOW_BYTES
from rdc.lean.records import Record
from rdc.limits import FOLDER_PAIRS, SIMILAR_PAIRS
from rdc.model.similar import (
    Resemblance,
    SimilarFile,
    SimilarFolders,
    SimilarGroup,
    SimilarOptions,
    SimilarSummary,
)
from rdc.progress import Problem, Reporter, StopSignal, check_stop, silent
from rdc.signature.tree import NO_TRAITS, TRAITS_BYTES, traits_at
from rdc.similarity.index import SimilarityIndex, UnionFind, keys_of
from rdc.similarity.traits import Traits, probability_of_matches
from rdc.survey.read import BATCHED_BYTES, DIGEST_BYTES, SPAN_BYTES, ContentReader, Keyed, usable_workers
from rdc.survey.walk.file_columns import FileColumns, OtherNames, equal_groups, split_names
from rdc.survey.walk.walk_paths import StorageUse, walk_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.files.root.source_file import SourceFile


KEY_BYTES = DIGEST_BYTES + TRAITS_BYTES + SKETCH_BYTES
"""Bytes per key: a digest of the content, the traits or NO_TRAITS, and the sketch or NO_SKETCH."""

NO_SKETCH = bytes(SKETCH_BYTES)
"""Stands for the sketch of a file larger than BATCHED_BYTES, which a catalog spares reading."""


class FileTraits(Record):
    """Files of different content, one per row."""

    rows: array[int]
    """Typecode 'I', increasing. The first of several identical files stands for all."""
    traits: bytearray
    """TRAITS_BYTES per row; NO_TRAITS for a file without features."""
    sketches: bytearray
    """SKETCH_BYTES bytes per row: samples of its windows, or NO_SKETCH."""
    copies: OtherNames
    """The files identical to each row."""

    def of(self, position: int) -> bytes:
        """Return the traits of rows[position]; b'' for a file without features."""
        return traits_at(self.traits, position)


def read_traits(
    files: FileColumns, rows: Sequence[int], reader: ContentReader, catalog: SignatureStore
) -> FileTraits:
    """Return the traits of `rows` (increasing), equal to those in their signatures. Large files are looked up
    in `catalog`, which stores the signatures of those that had to be read."""
    small = [row for row in rows if files.sizes[row] <= BATCHED_BYTES]
    large = [row for row in rows if files.sizes[row] > BATCHED_BYTES]
    reader.expect(sum([files.sizes[row] for row in rows]))
    parts = [reader.batched(small, BATCHED_BYTES, 0, _keys)]
    if large:
        parts.append(_signed(large, reader, catalog))
    found = Keyed(array("I"), bytearray())
    for part in parts:
        found.rows.extend(part.rows)
        found.keys.extend(part.keys)
    return _distinct(found)


def _keys(data: bytes, sizes: Sequence[int], head: int, tail: int) -> list[bytes]:
    view = memoryview(data)
    keys = []
    at = 0
    for size in sizes:
        content = view[at : at + size]
        # Traits do not depend on the chunk sizes.
        cutter = Cutter(SYNC_PARAMS.min_size, SYNC_PARAMS.max_size)
        cutter.feed(content)
        cutter.finish()
        keys.append(blake3(content).digest() + (cutter.traits() or NO_TRAITS) + window_sketch(content))
        at += size
    return keys


def _signed(rows: Sequence[int], reader: ContentReader, catalog: SignatureStore) -> Keyed:
    from rdc.catalog.signer import FileSigner

    signer = FileSigner(catalog=catalog, workers=1)

    def key(source: SourceFile) -> bytes:
        tree = reader.sign(source, signer)
        return bytes(KEY_BYTES) if tree is None else tree.root + (tree.traits or NO_TRAITS) + NO_SKETCH

    return reader.each(reader.disk_order(rows), key)


def _distinct(keyed: Keyed) -> FileTraits:
    rows, keys = keyed.rows, keyed.keys
    copy = bytearray(len(rows))
    pairs = []
    for positions in equal_groups(keys, KEY_BYTES):
        first = min(positions, key=rows.__getitem__)
        for position in positions:
            if position != first:
                copy[position] = 1
                pairs.append((rows[first], rows[position]))
    unique = sorted((position for position in range(len(rows)) if not copy[position]), key=rows.__getitem__)
    traits, sketches = bytearray(), bytearray()
    for position in unique:
        key = keys[position * KEY_BYTES : (position + 1) * KEY_BYTES]
        traits += key[DIGEST_BYTES:-SKETCH_BYTES]
        sketches += key[-SKETCH_BYTES:]
    unique_rows = array("I", [rows[position] for position in unique])
    return FileTraits(unique_rows, traits, sketches, OtherNames(pairs))


# WindowSets: measures how much two files have in common by their windows of 32 bytes.

SAMPLED_WINDOWS = 1 << 14
"""Windows of a larger file that are sampled, or half as many: a standard error of 0.006 at most."""

FEW_WINDOWS = 1 << 16
"""Different windows of one set at most. Only content made for it has more below the limit of its size."""

GATHERED_WINDOWS = 1 << 18
"""Hashes that wait to be sorted and freed of repeated ones."""

CACHED_WINDOWS = 1 << 23
"""Windows in sets that are cached for later pairs, 8 bytes each."""


class WindowSet(Record):
    """The different windows of one file, or a sample of them."""

    hashes: bytes
    """Ascending, u64, native. All are below 2^(64 - shift)."""
    shift: int
    """All windows with a hash below that limit are there: one in 2^shift."""

    def upto(self, shift: int) -> memoryview:
        """Return the samples that a larger shift takes."""
        hashes = memoryview(self.hashes).cast("Q")
        return hashes[: bisect_left(hashes, 1 << 64 - shift)]

    def sketch(self) -> bytes:
        """Return what window_sketch() gives for the whole content, from a sample with a window in every
        bin."""
        found = bytearray(SKETCH_BYTES)
        missing = set(range(SKETCH_BYTES))
        for number in memoryview(self.hashes).cast("Q"):
            if number % SKETCH_BYTES in missing:
                missing.remove(number % SKETCH_BYTES)
                found[number % SKETCH_BYTES] = number >> 5 & 255
                if not missing:
                    break
        return bytes(found)


def window_set(spans: Iterable[bytes], size: int) -> WindowSet:
    """Return the windows of a content that comes in spans, and has `size` bytes outside of holes.

    Which windows are sampled is a function of the size and of the content: one in a power of two, by their
    hashes, so that equal windows of two files are sampled alike.
    """
    shift = max(0, (size - 1) // SAMPLED_WINDOWS).bit_length()
    gathered, before = bytearray(), b""
    for span in spans:
        joined = before + span
        before = joined[-(WINDOW_BYTES - 1) :]
        gathered += window_hashes(joined, (1 << 64 - shift) - 1)
        if len(gathered) > 8 * GATHERED_WINDOWS:
            gathered, shift = _thinned(gathered, shift)
    gathered, shift = _thinned(gathered, shift)
    return WindowSet(bytes(gathered), shift)


def _thinned(gathered: bytearray, shift: int) -> tuple[bytearray, int]:
    """Sort them, and sample half as many until few are left."""
    found = WindowSet(sorted_pairs(gathered), shift)
    while len(found.upto(shift)) > FEW_WINDOWS:
        shift += 1
    return bytearray(found.upto(shift)), shift


def resemblance(first: WindowSet, second: WindowSet) -> Resemblance:
    """Return the part of both files' windows that is common. A file without windows is contained in every
    file and equals another one without."""
    shift = max(first.shift, second.shift)
    one, other = first.upto(shift), second.upto(shift)
    common = shared_numbers(one, other)
    both = len(one) + len(other) - common
    return Resemblance(
        common / both if both else 1.0,
        common / len(one) if len(one) else 1.0,
        common / len(other) if len(other) else 1.0,
    )


class WindowSets:
    """Compares rows of FileColumns. The most recently used sets are cached, since a file is in several
    pairs."""

    def __init__(self, reporter: Reporter) -> None:
        self._report = reporter
        self._cached: OrderedDict[tuple[int, int], WindowSet] = OrderedDict()
        self._cached_windows = 0
        self._failed: set[tuple[int, int]] = set()
        self.bytes_read = 0

    def compare(
        self, files: FileColumns, first: int, second: int, others: FileColumns | None = None
    ) -> Resemblance | None:
        """Compare row `first` of `files` with row `second` of `others` (default: `files`). None if one of
        them cannot be read as listed any more; this is reported once per file."""
        one = self.of(files, first)
        other = self.of(files if others is None else others, second)
        return None if one is None or other is None else resemblance(one, other)

    def of(self, files: FileColumns, row: int) -> WindowSet | None:
        """Return the windows of one row. None if it cannot be read as listed any more."""
        key = (id(files), row)
        cached = self._cached.get(key)
        if cached is not None:
            self._cached.move_to_end(key)
            return cached
        if key in self._failed:
            return None
        try:
            made = self._read(files, row)
        except FileError as error:
            self._failed.add(key)
            self._report(Problem(error.code, files.shown(row), str(error)))
            return None
        self._cached[key] = made
        self._cached_windows += len(made.hashes) // 8
        # The two sets of the present pair stay cached, whatever their size.
        while self._cached_windows > CACHED_WINDOWS and len(self._cached) > 2:
            _, dropped = self._cached.popitem(last=False)
            self._cached_windows -= len(dropped.hashes) // 8
        return made

    def _read(self, files: FileColumns, row: int) -> WindowSet:
        with files.open(row) as source:
            if source.size != files.sizes[row]:
                listed, found_size = f"{files.sizes[row]} bytes", f"{source.size}"
                raise changed(files.path(row), files.shown(row), listed, found_size)
            size = source.size
            if source.taken is not None:
                size = data_bytes(source.fileno(), source.size, source.allocated)
            made = window_set(_spans(source), size)
            source.check_unchanged()
            self.bytes_read += source.size
        return made


def _spans(source: SourceFile) -> Iterator[bytes]:
    """Yield the content in spans, with short holes: the windows of zeros are one however many there are."""
    if source.taken is None:
        yield from source.spans(SPAN_BYTES)
        return
    at = 0
    for start, end in chain(holes(source.fileno(), source.size), [(source.size, source.size)]):
        while at < start:
            span = source.pread(at, min(start - at, SPAN_BYTES))
            at += len(span)
            yield span
        yield bytes(min(end - start, 2 * WINDOW_BYTES))
        at = end


# Sketches: tells files apart that differ too much, without reading them again.

RECALL = 0.99
"""Part of the pairs at the threshold whose sketches agree in enough samples, or more."""


def least_agreeing(threshold: float) -> int:
    """Return how many samples of two sketches must agree for files that resemble each other by
    `threshold`."""
    least = 0
    while probability_of_matches(threshold, least + 1, SKETCH_BYTES, 8) >= RECALL:
        least += 1
    return least


class Sketches:
    """The sketches of all files of a search. Those that reading did not give are made from windows, and
    kept."""

    def __init__(self, files: FileColumns, traits: FileTraits, sets: WindowSets, threshold: float) -> None:
        self.least = least_agreeing(threshold)
        self._files = files
        self._traits = traits
        self._sets = sets
        self._made: dict[int, bytes] = {}
        """By position in FileTraits.rows."""

    def differ(self, first: int, second: int) -> bool:
        """Return whether the files at two positions of FileTraits.rows agree in too few samples, or one of
        them cannot be read any more."""
        agreeing: int = sum(map(eq, self._of(first), self._of(second)))
        return agreeing < self.least

    def _of(self, position: int) -> bytes:
        at = position * SKETCH_BYTES
        known = bytes(self._traits.sketches[at : at + SKETCH_BYTES])
        if known != NO_SKETCH:
            return known
        if position not in self._made:
            made = self._sets.of(self._files, self._traits.rows[position])
            if made is None:
                return b""
            self._made[position] = made.sketch()
        return self._made[position]


# Finds similar files: candidates by traits and sketches, then measured by windows, then groups.
#
# One reading of a file gives its traits and its sketch. Two files are a candidate if four traits agree, and
# as many samples of their sketches as all but one in a thousand similar pairs have. Each candidate is
# confirmed by comparing all windows, the strongest first. Pairs that are in one group already are not
# compared: n files that are all similar cost n - 1 comparisons. Files that only seem similar cost a bounded
# number each.
#
# Rows come in the order of paths, whatever order a user names them in, and no rule depends on the number of
# files. So the result is a function of the files alone.

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


class ReadFiles(Record):
    """The files that were read, and their traits."""

    files: FileColumns
    traits: FileTraits
    searched: int


class Edge(Record):
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
    """Return the traits of all files at and below `paths` whose sizes `options` allow. Files that cannot be
    read are reported."""
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
    options: SimilarOptions = SimilarOptions(),  # noqa: B008 - frozen
    reporter: Reporter = silent,
    *,
    more_pairs: bool = False,
    stop: StopSignal | None = None,
) -> Similar:
    """Return the groups of files in which each resembles another by at least `options.threshold`.

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
    options: SimilarOptions = SimilarOptions(),  # noqa: B008 - frozen
    reporter: Reporter = silent,
) -> list[SimilarFile]:
    """Return at most `limit` files that resemble the one file of `query` by at least `options.threshold`,
    best first.

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


# Finds overlapping directories, by the bytes that their files have in common.
#
# Files are matched in pairs: identical files first, then files found similar, for the share of their windows
# that is common. A matched pair counts for the directories of both files, and for the directories above while
# these have the same names. So releases of a package match at their top directories, and copied photographs
# in the folders that hold them. Only a few pairs of a file with many similar files are known, so the true
# overlap may be larger.

BOILERPLATE_COPIES = 32
"""Contents with at least this many copies are not matched: a licence text in a thousand directories says
nothing about any two of them."""


class FolderOverlaps(Record):
    pairs: tuple[SimilarFolders, ...]
    """Most shared bytes first. No directory contains its partner, and no pair repeats the pair of their
    parents."""
    boilerplate: int
    """Contents left out because they have too many copies."""
    dropped: int
    """Matches left out for lack of memory."""


def folder_overlaps(read: ReadFiles, similar: Similar, threshold: float) -> FolderOverlaps:
    """Return the pairs of directories that share at least `threshold` of the smaller one's bytes."""
    return _Overlaps(read).found(similar, threshold)


class _Overlaps:
    def __init__(self, read: ReadFiles) -> None:
        self._files = read.files
        self._traits = read.traits
        self._shared: defaultdict[tuple[bytes, bytes], int] = defaultdict(int)
        self._dropped = 0

    def found(self, similar: Similar, threshold: float) -> FolderOverlaps:
        boilerplate = self._match_copies()
        for edge in similar.edges:
            first, second = self._traits.rows[edge.first], self._traits.rows[edge.second]
            shared = round(self._files.sizes[first] * edge.first_in_second)
            for one, other in self._across(first, second):
                self._count(one, other, shared)
        sizes = self._sizes()
        pairs = [
            SimilarFolders(first, second, shared, sizes[first], sizes[second])
            for (first, second), shared in self._shared.items()
        ]
        chosen = {(pair.first, pair.second): pair for pair in pairs if pair.overlap >= threshold}
        # A pair whose parent directories are also a pair is left out.
        tops = [pair for key, pair in chosen.items() if _above(*key) not in chosen]
        tops.sort(key=lambda pair: (-pair.shared, pair.first, pair.second))
        return FolderOverlaps(tuple(tops), boilerplate, self._dropped)

    def _match_copies(self) -> int:
        """Count identical files. Returns the number of contents with too many copies."""
        boilerplate = 0
        for row in self._traits.rows:
            copies = self._traits.copies.of(row)
            if not copies:
                continue
            if len(copies) >= BOILERPLATE_COPIES:
                boilerplate += 1
                continue
            for one, other in self._matched([row, *copies]):
                self._count(one, other, self._files.sizes[row])
        return boilerplate

    def _across(self, first: int, second: int) -> Iterator[tuple[int, int]]:
        """Pair two similar files and their copies: those of equal name, and the two files themselves."""
        ones, others = ([row, *self._traits.copies.of(row)] for row in (first, second))
        if max(len(ones), len(others)) > BOILERPLATE_COPIES:
            return
        for one in ones:
            for other in others:
                if self._files.name(one) == self._files.name(other) or (one, other) == (first, second):
                    yield one, other

    def _matched(self, rows: list[int]) -> Iterator[tuple[int, int]]:
        """Pair these identical files between any two directories, as many as both have."""
        by_folder: dict[bytes, list[int]] = {}
        for row in rows:
            by_folder.setdefault(self._folder(row), []).append(row)
        folders = sorted(by_folder)
        for at, folder in enumerate(folders):
            for other in folders[at + 1 :]:
                yield from zip(by_folder[folder], by_folder[other], strict=False)

    def _count(self, one: int, other: int, shared: int) -> None:
        first, second = sorted((self._folder(one), self._folder(other)))
        while not _nested(first, second):
            if (first, second) in self._shared or len(self._shared) < FOLDER_PAIRS:
                self._shared[first, second] += shared
            else:
                self._dropped += 1
            if os.path.basename(first) != os.path.basename(second):
                return
            first, second = _above(first, second)

    def _folder(self, row: int) -> bytes:
        return self._files.directory(row).shown.rstrip(b"/") or b"."

    def _sizes(self) -> dict[bytes, int]:
        """Total file bytes below each directory that is in a pair."""
        sizes = dict.fromkeys((folder for pair in self._shared for folder in pair), 0)
        for row, size in enumerate(self._files.sizes):
            folder = self._folder(row)
            while True:
                if folder in sizes:
                    sizes[folder] += size
                above = os.path.dirname(folder)
                if above in {folder, b""}:
                    break
                folder = above
        return sizes


def _nested(first: bytes, second: bytes) -> bool:
    """Return whether the directories are equal or one contains the other, which is no overlap. `first` must
    sort first."""
    return not first or second == first or second.startswith(first.rstrip(b"/") + b"/")


def _above(first: bytes, second: bytes) -> tuple[bytes, bytes]:
    one, other = sorted((os.path.dirname(first), os.path.dirname(second)))
    return one, other
