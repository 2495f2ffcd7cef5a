"""rdc: file sync and deduplication by content-defined chunking.

    >>> import rdc
    >>> report = rdc.sync("src/", "backup/")
    >>> tree = rdc.sign_file("disk.img")

A public name loads its module on first use, so `import rdc` is cheap.
"""

from __future__ import annotations

from rdc.version import __version__ as __version__

TYPE_CHECKING = False  # as in typing, without loading typing

_PUBLIC = {
    "rdc.catalog.catalog": "Catalog",
    "rdc.catalog.location": "USER_CATALOG UserCatalog",
    "rdc.catalog.signer": "sign_file",
    "rdc.catalog.store": "SignatureStore",
    "rdc.chunking.chunker": "Chunk Chunker",
    "rdc.chunking.params": "ChunkParams",
    "rdc.duplicates.run_totals": "DedupeEvent DedupeReporter",
    "rdc.errors": (
        "CommandMissingError ExitCode FileChangedError FileError IncompatiblePeerError OutOfSpaceError "
        "ProtocolError RdcError StoppedError StreamError TrustError UsageError"
    ),
    "rdc.kernel": "kernel_name",
    "rdc.library.duplicates": "dedupe dupes",
    "rdc.library.scans": "merge scan scan_parts",
    "rdc.library.similar": "document_parts document_slice merge_documents similar similar_documents",
    "rdc.library.streams": "BinaryReader chunks cuts open_index sign",
    "rdc.library.trees": "check sync undo undoable_syncs watch",
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
    "rdc.signature.tree": "Level SignatureTree",
    "rdc.similarity.estimate": "Estimate",
    "rdc.similarity.index": "Match SimilarityIndex",
    "rdc.similarity.pairs": "SimilarPair SimilarPairs",
    "rdc.similarity.saved": "SimilarityIndexError",
    "rdc.similarity.traits": "Traits",
    "rdc.undoing.undo": "UndoReporter",
    "rdc.watching.reporter": "WatchReporter",
}
"""Public names by the module that defines them. Type checkers read the imports below."""

_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = [*_MODULES, "__version__"]  # noqa: PLE0604 - every name is a text

if TYPE_CHECKING:
    from rdc.catalog.catalog import Catalog as Catalog
    from rdc.catalog.location import USER_CATALOG as USER_CATALOG
    from rdc.catalog.location import UserCatalog as UserCatalog
    from rdc.catalog.signer import sign_file as sign_file
    from rdc.catalog.store import SignatureStore as SignatureStore
    from rdc.chunking.chunker import Chunk as Chunk
    from rdc.chunking.chunker import Chunker as Chunker
    from rdc.chunking.params import ChunkParams as ChunkParams
    from rdc.duplicates.run_totals import DedupeEvent as DedupeEvent
    from rdc.duplicates.run_totals import DedupeReporter as DedupeReporter
    from rdc.errors import CommandMissingError as CommandMissingError
    from rdc.errors import ExitCode as ExitCode
    from rdc.errors import FileChangedError as FileChangedError
    from rdc.errors import FileError as FileError
    from rdc.errors import IncompatiblePeerError as IncompatiblePeerError
    from rdc.errors import OutOfSpaceError as OutOfSpaceError
    from rdc.errors import ProtocolError as ProtocolError
    from rdc.errors import RdcError as RdcError
    from rdc.errors import StoppedError as StoppedError
    from rdc.errors import StreamError as StreamError
    from rdc.errors import TrustError as TrustError
    from rdc.errors import UsageError as UsageError
    from rdc.kernel import kernel_name as kernel_name
    from rdc.library.duplicates import dedupe as dedupe
    from rdc.library.duplicates import dupes as dupes
    from rdc.library.scans import merge as merge
    from rdc.library.scans import scan as scan
    from rdc.library.scans import scan_parts as scan_parts
    from rdc.library.similar import document_parts as document_parts
    from rdc.library.similar import document_slice as document_slice
    from rdc.library.similar import merge_documents as merge_documents
    from rdc.library.similar import similar as similar
    from rdc.library.similar import similar_documents as similar_documents
    from rdc.library.streams import BinaryReader as BinaryReader
    from rdc.library.streams import chunks as chunks
    from rdc.library.streams import cuts as cuts
    from rdc.library.streams import open_index as open_index
    from rdc.library.streams import sign as sign
    from rdc.library.trees import check as check
    from rdc.library.trees import sync as sync
    from rdc.library.trees import undo as undo
    from rdc.library.trees import undoable_syncs as undoable_syncs
    from rdc.library.trees import watch as watch
    from rdc.model.check import Aspect as Aspect
    from rdc.model.check import CheckOptions as CheckOptions
    from rdc.model.check import CheckReport as CheckReport
    from rdc.model.check import EntryDiffers as EntryDiffers
    from rdc.model.check import Sample as Sample
    from rdc.model.documents import Document as Document
    from rdc.model.documents import DocumentGroup as DocumentGroup
    from rdc.model.documents import DocumentOptions as DocumentOptions
    from rdc.model.documents import DocumentReport as DocumentReport
    from rdc.model.documents import DocumentSlice as DocumentSlice
    from rdc.model.documents import DocumentSummary as DocumentSummary
    from rdc.model.documents import SimilarDocument as SimilarDocument
    from rdc.model.duplicates import DuplicateFile as DuplicateFile
    from rdc.model.duplicates import DuplicateGroup as DuplicateGroup
    from rdc.model.duplicates import DuplicateOptions as DuplicateOptions
    from rdc.model.duplicates import DuplicateOrder as DuplicateOrder
    from rdc.model.duplicates import DuplicateReport as DuplicateReport
    from rdc.model.duplicates import DuplicateSummary as DuplicateSummary
    from rdc.model.filter_rules import DirectoryRules as DirectoryRules
    from rdc.model.filter_rules import FilterRule as FilterRule
    from rdc.model.filter_rules import RuleAction as RuleAction
    from rdc.model.filter_rules import RuleModifiers as RuleModifiers
    from rdc.model.filter_rules import RuleSide as RuleSide
    from rdc.model.filter_rules import RuleSyntax as RuleSyntax
    from rdc.model.instances import Action as Action
    from rdc.model.instances import DedupeOptions as DedupeOptions
    from rdc.model.instances import DedupeReport as DedupeReport
    from rdc.model.instances import DuplicateListing as DuplicateListing
    from rdc.model.instances import Instance as Instance
    from rdc.model.location import FarList as FarList
    from rdc.model.location import Location as Location
    from rdc.model.location import RemoteShell as RemoteShell
    from rdc.model.location import parse_location as parse_location
    from rdc.model.option_values import Alternates as Alternates
    from rdc.model.option_values import AlternateUse as AlternateUse
    from rdc.model.option_values import Backup as Backup
    from rdc.model.option_values import FileList as FileList
    from rdc.model.option_values import KeepUndo as KeepUndo
    from rdc.model.scan import Attribution as Attribution
    from rdc.model.scan import Bin as Bin
    from rdc.model.scan import Coverage as Coverage
    from rdc.model.scan import DirectorySummary as DirectorySummary
    from rdc.model.scan import LevelSummary as LevelSummary
    from rdc.model.scan import MergeOptions as MergeOptions
    from rdc.model.scan import Overlap as Overlap
    from rdc.model.scan import ScanOptions as ScanOptions
    from rdc.model.scan import ScanProblem as ScanProblem
    from rdc.model.scan import ScanReport as ScanReport
    from rdc.model.scan import ScanSlice as ScanSlice
    from rdc.model.scan import SimilarFiles as SimilarFiles
    from rdc.model.scan import TypeSummary as TypeSummary
    from rdc.model.similar import SimilarFile as SimilarFile
    from rdc.model.similar import SimilarFolders as SimilarFolders
    from rdc.model.similar import SimilarGroup as SimilarGroup
    from rdc.model.similar import SimilarOptions as SimilarOptions
    from rdc.model.similar import SimilarReport as SimilarReport
    from rdc.model.similar import SimilarSummary as SimilarSummary
    from rdc.model.sync import SyncOptions as SyncOptions
    from rdc.model.sync_report import MessageCost as MessageCost
    from rdc.model.sync_report import Purpose as Purpose
    from rdc.model.sync_report import SyncReport as SyncReport
    from rdc.model.undo import UndoableSync as UndoableSync
    from rdc.model.undo import UndoItem as UndoItem
    from rdc.model.undo import UndoOptions as UndoOptions
    from rdc.model.undo import UndoReport as UndoReport
    from rdc.model.watch import Disconnected as Disconnected
    from rdc.model.watch import Halted as Halted
    from rdc.model.watch import InStep as InStep
    from rdc.model.watch import Limited as Limited
    from rdc.model.watch import Resumed as Resumed
    from rdc.model.watch import WatchEvent as WatchEvent
    from rdc.model.watch import WatchOptions as WatchOptions
    from rdc.model.watch import WatchReport as WatchReport
    from rdc.progress import Event as Event
    from rdc.progress import ItemChanged as ItemChanged
    from rdc.progress import PlanKnown as PlanKnown
    from rdc.progress import Problem as Problem
    from rdc.progress import Progressed as Progressed
    from rdc.progress import Reporter as Reporter
    from rdc.progress import StopSignal as StopSignal
    from rdc.signature.tree import Level as Level
    from rdc.signature.tree import SignatureTree as SignatureTree
    from rdc.similarity.estimate import Estimate as Estimate
    from rdc.similarity.index import Match as Match
    from rdc.similarity.index import SimilarityIndex as SimilarityIndex
    from rdc.similarity.pairs import SimilarPair as SimilarPair
    from rdc.similarity.pairs import SimilarPairs as SimilarPairs
    from rdc.similarity.saved import SimilarityIndexError as SimilarityIndexError
    from rdc.similarity.traits import Traits as Traits
    from rdc.undoing.undo import UndoReporter as UndoReporter
    from rdc.watching.reporter import WatchReporter as WatchReporter


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'rdc' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    """Lists all public names, used or not, for completion in an interactive shell."""
    return sorted({*globals(), *__all__})
