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
    "Action",
    "AlternateUse",
    "Alternates",
    "Aspect",
    "Attribution",
    "Backup",
    "FarList",
    "FileList",
    "Bin",
    "BinaryReader",
    "Catalog",
    "CheckOptions",
    "CheckReport",
    "Chunk",
    "ChunkParams",
    "Chunker",
    "CommandMissingError",
    "Coverage",
    "DedupeEvent",
    "DedupeOptions",
    "DedupeReport",
    "DedupeReporter",
    "DirectoryRules",
    "DirectorySummary",
    "Disconnected",
    "Document",
    "DocumentGroup",
    "DocumentOptions",
    "DocumentReport",
    "DocumentSlice",
    "DocumentSummary",
    "DuplicateFile",
    "DuplicateGroup",
    "DuplicateListing",
    "DuplicateOptions",
    "DuplicateOrder",
    "DuplicateReport",
    "DuplicateSummary",
    "EntryDiffers",
    "Estimate",
    "Event",
    "ExitCode",
    "FileChangedError",
    "FileError",
    "FilterRule",
    "Halted",
    "InStep",
    "IncompatiblePeerError",
    "Instance",
    "ItemChanged",
    "KeepUndo",
    "Level",
    "LevelSummary",
    "Limited",
    "Location",
    "Match",
    "MergeOptions",
    "MessageCost",
    "OutOfSpaceError",
    "Overlap",
    "PlanKnown",
    "Problem",
    "Progressed",
    "ProtocolError",
    "Purpose",
    "RdcError",
    "RemoteShell",
    "Reporter",
    "Resumed",
    "RuleAction",
    "RuleModifiers",
    "RuleSide",
    "RuleSyntax",
    "Sample",
    "ScanOptions",
    "ScanProblem",
    "ScanReport",
    "ScanSlice",
    "SignatureStore",
    "SignatureTree",
    "SimilarDocument",
    "SimilarFile",
    "SimilarFiles",
    "SimilarFolders",
    "SimilarGroup",
    "SimilarOptions",
    "SimilarPair",
    "SimilarPairs",
    "SimilarReport",
    "SimilarSummary",
    "SimilarityIndex",
    "SimilarityIndexError",
    "StopSignal",
    "StoppedError",
    "StreamError",
    "SyncOptions",
    "SyncReport",
    "Traits",
    "TrustError",
    "TypeSummary",
    "USER_CATALOG",
    "UndoItem",
    "UndoOptions",
    "UndoReport",
    "UndoReporter",
    "UndoableSync",
    "UsageError",
    "UserCatalog",
    "WatchEvent",
    "WatchOptions",
    "WatchReport",
    "WatchReporter",
    "check",
    "chunks",
    "cuts",
    "dedupe",
    "document_parts",
    "document_slice",
    "dupes",
    "kernel_name",
    "merge",
    "merge_documents",
    "open_index",
    "parse_location",
    "scan",
    "scan_parts",
    "sign",
    "sign_file",
    "similar",
    "similar_documents",
    "sync",
    "undo",
    "undoable_syncs",
    "watch",
    "__version__",
]

_PUBLIC = {
    "rdc.catalog.catalog": "Catalog",
    "rdc.catalog.location": "USER_CATALOG UserCatalog",
    "rdc.catalog.signer": "sign_file",
    "rdc.catalog.store": "SignatureStore",
    "rdc.chunking.chunker": "Chunk Chunker",
    "rdc.chunking.params": "ChunkParams",
    "rdc.errors": (
        "CommandMissingError ExitCode FileChangedError FileError IncompatiblePeerError OutOfSpaceError "
        "ProtocolError RdcError StoppedError StreamError TrustError UsageError"
    ),
    "rdc.instances.events": "DedupeEvent DedupeReporter",
    "rdc.kernel": "kernel_name",
    "rdc.library.dedupe": "dedupe",
    "rdc.library.document_parts": "document_parts document_slice",
    "rdc.library.dupes": "dupes",
    "rdc.library.merge": "merge",
    "rdc.library.scan": "scan",
    "rdc.library.scan_parts": "scan_parts",
    "rdc.library.similar": "similar",
    "rdc.library.similar_documents": "merge_documents similar_documents",
    "rdc.library.streams": "BinaryReader chunks cuts open_index sign",
    "rdc.library.undo": "undo undoable_syncs",
    "rdc.model.check": "Aspect CheckOptions CheckReport EntryDiffers Sample",
    "rdc.model.documents": (
        "Document DocumentGroup DocumentOptions DocumentReport DocumentSlice DocumentSummary SimilarDocument"
    ),
    "rdc.model.duplicates": (
        "DuplicateFile DuplicateGroup DuplicateOptions DuplicateOrder DuplicateReport DuplicateSummary"
    ),
    "rdc.model.filter_rules": "DirectoryRules FilterRule RuleAction RuleModifiers RuleSide RuleSyntax",
    "rdc.model.instances": "Action DedupeOptions DedupeReport DuplicateListing Instance",
    "rdc.model.location": "FarList Location parse_location RemoteShell",
    "rdc.model.scan": (
        "Attribution Bin Coverage DirectorySummary LevelSummary MergeOptions Overlap ScanOptions "
        "ScanProblem ScanReport ScanSlice SimilarFiles TypeSummary"
    ),
    "rdc.model.similar": (
        "SimilarFile SimilarFolders SimilarGroup SimilarOptions SimilarReport SimilarSummary"
    ),
    "rdc.model.option_values": "Alternates AlternateUse Backup FileList KeepUndo",
    "rdc.model.sync": "SyncOptions",
    "rdc.model.sync_report": "MessageCost Purpose SyncReport",
    "rdc.model.undo": "UndoableSync UndoItem UndoOptions UndoReport",
    "rdc.model.watch": "Disconnected Halted InStep Limited Resumed WatchEvent WatchOptions WatchReport",
    "rdc.progress": "Event ItemChanged PlanKnown Problem Progressed Reporter StopSignal",
    "rdc.session.check": "check",
    "rdc.session.sync": "sync",
    "rdc.signature.tree": "Level SignatureTree",
    "rdc.similarity.estimate": "Estimate",
    "rdc.similarity.index": "Match SimilarityIndex",
    "rdc.similarity.pairs": "SimilarPair SimilarPairs",
    "rdc.similarity.saved": "SimilarityIndexError",
    "rdc.similarity.traits": "Traits",
    "rdc.undoing.undo": "UndoReporter",
    "rdc.watching.reporter": "WatchReporter",
    "rdc.watching.watch": "watch",
}
"""Public names by the module that defines them."""

_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

if TYPE_CHECKING:
    from rdc.catalog.catalog import Catalog
    from rdc.catalog.location import USER_CATALOG, UserCatalog
    from rdc.catalog.signer import sign_file
    from rdc.catalog.store import SignatureStore
    from rdc.chunking.chunker import Chunk, Chunker
    from rdc.chunking.params import ChunkParams
    from rdc.errors import (
        CommandMissingError,
        ExitCode,
        FileChangedError,
        FileError,
        IncompatiblePeerError,
        OutOfSpaceError,
        ProtocolError,
        RdcError,
        StoppedError,
        StreamError,
        TrustError,
        UsageError,
    )
    from rdc.instances.events import DedupeEvent, DedupeReporter
    from rdc.kernel import kernel_name
    from rdc.library.dedupe import dedupe
    from rdc.library.document_parts import document_parts, document_slice
    from rdc.library.dupes import dupes
    from rdc.library.merge import merge
    from rdc.library.scan import scan
    from rdc.library.scan_parts import scan_parts
    from rdc.library.similar import similar
    from rdc.library.similar_documents import merge_documents, similar_documents
    from rdc.library.streams import BinaryReader, chunks, cuts, open_index, sign
    from rdc.library.undo import undo, undoable_syncs
    from rdc.model.check import Aspect, CheckOptions, CheckReport, EntryDiffers, Sample
    from rdc.model.documents import (
        Document,
        DocumentGroup,
        DocumentOptions,
        DocumentReport,
        DocumentSlice,
        DocumentSummary,
        SimilarDocument,
    )
    from rdc.model.duplicates import (
        DuplicateFile,
        DuplicateGroup,
        DuplicateOptions,
        DuplicateOrder,
        DuplicateReport,
        DuplicateSummary,
    )
    from rdc.model.filter_rules import (
        DirectoryRules,
        FilterRule,
        RuleAction,
        RuleModifiers,
        RuleSide,
        RuleSyntax,
    )
    from rdc.model.instances import Action, DedupeOptions, DedupeReport, DuplicateListing, Instance
    from rdc.model.location import FarList, Location, RemoteShell, parse_location
    from rdc.model.option_values import Alternates, AlternateUse, Backup, FileList, KeepUndo
    from rdc.model.scan import (
        Attribution,
        Bin,
        Coverage,
        DirectorySummary,
        LevelSummary,
        MergeOptions,
        Overlap,
        ScanOptions,
        ScanProblem,
        ScanReport,
        ScanSlice,
        SimilarFiles,
        TypeSummary,
    )
    from rdc.model.similar import (
        SimilarFile,
        SimilarFolders,
        SimilarGroup,
        SimilarOptions,
        SimilarReport,
        SimilarSummary,
    )
    from rdc.model.sync import SyncOptions
    from rdc.model.sync_report import MessageCost, Purpose, SyncReport
    from rdc.model.undo import UndoableSync, UndoItem, UndoOptions, UndoReport
    from rdc.model.watch import (
        Disconnected,
        Halted,
        InStep,
        Limited,
        Resumed,
        WatchEvent,
        WatchOptions,
        WatchReport,
    )
    from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed, Reporter, StopSignal
    from rdc.session.check import check
    from rdc.session.sync import sync
    from rdc.signature.tree import Level, SignatureTree
    from rdc.similarity.estimate import Estimate
    from rdc.similarity.index import Match, SimilarityIndex
    from rdc.similarity.pairs import SimilarPair, SimilarPairs
    from rdc.similarity.saved import SimilarityIndexError
    from rdc.similarity.traits import Traits
    from rdc.undoing.undo import UndoReporter
    from rdc.watching.reporter import WatchReporter
    from rdc.watching.watch import watch


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'rdc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """Lists all public names, used or not, for completion in an interactive shell."""
    return sorted({*globals(), *__all__})
