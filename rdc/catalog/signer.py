"""The one way from a file to its signature tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rdc.catalog.store import NoCatalog
from rdc.chunking.chunker import Chunker
from rdc.chunking.params import SYNC_PARAMS
from rdc.files.confined import Root
from rdc.files.spool import Spool
from rdc.signature.build import TreeBuilder

if TYPE_CHECKING:
    from rdc.catalog.store import SignatureStore
    from rdc.chunking.params import ChunkParams
    from rdc.files.source import SourceFile
    from rdc.signature.tree import SignatureTree

__all__ = ["FileSigner", "sign_file"]


class FileSigner:
    """Reads, cuts and hashes files in bounded memory; long chunk lists go to a mapped temporary file."""

    def __init__(self, params: ChunkParams = SYNC_PARAMS, catalog: SignatureStore | None = None) -> None:
        self.params = params
        self.catalog = NoCatalog() if catalog is None else catalog

    def sign(self, source: SourceFile) -> SignatureTree:
        """Reads `source` from its start to its end.

        Raises FileChangedError when it changed while it was read, FileError when it cannot be read.
        """
        known = self.catalog.get(source, self.params)
        if known is not None:
            return known
        began = self.catalog.now()
        tree = self._read(source)
        self.catalog.put(source, tree, began)
        return tree

    def root(self, source: SourceFile) -> bytes:
        """Its signature's root alone, which spares the chunk list where the catalog knows the file."""
        return self.catalog.root(source, self.params) or self.sign(source).root

    def _read(self, source: SourceFile) -> SignatureTree:
        chunker, builder = Chunker(self.params), TreeBuilder(self.params, Spool)
        for span in source.spans():
            columns = chunker.feed_columns(span)
            builder.add(columns.digests, columns.lengths)
        columns = chunker.finish_columns()
        builder.add(columns.digests, columns.lengths)
        source.check_unchanged()
        return builder.finish(chunker.traits())


def sign_file(path: str | bytes | os.PathLike[str], params: ChunkParams = SYNC_PARAMS) -> SignatureTree:
    """The signature tree of the regular file at `path`, symlinks followed.

    Raises FileError when it cannot be read, FileChangedError when it changed while it was read.
    """
    directory, name = os.path.split(os.path.realpath(os.fsencode(path)))
    root = Root.open(directory)
    try:
        with root.open_read(name) as source:
            return FileSigner(params).sign(source)
    finally:
        root.close()
