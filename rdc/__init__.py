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
    "dupes",
    "kernel_name",
    "merge",
    "merge_documents",
    "open_index",
    "parse_location",
    "scan",
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

_MODULES = {
    "Action": "rdc.model.instances",
    "AlternateUse": "rdc.model.sync",
    "Alternates": "rdc.model.sync",
    "Aspect": "rdc.model.check",
    "Attribution": "rdc.model.scan",
    "Backup": "rdc.model.sync",
    "FileList": "rdc.model.sync",
    "Bin": "rdc.model.scan",
    "BinaryReader": "rdc.library.streams",
    "Catalog": "rdc.catalog.catalog",
    "CheckOptions": "rdc.model.check",
    "CheckReport": "rdc.model.check",
    "Chunk": "rdc.chunking.chunker",
    "ChunkParams": "rdc.chunking.params",
    "Chunker": "rdc.chunking.chunker",
    "CommandMissingError": "rdc.errors",
    "Coverage": "rdc.model.scan",
    "DedupeEvent": "rdc.instances.events",
    "DedupeOptions": "rdc.model.instances",
    "DedupeReport": "rdc.model.instances",
    "DedupeReporter": "rdc.instances.events",
    "DirectoryRules": "rdc.model.filter_rules",
    "DirectorySummary": "rdc.model.scan",
    "DuplicateFile": "rdc.model.duplicates",
    "DuplicateGroup": "rdc.model.duplicates",
    "DuplicateListing": "rdc.model.instances",
    "DuplicateOptions": "rdc.model.duplicates",
    "DuplicateOrder": "rdc.model.duplicates",
    "DuplicateReport": "rdc.model.duplicates",
    "DuplicateSummary": "rdc.model.duplicates",
    "EntryDiffers": "rdc.model.check",
    "Estimate": "rdc.similarity.estimate",
    "Event": "rdc.progress",
    "ExitCode": "rdc.errors",
    "FileChangedError": "rdc.errors",
    "FileError": "rdc.errors",
    "FilterRule": "rdc.model.filter_rules",
    "IncompatiblePeerError": "rdc.errors",
    "Instance": "rdc.model.instances",
    "ItemChanged": "rdc.progress",
    "KeepUndo": "rdc.model.sync",
    "Level": "rdc.signature.tree",
    "LevelSummary": "rdc.model.scan",
    "Location": "rdc.model.location",
    "Match": "rdc.similarity.index",
    "MergeOptions": "rdc.model.scan",
    "MessageCost": "rdc.model.sync_report",
    "OutOfSpaceError": "rdc.errors",
    "Overlap": "rdc.model.scan",
    "PlanKnown": "rdc.progress",
    "Problem": "rdc.progress",
    "Progressed": "rdc.progress",
    "ProtocolError": "rdc.errors",
    "Purpose": "rdc.model.sync_report",
    "RdcError": "rdc.errors",
    "RemoteShell": "rdc.model.location",
    "Reporter": "rdc.progress",
    "RuleAction": "rdc.model.filter_rules",
    "RuleModifiers": "rdc.model.filter_rules",
    "RuleSide": "rdc.model.filter_rules",
    "RuleSyntax": "rdc.model.filter_rules",
    "Sample": "rdc.model.check",
    "ScanOptions": "rdc.model.scan",
    "ScanProblem": "rdc.model.scan",
    "ScanReport": "rdc.model.scan",
    "SignatureStore": "rdc.catalog.store",
    "SignatureTree": "rdc.signature.tree",
    "SimilarFile": "rdc.model.similar",
    "SimilarFiles": "rdc.model.scan",
    "SimilarFolders": "rdc.model.similar",
    "SimilarGroup": "rdc.model.similar",
    "SimilarOptions": "rdc.model.similar",
    "SimilarPair": "rdc.similarity.pairs",
    "SimilarPairs": "rdc.similarity.pairs",
    "SimilarReport": "rdc.model.similar",
    "SimilarSummary": "rdc.model.similar",
    "SimilarityIndex": "rdc.similarity.index",
    "SimilarityIndexError": "rdc.similarity.saved",
    "StopSignal": "rdc.progress",
    "StoppedError": "rdc.errors",
    "StreamError": "rdc.errors",
    "SyncOptions": "rdc.model.sync",
    "SyncReport": "rdc.model.sync_report",
    "Traits": "rdc.similarity.traits",
    "TrustError": "rdc.errors",
    "TypeSummary": "rdc.model.scan",
    "USER_CATALOG": "rdc.catalog.location",
    "UndoItem": "rdc.model.undo",
    "UndoOptions": "rdc.model.undo",
    "UndoReport": "rdc.model.undo",
    "UndoReporter": "rdc.undoing.undo",
    "UndoableSync": "rdc.model.undo",
    "UsageError": "rdc.errors",
    "UserCatalog": "rdc.catalog.location",
    "WatchEvent": "rdc.model.watch",
    "WatchOptions": "rdc.model.watch",
    "WatchReport": "rdc.model.watch",
    "WatchReporter": "rdc.watching.reporter",
    "check": "rdc.session.check",
    "chunks": "rdc.library.streams",
    "cuts": "rdc.library.streams",
    "dedupe": "rdc.library.dedupe",
    "dupes": "rdc.library.dupes",
    "kernel_name": "rdc.kernel",
    "merge": "rdc.library.merge",
    "open_index": "rdc.library.streams",
    "parse_location": "rdc.model.location",
    "scan": "rdc.library.scan",
    "sign": "rdc.library.streams",
    "sign_file": "rdc.catalog.signer",
    "similar": "rdc.library.similar",
    "sync": "rdc.session.sync",
    "undo": "rdc.library.undo",
    "undoable_syncs": "rdc.library.undo",
    "watch": "rdc.watching.watch",
    **dict.fromkeys(("Disconnected", "Halted", "InStep", "Limited", "Resumed"), "rdc.model.watch"),
    **dict.fromkeys(("merge_documents", "similar_documents"), "rdc.library.similar_documents"),
    **dict.fromkeys(("Document", "DocumentGroup", "DocumentOptions"), "rdc.model.documents"),
    **dict.fromkeys(("DocumentReport", "DocumentSummary", "SimilarDocument"), "rdc.model.documents"),
}

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
    from rdc.library.dupes import dupes
    from rdc.library.merge import merge
    from rdc.library.scan import scan
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
    from rdc.model.location import Location, RemoteShell, parse_location
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
    from rdc.model.sync import (
        Alternates,
        AlternateUse,
        Backup,
        FileList,
        KeepUndo,
        SyncOptions,
    )
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
