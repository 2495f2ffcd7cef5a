"""Files here that resemble new ones, which may be made from them: found by traits, names and hints."""

from __future__ import annotations

import os

from rdc.catalog.similar import SoughtFile
from rdc.errors import FileError
from rdc.files.filesystem import path_of
from rdc.limits import BASES_PER_FILE
from rdc.protocol.origins import COARSE_BELOW, COARSE_FROM
from rdc.similarity.coarse import coarse_traits
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.traits import Traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.commands import Conversation
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished
    from rdc.session.vanished_contents import VanishedContents
    from rdc.similarity.index import Match
    from rdc.tree.manifest import Entry

__all__ = ["Kin"]

KIN_BYTES = 2048
"""Below, a file that only resembles one here is fetched whole: describing it costs what its content does."""

BYTES_SIGNED_PER_WANTED = 4
"""Bytes of vanished files read for their traits, for each byte of the files that may resemble them."""

SPECULATIVE_BYTES = 256 << 20
"""Bytes of new files that the source is to sign because the catalog knows files here, though none has
vanished."""

MATCHES = 4
"""Of twelve traits, from which on a file is a base: 2.7e-5 of strangers have them by chance."""


class Kin:
    """Vanished files, of which some are read for this, and those that the catalog knows."""

    def __init__(self, context: TransferContext, vanished: Vanished, contents: VanishedContents) -> None:
        self._context = context
        self._vanished = vanished
        self._contents = contents
        self._hints: dict[int, tuple[bytes, ...]] = {}
        """Files that new ones may be made from where nothing better is found."""
        place = path_of(context.root.fileno())
        self._known = context.signer.catalog.similar(place, context.signer.params)
        self._index: SimilarityIndex | None = None
        """Of vanished files, once they were looked at."""
        self._small = SimilarityIndex()
        """By coarse traits: those that larger files may be made from."""
        self._wanted_bytes = 0
        self._large_sought = False
        """Some of the files that kin is sought for are large."""

    def may_have(self, entry: Entry) -> bool:
        """Whether it pays to ask the source what this new file resembles, or which one it is."""
        if entry.size < KIN_BYTES:
            return self._contents.may_have(entry)
        if len(self._vanished):
            return True
        # Nothing says that this one has kin here, so only as much is read at the source as takes a moment.
        return self._wanted_bytes + entry.size <= SPECULATIVE_BYTES and len(self._known) > 0

    def want(self, file: int, entry: Entry, hints: tuple[bytes, ...]) -> None:
        """Its traits are going to be asked for."""
        self._wanted_bytes += entry.size
        self._large_sought |= entry.size >= COARSE_BELOW
        if hints:
            self._hints[file] = hints

    def look(self, taken: bytearray, round_: int) -> Conversation[None]:
        """Reads vanished files for their traits, once, as many as what is wanted is worth; none of those that
        are `taken`, by row."""
        if self._index is not None:
            return
        self._index = SimilarityIndex()
        vanished, left = self._vanished, BYTES_SIGNED_PER_WANTED * self._wanted_bytes
        for row in vanished.from_size(KIN_BYTES):
            size = vanished[row].size
            if taken[row] or size > left:
                continue
            signed = yield from self._contents.sign(row, round_)
            left -= size
            if signed is not None and signed.traits:
                self._index.add(row, Traits(signed.traits), size)
                if self._large_sought and COARSE_FROM <= size < COARSE_BELOW:
                    self._add_small(row)

    def _add_small(self, row: int) -> None:
        found = self._vanished[row]
        try:
            with self._context.root.open_read(found.path) as source:
                traits = coarse_traits(source.pread(0, min(source.size, COARSE_BELOW - 1)))
        except FileError:
            return
        if traits:
            self._small.add(row, Traits(traits), found.size)

    def bases(self, file: int, entry: Entry, traits: bytes, coarse: bytes) -> tuple[bytes, ...]:
        """Paths of files that a new one may be made from, best first: vanished ones, others that the catalog
        knows, then guesses. `coarse`: as if it were larger, where it is hardly too small for that."""
        vanished = self._vanished
        if entry.size < KIN_BYTES:
            return ()
        rows = dict.fromkeys(self._rows(entry.size, traits, coarse))
        for row in vanished.of_name(os.path.basename(entry.path), BASES_PER_FILE):
            if row in self._contents or vanished[row].size <= BYTES_SIGNED_PER_WANTED * entry.size:
                rows[row] = None
        paths = dict.fromkeys(vanished[row].path for row in list(rows)[:BASES_PER_FILE])
        for sought in filter(None, (traits, coarse)):
            if len(paths) < BASES_PER_FILE:
                known = self._known.query(
                    SoughtFile(sought, entry.size, entry.path), BASES_PER_FILE - len(paths), MATCHES
                )
                paths.update(dict.fromkeys(kin.path for kin in known))
        paths.update(dict.fromkeys(self._hints.get(file, ())[: BASES_PER_FILE - len(paths)]))
        return tuple(paths)

    def _rows(self, size: int, traits: bytes, coarse: bytes) -> list[int]:
        """Rows of the vanished files that are most like one of this size, to either side of the border."""
        if self._index is None:
            return []
        found: list[Match] = []
        for index, sought in (
            (self._index, traits),
            (self._index, coarse),
            (self._small, traits if size >= COARSE_BELOW else b""),
        ):
            if sought:
                found += index.query(Traits(sought), BASES_PER_FILE, MATCHES, size=size)
        found.sort(key=lambda match: -match.matches)
        return [match.key for match in found]
