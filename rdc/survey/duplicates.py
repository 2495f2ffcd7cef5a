"""Finds files of identical content by size, then by both ends, then by digest, and reads as little as
possible.

Each stage keeps only files that still equal another one. Sizes cost no reading. Hard links of one file count
as one file from there on. The ends of files tell most of the rest apart. Only then is a file read whole,
unless the catalog knows it.
"""

from __future__ import annotations

import contextlib
import os
from array import array

from rdc.lean.records import Record
from rdc.limits import SIZE_LIMIT
from rdc.model.duplicates import (
    DirectoryGroup,
    DuplicateFile,
    DuplicateGroup,
    DuplicateOptions,
    DuplicateOrder,
    DuplicateSummary,
)
from rdc.progress import silent, stopping
from rdc.survey.directories import fold_directories
from rdc.survey.read import (
    BATCHED_BYTES,
    DIGEST_BYTES,
    END_BYTES,
    UNKNOWN,
    Comparison,
    ContentReader,
    Keyed,
    usable_workers,
)
from rdc.survey.walk.directory_rows import DirectoryRows
from rdc.survey.walk.file_columns import FileColumns, Groups, OtherNames, equal_groups, split_names
from rdc.survey.walk.walk_paths import StorageUse, walk_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rdc.catalog.store import SignatureStore, UserCatalog
    from rdc.progress import Reporter, StopSignal


class Duplicates:
    """The result. Iterate for the groups in the chosen order, as often as needed.

    Groups are made during iteration; the stored result takes some fifty bytes per file.
    """

    def __init__(
        self,
        files: FileColumns,
        groups: Groups,
        names: OtherNames | None,
        order: DuplicateOrder,
        summary: DuplicateSummary,
        directories: _Folded | None = None,
    ) -> None:
        self._files = files
        self._groups = groups
        self._names = names
        self._order = order
        self.summary = summary
        self.directories = () if directories is None else directories.groups
        """Groups of equal directories, in the chosen order."""
        self._covered: Mapping[int, int] = {} if directories is None else directories.covered

    def __iter__(self) -> Iterator[DuplicateGroup]:
        starts = array("Q", [0])
        for count in self._groups.counts:
            starts.append(starts[-1] + count)
        for number in self._ordered(starts):
            rows = self._groups.members[starts[number] : starts[number + 1]]
            shown = map(self._files.shown, rows)
            links: list[tuple[bytes, ...]]
            if self._names is None:
                links = [()] * len(rows)
            else:
                links = [tuple(map(self._files.shown, self._names.of(row))) for row in rows]
            covered = map(self._covered.__contains__, rows)
            files = map(DuplicateFile, shown, links, map(self._files.unallocated, rows), covered)
            yield DuplicateGroup(self._files.sizes[rows[0]], tuple(files))

    def _ordered(self, starts: array[int]) -> Sequence[int]:
        """Group numbers by falling weight. Groups of equal weight keep the order of their paths."""
        sizes, counts = self._files.sizes, self._groups.counts
        firsts = [self._groups.members[start] for start in starts[:-1]]
        weights: Sequence[int]
        if self._order is DuplicateOrder.WASTE:
            weights = [_waste(self._files, group) for group in self._groups]
        elif self._order is DuplicateOrder.SIZE:
            weights = [sizes[first] for first in firsts]
        elif self._order is DuplicateOrder.COUNT:
            weights = counts
        else:
            weights = [0] * len(firsts)
        return sorted(range(len(firsts)), key=lambda number: (-weights[number], firsts[number]))


def find_duplicates(
    paths: Sequence[bytes],
    options: DuplicateOptions = DuplicateOptions(),  # noqa: B008 - frozen
    reporter: Reporter = silent,
    catalog: SignatureStore | UserCatalog | None = None,
    stop: StopSignal | None = None,
    *,
    directories: bool = False,
) -> Duplicates:
    """Return the groups of identical regular files at and below `paths`; with `directories`, also those of
    directories.

    With `options.reference`, each group is one file there and then those of `paths`. With `options.across`, a
    group has files of several of `paths`. A file that cannot be read, vanishes or changes meanwhile is
    reported as a Problem and is in no group. Large files that `catalog` knows are not read.
    """
    reporter = stopping(reporter, stop)
    walked = DirectoryRows() if directories else None
    tree, searched = walk_paths(
        [*options.reference, *paths],
        options.rules,
        reporter,
        one_file_system=options.one_file_system,
        use=StorageUse(options.depth, options.max_rate),
        stop=stop,
        directories=walked,
    )
    rows, names = _candidates(tree, options)
    files, candidates, names = _selected(tree, rows, names, listed=options.links or directories)
    del tree, rows
    search = _Search(files, options, reporter, catalog)
    found = search.groups(candidates)
    groups = _trimmed(found, files, options)
    folded = None if walked is None else _folded(walked, files, names, found, groups, options)
    waste = sum([_waste(files, group) for group in groups])
    summary = DuplicateSummary(
        searched, len(groups), len(groups.members), waste, search.files_read, search.bytes_read
    )
    return Duplicates(files, groups, names if options.links else None, options.order, summary, folded)


class _Folded(Record):
    """Groups of equal directories as they are listed."""

    groups: tuple[DirectoryGroup, ...]
    covered: Mapping[int, int]
    """By row of a file that a further directory has, the number of its group."""


def _folded(
    walked: DirectoryRows,
    files: FileColumns,
    names: OtherNames,
    found: Groups,
    groups: Groups,
    options: DuplicateOptions,
) -> _Folded:
    """Return the groups of equal directories. `found`: all groups of files; `groups`: the listed ones."""
    known = len(options.reference)
    fold = fold_directories(
        walked, files, names, found, lambda operands: _places_asked_for(operands, options), known
    )
    wastes = [0] * len(fold.groups)
    for rows in groups:
        for row in rows[1:]:
            number = fold.group_of.get(row)
            if number is not None:
                wastes[number] += _room(files, row)
    listed = [
        DirectoryGroup(
            tuple(map(walked.shown, (group.first, *group.further))),
            fold.files[group.first],
            fold.bytes[group.first],
            waste,
        )
        for group, waste in zip(fold.groups, wastes, strict=True)
    ]
    weigh = {
        DuplicateOrder.WASTE: lambda group: -group.waste,
        DuplicateOrder.SIZE: lambda group: -group.bytes,
        DuplicateOrder.COUNT: lambda group: -len(group.paths_bytes),
        DuplicateOrder.PATH: lambda group: 0,
    }[options.order]
    return _Folded(tuple(sorted(listed, key=weigh)), fold.group_of)


def _candidates(tree: FileColumns, options: DuplicateOptions) -> tuple[array[int], OtherNames]:
    """Return the rows of regular files that have the size of another file, and the other names of these
    files."""
    most = options.max_size
    chosen = array("I")
    groups = equal_groups(tree.sizes, tree.sizes.itemsize)
    for rows in groups:
        size = tree.sizes[rows[0]]
        if size < options.min_size or (most is not None and size > most):
            continue
        if _is_asked_for(rows, tree, options):
            chosen.extend(rows)
    chosen, names = split_names(tree, chosen)
    if len(names):
        # A file that shared its size only with its own hard links is alone now.
        sizes = array("Q", map(tree.sizes.__getitem__, chosen))
        chosen = equal_groups(sizes, sizes.itemsize).of(chosen).members
    return array("I", sorted(chosen)), names


def _is_asked_for(rows: Sequence[int], files: FileColumns, options: DuplicateOptions) -> bool:
    """Return whether files that may be identical lie where `options` ask for."""
    return not (options.reference or options.across) or _places_asked_for(map(files.operand, rows), options)


def _places_asked_for(places: Iterable[int], options: DuplicateOptions) -> bool:
    """Return whether equal entries below PATHs of these numbers are a group that `options` ask for."""
    operands = set(places)
    known = len(options.reference)
    if known and not (min(operands) < known <= max(operands)):
        return False
    return not options.across or len([number for number in operands if number >= known]) > 1


def _trimmed(groups: Groups, files: FileColumns, options: DuplicateOptions) -> Groups:
    """Return the groups that `options` ask for. Each keeps only the first of its files in the reference, so
    that the files outside of it are the waste."""
    if not (options.reference or options.across):
        return groups
    known = len(options.reference)

    def trimmed(rows: array[int]) -> array[int]:
        inside = [row for row in rows if files.operand(row) < known]
        return array("I", [*inside[:1], *(row for row in rows if files.operand(row) >= known)])

    return Groups.of_rows(trimmed(rows) for rows in groups if _is_asked_for(rows, files, options))


def _selected(
    tree: FileColumns, rows: array[int], names: OtherNames, *, listed: bool
) -> tuple[FileColumns, Sequence[int], OtherNames]:
    """Return the files of these rows, renumbered. `listed`: include other names of files, and files whose
    only equals they are."""
    if not listed or not len(names):
        return tree.chosen(rows), range(len(rows)), OtherNames([])
    pairs = list(names.pairs())
    chosen = array("I", sorted({*rows, *(row for pair in pairs for row in pair)}))
    numbers = dict(zip(chosen, range(len(chosen)), strict=True))
    renumbered = [(numbers[row], numbers[other]) for row, other in pairs]
    return tree.chosen(chosen), array("I", map(numbers.__getitem__, rows)), OtherNames(renumbered)


class _Search:
    """Reads `files` as far as needed and finds the groups."""

    def __init__(
        self,
        files: FileColumns,
        options: DuplicateOptions,
        reporter: Reporter,
        catalog: SignatureStore | UserCatalog | None,
    ) -> None:
        self._files = files
        self._report = reporter
        self._catalog = catalog
        self._verify = options.verify
        self._reader = ContentReader(files, reporter, options.workers or usable_workers())
        self.files_read = 0
        self.bytes_read = 0

    def groups(self, rows: Sequence[int]) -> Groups:
        """Return the groups among `rows`, which must increase. The rows of each group increase too."""
        keyed = self._reader.ends(rows)
        self.files_read = len(keyed.rows)
        alike = _equal(keyed)
        del keyed
        small = self._of_size(alike, 0, 2 * END_BYTES)
        medium = self._of_size(alike, 2 * END_BYTES, BATCHED_BYTES)
        large = self._of_size(alike, BATCHED_BYTES, SIZE_LIMIT)
        found = Groups.joined([small, *self._whole(medium, large)])
        if self._verify:
            found = self._verified(found)
        self.bytes_read += self._reader.bytes_read
        return _sorted(found)

    def _of_size(self, groups: Groups, above: int, most: int) -> Groups:
        """Return the groups of files with more than `above` and at most `most` bytes. `above` = 0 includes
        empty files."""
        sizes = self._files.sizes
        return Groups.of_rows(
            group for group in groups if above < sizes[group[0]] <= most or sizes[group[0]] == above == 0
        )

    def _whole(self, medium: Groups, large: Groups) -> Iterator[Groups]:
        """Yield the groups among files with equal ends."""
        sizes = self._files.sizes
        self._reader.expect(
            sum([sizes[row] for row in medium.members])
            + sum([sizes[row] - self._files.unallocated(row) for row in large.members])
        )
        if len(medium):
            yield _equal(self._reader.whole(sorted(medium.members)))
        if len(large):
            with self._opened_catalog() as catalog:
                known = None if catalog is None else self._by_roots(large, catalog)
                if known is not None:
                    yield known.found
                unknown = large.members if known is None else known.rest
                if unknown:
                    yield _equal(self._reader.large(unknown))

    def _by_roots(self, groups: Groups, catalog: SignatureStore) -> _Known | None:
        """Return the groups by signature roots; None if the catalog knows none of these files. If the catalog
        knows one file of a group, the others are signed too. That reads less than digesting every file."""
        known = self._reader.known(groups.members, catalog)
        roots = dict(zip(known.rows, known.digests(), strict=True))
        if not any(root != UNKNOWN for root in roots.values()):
            return None
        from rdc.catalog.signer import FileSigner

        missing, rest = array("I"), array("I")
        keyed = Keyed(array("I"), bytearray())
        for group in groups:
            # Files that could not be opened were reported and are missing from `roots`.
            rows = [row for row in group if row in roots]
            unknown = [row for row in rows if roots[row] == UNKNOWN]
            if len(unknown) == len(rows):
                rest.extend(rows)
                continue
            missing.extend(unknown)
            for row in rows:
                if roots[row] != UNKNOWN:
                    keyed.rows.append(row)
                    keyed.keys.extend(roots[row])
        signed = self._reader.signed(missing, FileSigner(catalog=catalog, workers=1))
        keyed.rows.extend(signed.rows)
        keyed.keys.extend(signed.keys)
        return _Known(_equal(keyed), rest)

    @contextlib.contextmanager
    def _opened_catalog(self) -> Iterator[SignatureStore | None]:
        """Yield the catalog, or None if it cannot know any file."""
        if self._catalog is None:
            yield None
            return
        from rdc.catalog.catalog import Catalog, opened_catalog

        with opened_catalog(self._catalog, self._report) as store:
            # Asking about each file costs as much as reading a small one.
            yield store if isinstance(store, Catalog) and os.path.exists(store.database.path) else None

    def _verified(self, groups: Groups) -> Groups:
        comparison = Comparison(self._files, self._report)
        found = Groups.of_rows(
            array("I", rows) for group in groups for rows in comparison.classes(group) if len(rows) > 1
        )
        self.bytes_read += comparison.bytes_read
        return found


class _Known(Record):
    found: Groups
    rest: array[int]
    """Rows of the groups of which the catalog knows no file."""


def _waste(files: FileColumns, group: Sequence[int]) -> int:
    """Return the bytes on disk of all files of a group but the first."""
    return sum([_room(files, row) for row in group[1:]])


def _room(files: FileColumns, row: int) -> int:
    """Return the bytes of a file on disk, without holes."""
    return min(files.sizes[row], files.allocated[row])


def _equal(keyed: Keyed) -> Groups:
    return equal_groups(keyed.keys, DIGEST_BYTES).of(keyed.rows)


def _sorted(groups: Groups) -> Groups:
    return Groups.of_rows(array("I", sorted(group)) for group in groups)
