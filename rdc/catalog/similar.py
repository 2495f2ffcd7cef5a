"""SimilarFiles: finds the files most similar to a given one, among those the catalog knows below a
directory."""

from __future__ import annotations

import os
from itertools import takewhile

from rdc.catalog.file_state import params_number
from rdc.lean.records import Record
from rdc.lean.typed import Protocol, TypeVar
from rdc.limits import SIMILAR_BATCH, SIMILAR_FILES, SIMILAR_MATCHES, SIZE_LIMIT
from rdc.signature.codec import SIGNATURE_HEAD, TRAITS_LENGTH_AT
from rdc.signature.tree import TRAITS_BYTES
from rdc.similarity.index import SimilarityIndex, size_code
from rdc.similarity.traits import Traits, estimate_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator

    from rdc.chunking import ChunkParams
    from rdc.similarity.index import Match


T = TypeVar("T")

PAGE = 10_000
"""Rows held between SQLite and the index: about 200 bytes each."""

SPARE = 8
"""Matches looked up beyond the limit. A path that is stored twice uses up one of them, and equal matches are
ordered by the nearness of their paths."""

SIMILAR_LIMIT = SIMILAR_MATCHES - SPARE
"""The most files that one query can ask for."""

# Traits are read from inside the encoded signature. A column of their own would make the file 5 % larger and
# this query 7 % faster; an index over paths and traits would make the file 30 % larger. SQLite counts bytes
# from 1.
_TRAITS = f"substr(value, {TRAITS_LENGTH_AT + 2}, {TRAITS_BYTES})"
# Only constants of this package are formatted into the statement. User input is passed as parameters.
_BELOW = (
    f"SELECT id, {_TRAITS}, size FROM signature WHERE path >= ? AND path < ? AND params = ?"  # noqa: S608 - see above
    f" AND typeof(value) = 'blob' AND substr(value, 1, {len(SIGNATURE_HEAD)}) = ?"
    f" AND substr(value, {TRAITS_LENGTH_AT + 1}, 1) = x'{TRAITS_BYTES:02x}'"
    f" AND length({_TRAITS}) = {TRAITS_BYTES}"
    f" AND typeof(size) = 'integer' AND size BETWEEN 0 AND {SIZE_LIMIT} AND typeof(path) = 'blob' AND id > 0"
    f" LIMIT {SIMILAR_FILES}"
)

_ROW = "SELECT id, path, root, size FROM signature WHERE id = ?"


class SimilarityQuery(Record):
    """A query: find files similar to this one."""

    traits: bytes
    """Nine bytes. b"" is similar to nothing."""
    size: int = 0
    """Bytes. It decides between equally similar files."""
    path: bytes = b""
    """Present or future path, relative to the directory searched. It decides between files of equal
    similarity and size."""


class SimilarFile(Record):
    """A hint: the file was similar to the query when it was last signed. It may be gone or changed since."""

    path: bytes
    """Relative to the directory searched."""
    root: bytes
    """32 bytes: root of the file's signature at that time. A file with another root now has changed."""
    size: int
    """Bytes, at that time."""
    matches: int
    """Traits that agree, of twelve."""

    @property
    def jaccard(self) -> float:
        return estimate_of(self.matches).jaccard


class _Row(Record):
    id: int
    path: bytes
    """The path, as in SimilarFile."""
    root: bytes
    size: int


class CatalogReader(Protocol):
    """The part of a catalog that this module uses."""

    def flush(self) -> None:
        """Write everything that waits in memory."""

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of `work` on the database as last flushed. None if the database cannot be
        read."""


class SimilarFiles:
    """The files below one directory, as the catalog had them at the first query.

    The first query reads the catalog once: 0.2 s for 130,000 files and 1.5 s for a million. It keeps 28 bytes
    per file. Each later query takes 0.3 ms at a million files. No method raises because of the catalog's
    failures: files that cannot be read are not found.
    """

    def __init__(
        self,
        catalog: CatalogReader | None,
        below: bytes,
        params: ChunkParams,
    ) -> None:
        """`below`: a directory. `params`: only signatures with these parameters count. `catalog`: None means
        no files."""
        self._catalog = catalog
        self._below = os.path.realpath(below).rstrip(b"/") + b"/"
        self._params = params
        self._index: SimilarityIndex | None = None

    def __len__(self) -> int:
        """Return the number of files that can be found."""
        return len(self._known())

    def query(self, query: SimilarityQuery, limit: int = 8, min_matches: int = 4) -> list[SimilarFile]:
        """Return at most `limit` (1 to 1,016) files that share at least `min_matches` (1 to 12) traits with
        `query`. Order: most shared traits, nearest size, same name, nearest directory."""
        (found,) = self.query_many([query], limit, min_matches)
        return found

    def query_many(
        self, queries: Iterable[SimilarityQuery], limit: int = 8, min_matches: int = 4
    ) -> Iterator[list[SimilarFile]]:
        """Like `query` for many files, in order; takes half the time. Raises ValueError for a number out of
        range and for traits that are not nine bytes."""
        if not 1 <= limit <= SIMILAR_LIMIT:
            raise ValueError(f"{limit} similar files: need 1 to {SIMILAR_LIMIT}")
        batch: list[SimilarityQuery] = []
        for one in queries:
            batch.append(one)
            if len(batch) >= SIMILAR_BATCH:
                yield from self._answers(batch, limit, min_matches)
                batch = []
        if batch:
            yield from self._answers(batch, limit, min_matches)

    def _answers(
        self, batch: list[SimilarityQuery], limit: int, min_matches: int
    ) -> Iterator[list[SimilarFile]]:
        index = self._known()
        asked = [one for one in batch if one.traits] if len(index) else []
        found = index.query_many(
            [Traits(one.traits) for one in asked],
            [one.size for one in asked],
            limit + SPARE,
            min_matches,
        )
        matches = {id(one): answer for one, answer in zip(asked, found, strict=True)}
        rows = self._rows({match.key for answer in matches.values() for match in answer})
        for one in batch:
            yield _best(one, matches.get(id(one), []), rows)[:limit]

    def _known(self) -> SimilarityIndex:
        if self._index is None:
            found = None
            if self._catalog is not None:
                self._catalog.flush()
                found = self._catalog.read(self._build)
            self._index = SimilarityIndex() if found is None else found
        return self._index

    def _build(self, connection: sqlite3.Connection) -> SimilarityIndex:
        index = SimilarityIndex()
        # Bytes compare as unsigned numbers: every path that starts with "a/" lies between "a/" and "a0".
        rows = connection.execute(
            _BELOW, (self._below, self._below[:-1] + b"0", params_number(self._params.id), SIGNATURE_HEAD)
        )
        while page := rows.fetchmany(PAGE):
            index.add_many(*zip(*page, strict=True))
        return index

    def _rows(self, ids: set[int]) -> dict[int, _Row]:
        def look(connection: sqlite3.Connection) -> list[_Row]:
            found = (connection.execute(_ROW, (id_,)).fetchone() for id_ in ids)
            return [
                _Row(row[0], row[1][len(self._below) :], row[2], row[3])
                for row in found
                # An id may belong to another file by now, and damage can turn a blob into a number.
                if row is not None
                and isinstance(row[1], bytes)
                and row[1].startswith(self._below)
                and isinstance(row[2], bytes)
                and isinstance(row[3], int)
                and 0 <= row[3] <= SIZE_LIMIT
            ]

        rows = self._catalog.read(look) if ids and self._catalog is not None else None
        return {row.id: row for row in rows or ()}


def _best(query: SimilarityQuery, matches: list[Match], rows: dict[int, _Row]) -> list[SimilarFile]:
    """Sort matches, the best first. Each path appears once, with its newest row, which has the highest
    id."""
    newest: dict[bytes, Match] = {}
    for match in matches:
        row = rows.get(match.key)
        if row is not None and (row.path not in newest or newest[row.path].key < match.key):
            newest[row.path] = match
    code = size_code(query.size)

    def order(path: bytes) -> tuple[int, int, bool, int, bytes]:
        match = newest[path]
        return (
            -match.matches,
            abs(size_code(rows[match.key].size) - code),
            os.path.basename(path) != os.path.basename(query.path),
            -_common_directories(path, query.path),
            path,
        )

    return [
        SimilarFile(path, rows[newest[path].key].root, rows[newest[path].key].size, newest[path].matches)
        for path in sorted(newest, key=order)
    ]


def _common_directories(a: bytes, b: bytes) -> int:
    """Return the number of leading directories that two paths share."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a.split(b"/"), b.split(b"/"), strict=False))
    )
