"""Reads each file once, for its traits and for a digest that finds identical files."""

from __future__ import annotations

from array import array

from blake3 import blake3

from rdc.chunking import SYNC_PARAMS
from rdc.kernel import Cutter, window_sketch
from rdc.kernel.constants import SKETCH_BYTES
from rdc.lean.records import dataclass
from rdc.signature.tree import NO_TRAITS, TRAITS_BYTES, traits_at
from rdc.survey.read.content_digests import BATCHED_BYTES, DIGEST_BYTES, Keyed
from rdc.survey.walk.equal_groups import equal_groups
from rdc.survey.walk.hard_links import OtherNames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.files.root.source_file import SourceFile
    from rdc.survey.read.content_digests import ContentReader
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["FileTraits", "read_traits"]

KEY_BYTES = DIGEST_BYTES + TRAITS_BYTES + SKETCH_BYTES
"""Bytes per key: a digest of the content, the traits or NO_TRAITS, and the sketch or NO_SKETCH."""

NO_SKETCH = bytes(SKETCH_BYTES)
"""Stands for the sketch of a file larger than BATCHED_BYTES, which a catalog spares reading."""


@dataclass(frozen=True, slots=True)
class FileTraits:
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
        """Traits of rows[position]; b'' for a file without features."""
        return traits_at(self.traits, position)


def read_traits(
    files: FileColumns, rows: Sequence[int], reader: ContentReader, catalog: SignatureStore
) -> FileTraits:
    """Traits of `rows` (increasing), equal to those in their signatures. Large files are looked up in
    `catalog`, which stores the signatures of those that had to be read."""
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
