"""Similar bases: local files that resemble new ones, found by traits, names and hints."""

from __future__ import annotations

import os

from rdc.catalog.similar import SimilarityQuery
from rdc.errors import FileError
from rdc.files.facts.filesystem_id import path_of
from rdc.limits.sessions import BASES_PER_FILE
from rdc.protocol.messages.content import COARSE_BELOW, COARSE_FROM
from rdc.similarity.coarse import coarse_traits
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.traits import Traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.renames.removed_contents import RemovedContents
    from rdc.session.renames.removed_files import RemovedFiles
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.destination import Destination
    from rdc.similarity.index import Match
    from rdc.tree.manifest import Entry

__all__ = ["SimilarBases"]

SIMILAR_BYTES = 2048
"""A smaller file is fetched whole even if a local one resembles it: a signature costs as much as content."""

BYTES_SIGNED_PER_WANTED = 4
"""Bytes of removed files read for their traits, per byte of the new files that may resemble them."""

SPECULATIVE_BYTES = 256 << 20
"""Bytes of new files that the source signs if no file was removed, but the catalog knows local files."""

MATCHES = 4
"""A file is a base if at least 4 of 12 traits are equal. Unrelated files are with a probability of 2.7e-5."""


class SimilarBases:
    """Finds bases among removed files, some of which it reads for that, and among files in the catalog."""

    def __init__(self, context: Destination, removed_files: RemovedFiles, contents: RemovedContents) -> None:
        self._context = context
        self._removed = removed_files
        self._contents = contents
        self._hints: dict[int, tuple[bytes, ...]] = {}
        """Paths of further bases, by new file, used if there are too few better ones."""
        root_path = path_of(context.root.fileno())
        self._known = context.signer.catalog.similar(root_path, context.signer.params)
        self._index: SimilarityIndex | None = None
        """Removed files by their traits, once they were read."""
        self._small = SimilarityIndex()
        """Small removed files by coarse traits: bases for larger files."""
        self._wanted_bytes = 0
        """Bytes of the new files whose traits are requested."""
        self._large_wanted = False
        """Some of these files are large."""

    def may_have(self, entry: Entry) -> bool:
        """Tells whether it pays to request root and traits of this new file."""
        if entry.size < SIMILAR_BYTES:
            return self._contents.may_have(entry)
        if len(self._removed):
            return True
        # No file was removed, so a similar file is unlikely: the source signs only a limited amount.
        return self._wanted_bytes + entry.size <= SPECULATIVE_BYTES and len(self._known) > 0

    def want(self, file: int, entry: Entry, hints: tuple[bytes, ...]) -> None:
        """Notes a new file whose traits will be requested. `hints`: paths of further bases."""
        self._wanted_bytes += entry.size
        self._large_wanted |= entry.size >= COARSE_BELOW
        if hints:
            self._hints[file] = hints

    def look(self, taken: bytearray, round_: int) -> Conversation[None]:
        """Reads removed files for their traits, in proportion to the requested files. Does this only once.

        `taken`: marks by row; marked files are not read.
        """
        if self._index is not None:
            return
        self._index = SimilarityIndex()
        removed_files, left = self._removed, BYTES_SIGNED_PER_WANTED * self._wanted_bytes
        for row in removed_files.from_size(SIMILAR_BYTES):
            size = removed_files[row].size
            if taken[row] or size > left:
                continue
            signed = yield from self._contents.sign(row, round_)
            left -= size
            if signed is not None and signed.traits:
                self._index.add(row, Traits(signed.traits), size)
                if self._large_wanted and COARSE_FROM <= size < COARSE_BELOW:
                    self._add_small(row)

    def _add_small(self, row: int) -> None:
        """Adds coarse traits of a removed file."""
        found = self._removed[row]
        try:
            with self._context.root.open_read(found.path) as source:
                traits = coarse_traits(source.pread(0, min(source.size, COARSE_BELOW - 1)))
        except FileError:
            return
        if traits:
            self._small.add(row, Traits(traits), found.size)

    def bases(self, file: int, entry: Entry, traits: bytes, coarse: bytes) -> tuple[bytes, ...]:
        """Returns paths of bases for a new file, best first: removed files, files in the catalog, then hints.

        `coarse`: the traits that the file would have if it were larger; empty unless it is nearly large.
        """
        removed_files = self._removed
        if entry.size < SIMILAR_BYTES:
            return ()
        rows = dict.fromkeys(self._rows(entry.size, traits, coarse))
        for row in removed_files.of_name(os.path.basename(entry.path), BASES_PER_FILE):
            if row in self._contents or removed_files[row].size <= BYTES_SIGNED_PER_WANTED * entry.size:
                rows[row] = None
        paths = dict.fromkeys(removed_files[row].path for row in list(rows)[:BASES_PER_FILE])
        for query in filter(None, (traits, coarse)):
            if len(paths) < BASES_PER_FILE:
                known = self._known.query(
                    SimilarityQuery(query, entry.size, entry.path), BASES_PER_FILE - len(paths), MATCHES
                )
                paths.update(dict.fromkeys(similar.path for similar in known))
        paths.update(dict.fromkeys(self._hints.get(file, ())[: BASES_PER_FILE - len(paths)]))
        return tuple(paths)

    def _rows(self, size: int, traits: bytes, coarse: bytes) -> list[int]:
        """Returns rows of removed files with traits like these, the most similar first.

        Files are compared by full and by coarse traits, because a similar file may be large or small.
        """
        if self._index is None:
            return []
        found: list[Match] = []
        for index, query in (
            (self._index, traits),
            (self._index, coarse),
            (self._small, traits if size >= COARSE_BELOW else b""),
        ):
            if query:
                found += index.query(Traits(query), BASES_PER_FILE, MATCHES, size=size)
        found.sort(key=lambda match: -match.matches)
        return [match.key for match in found]
