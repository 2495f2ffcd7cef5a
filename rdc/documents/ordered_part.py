"""Writes documents as one part whose bytes do not depend on how the documents were divided before.

Documents come in their order, and where a block ends follows from the documents alone: with the text that
fills BATCH_BYTES, with the last of BATCH_DOCUMENTS, and before a document of the same path and row as the one
before it.
"""

from __future__ import annotations

from array import array

from rdc.documents.find.corpus import Corpus, Run
from rdc.documents.parts.block import COUNTS
from rdc.documents.parts.part_file import encode_section, part_end, part_start
from rdc.lean.typed import NamedTuple
from rdc.limits.searches import BATCH_BYTES, BATCH_DOCUMENTS
from rdc.model.entries import little_endian

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.documents.gather import Gathered

__all__ = ["ordered_part"]


class _Name(NamedTuple):
    path: bytes
    row: int


def ordered_part(gathered: Gathered) -> Iterator[bytes]:
    """Encodes all documents and problems as one part, in spans."""
    corpus = Corpus(gathered.parts, gathered.blocks)
    yield from part_start(gathered.unit)
    for runs in _blocks(corpus):
        yield from encode_section(b"BLOK", _columns(corpus, runs))
    yield from part_end(gathered.problems, gathered.left_out)


def _blocks(corpus: Corpus) -> Iterator[list[Run]]:
    """The runs of each block. They are not empty."""
    runs: list[Run] = []
    documents = size = 0
    last: _Name | None = None
    for run in corpus.runs():
        sizes = corpus.column(run, "Q", run.block.layout.sizes)
        first = 0
        names = corpus.names(run)
        for at in range(run.count):
            name = _Name(names.paths[names.sources[at]], names.rows[at])
            if size >= BATCH_BYTES or documents == BATCH_DOCUMENTS or name == last:
                if at > first:
                    runs.append(Run(run.block, run.first + first, at - first))
                yield runs
                runs, documents, size, first = [], 0, 0, at
            documents, size, last = documents + 1, size + sizes[at], name
        runs.append(Run(run.block, run.first + first, run.count - first))
    if runs:
        yield runs


def _columns(corpus: Corpus, runs: list[Run]) -> Iterator[bytes]:
    """The columns of one block, in order."""
    paths: list[bytes] = []
    sources, rows, sizes, ends = array("I"), array("Q"), array("Q"), array("Q")
    digests, samples, sets = [], [], []
    for run in runs:
        names = corpus.names(run)
        for source in names.sources:
            if not paths or paths[-1] != names.paths[source]:
                paths.append(names.paths[source])
            sources.append(len(paths) - 1)
        rows.extend(names.rows)
        sizes.extend(corpus.column(run, "Q", run.block.layout.sizes))
        digests.append(corpus.digests(run))
        samples.append(corpus.samples(run))
        bounds = corpus.shingle_bounds(run)
        before = (ends[-1] if ends else 0) - bounds[0]
        ends.extend([before + bound for bound in bounds[1:]])
        sets.append(corpus.shingles(run.block, bounds[0], bounds[-1]))
    name_ends, end = array("Q"), 0
    for path in paths:
        end += len(path)
        name_ends.append(end)
    yield COUNTS.pack(len(paths), len(rows), ends[-1], end)
    yield little_endian(name_ends)
    yield from paths
    yield little_endian(sources)
    yield little_endian(rows)
    yield little_endian(sizes)
    yield from digests
    yield from samples
    yield little_endian(ends)
    yield from sets
