"""rdc: file sync and deduplication by content-defined chunking.

    >>> import rdc
    >>> report = rdc.sync("src/", "backup/")
    >>> tree = rdc.sign_file("disk.img")

A public name loads its module on first use, so `import rdc` is cheap.
"""

from __future__ import annotations

from rdc.version import __version__

TYPE_CHECKING = False  # as in typing, without loading typing

__all__ = [
    "Chunk",
    "ChunkParams",
    "Chunker",
    "Match",
    "ScanOptions",
    "ScanReport",
    "SignatureTree",
    "SimilarPair",
    "SimilarityIndex",
    "SyncOptions",
    "SyncReport",
    "Traits",
    "__version__",
    "chunks",
    "cuts",
    "kernel_name",
    "scan",
    "sign",
    "sign_file",
    "sync",
]

_MODULES = {
    "Chunk": "rdc.chunking.chunker",
    "ChunkParams": "rdc.chunking.params",
    "Chunker": "rdc.chunking.chunker",
    "Match": "rdc.similarity.index",
    "ScanOptions": "rdc.model.scan",
    "ScanReport": "rdc.model.scan",
    "SignatureTree": "rdc.signature.tree",
    "SimilarPair": "rdc.similarity.pairs",
    "SimilarityIndex": "rdc.similarity.index",
    "SyncOptions": "rdc.model.sync",
    "SyncReport": "rdc.model.sync",
    "Traits": "rdc.similarity.traits",
    "chunks": "rdc.chunking.chunker",
    "cuts": "rdc.chunking.chunker",
    "kernel_name": "rdc.kernel",
    "scan": "rdc.survey.scan.scan",
    "sign": "rdc.signature.build",
    "sign_file": "rdc.catalog.signer",
    "sync": "rdc.session.sync",
}

if TYPE_CHECKING:
    from rdc.catalog.signer import sign_file
    from rdc.chunking.chunker import Chunk, Chunker, chunks, cuts
    from rdc.chunking.params import ChunkParams
    from rdc.kernel import kernel_name
    from rdc.model.scan import ScanOptions, ScanReport
    from rdc.model.sync import SyncOptions, SyncReport
    from rdc.session.sync import sync
    from rdc.signature.build import sign
    from rdc.signature.tree import SignatureTree
    from rdc.similarity.index import Match, SimilarityIndex
    from rdc.similarity.pairs import SimilarPair
    from rdc.similarity.traits import Traits
    from rdc.survey.scan.scan import scan


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'rdc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """Lists all public names, used or not, for completion in an interactive shell."""
    return sorted({*globals(), *__all__})
