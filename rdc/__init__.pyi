# The public names and the modules that define them. Type checkers read this file, and so does
# rdc/__init__.py: a name is public because it is imported here. What is imported with an underscore takes
# options as keywords, and is declared below with all of them.

import os
from collections.abc import Callable, Mapping, Sequence

from rdc.catalog.catalog import Catalog as Catalog
from rdc.catalog.store import USER_CATALOG as USER_CATALOG
from rdc.catalog.store import SignatureStore as SignatureStore
from rdc.catalog.store import UserCatalog as UserCatalog
from rdc.checking.records import Aspect as Aspect
from rdc.checking.records import CheckOptions as CheckOptions
from rdc.checking.records import CheckReport as CheckReport
from rdc.checking.records import EntryDiffers as EntryDiffers
from rdc.checking.records import Sample as Sample
from rdc.chunking import Chunk as Chunk
from rdc.chunking import Chunker as Chunker
from rdc.chunking import ChunkParams as ChunkParams
from rdc.duplicates.run_totals import DedupeEvent as DedupeEvent
from rdc.duplicates.run_totals import DedupeReporter as DedupeReporter
from rdc.errors import CommandMissingError as CommandMissingError
from rdc.errors import ExitCode as ExitCode
from rdc.errors import IncompatiblePeerError as IncompatiblePeerError
from rdc.errors import OutOfSpaceError as OutOfSpaceError
from rdc.errors import ProtocolError as ProtocolError
from rdc.errors import RdcError as RdcError
from rdc.errors import StoppedError as StoppedError
from rdc.errors import StreamError as StreamError
from rdc.errors import TrustError as TrustError
from rdc.errors import UsageError as UsageError
from rdc.kernel import kernel_name as kernel_name
from rdc.library import FileChangedError as FileChangedError
from rdc.library import FileError as FileError
from rdc.library.deltas import DeltaError as DeltaError
from rdc.library.deltas import delta as delta
from rdc.library.deltas import patch as patch
from rdc.library.deltas import signature_delta as signature_delta
from rdc.library.duplicates import dedupe as _dedupe
from rdc.library.duplicates import dupes as _dupes
from rdc.library.scans import merge as _merge
from rdc.library.scans import scan as _scan
from rdc.library.scans import scan_parts as scan_parts
from rdc.library.similar import document_parts as document_parts
from rdc.library.similar import document_slice as document_slice
from rdc.library.similar import merge_documents as _merge_documents
from rdc.library.similar import similar as _similar
from rdc.library.similar import similar_documents as _similar_documents
from rdc.library.stores import clean_store as clean_store
from rdc.library.stores import forget_snapshots as forget_snapshots
from rdc.library.stores import snapshots as snapshots
from rdc.library.stores import store_pack as store_pack
from rdc.library.stores import store_put as _store_put
from rdc.library.stores import verify_store as verify_store
from rdc.library.streams import BinaryReader as BinaryReader
from rdc.library.streams import chunks as chunks
from rdc.library.streams import cuts as cuts
from rdc.library.streams import open_index as open_index
from rdc.library.streams import sign as sign
from rdc.library.streams import sign_file as sign_file
from rdc.library.texts import NearDuplicate as NearDuplicate
from rdc.library.texts import NearDuplicates as NearDuplicates
from rdc.library.texts import near_duplicates as near_duplicates
from rdc.library.trees import check as _check
from rdc.library.trees import forget_united as forget_united
from rdc.library.trees import sync as _sync
from rdc.library.trees import undo as _undo
from rdc.library.trees import undoable_syncs as undoable_syncs
from rdc.library.trees import unite as _unite
from rdc.library.trees import unite_status as unite_status
from rdc.library.trees import watch as _watch
from rdc.model.duplicates import Action as Action
from rdc.model.duplicates import DedupeOptions as DedupeOptions
from rdc.model.duplicates import DedupeReport as DedupeReport
from rdc.model.duplicates import DirectoryGroup as DirectoryGroup
from rdc.model.duplicates import DuplicateFile as DuplicateFile
from rdc.model.duplicates import DuplicateGroup as DuplicateGroup
from rdc.model.duplicates import DuplicateListing as DuplicateListing
from rdc.model.duplicates import DuplicateOptions as DuplicateOptions
from rdc.model.duplicates import DuplicateOrder as DuplicateOrder
from rdc.model.duplicates import DuplicateReport as DuplicateReport
from rdc.model.duplicates import DuplicateSummary as DuplicateSummary
from rdc.model.duplicates import Instance as Instance
from rdc.model.location import FarList as FarList
from rdc.model.location import Location as Location
from rdc.model.location import RemoteShell as RemoteShell
from rdc.model.location import parse_location as parse_location
from rdc.model.options import Alternates as Alternates
from rdc.model.options import AlternateUse as AlternateUse
from rdc.model.options import Backup as Backup
from rdc.model.options import FileList as FileList
from rdc.model.options import KeepUndo as KeepUndo
from rdc.model.runs import MessageCost as MessageCost
from rdc.model.runs import Purpose as Purpose
from rdc.model.runs import SyncReport as SyncReport
from rdc.model.scan import AgeSummary as AgeSummary
from rdc.model.scan import Attribution as Attribution
from rdc.model.scan import Bin as Bin
from rdc.model.scan import Coverage as Coverage
from rdc.model.scan import DirectoryGrowth as DirectoryGrowth
from rdc.model.scan import DirectorySummary as DirectorySummary
from rdc.model.scan import Growth as Growth
from rdc.model.scan import IdenticalSummary as IdenticalSummary
from rdc.model.scan import LevelSummary as LevelSummary
from rdc.model.scan import MergeOptions as MergeOptions
from rdc.model.scan import Overlap as Overlap
from rdc.model.scan import ScanOptions as ScanOptions
from rdc.model.scan import ScanProblem as ScanProblem
from rdc.model.scan import ScanReport as ScanReport
from rdc.model.scan import ScanSlice as ScanSlice
from rdc.model.scan import SimilarFiles as SimilarFiles
from rdc.model.scan import TypeGrowth as TypeGrowth
from rdc.model.scan import TypeSummary as TypeSummary
from rdc.model.selection import DirectoryRules as DirectoryRules
from rdc.model.selection import FilterRule as FilterRule
from rdc.model.selection import RuleAction as RuleAction
from rdc.model.selection import RuleModifiers as RuleModifiers
from rdc.model.selection import RuleSide as RuleSide
from rdc.model.selection import RuleSyntax as RuleSyntax
from rdc.model.similar import Document as Document
from rdc.model.similar import DocumentGroup as DocumentGroup
from rdc.model.similar import DocumentOptions as DocumentOptions
from rdc.model.similar import DocumentReport as DocumentReport
from rdc.model.similar import DocumentSlice as DocumentSlice
from rdc.model.similar import DocumentSummary as DocumentSummary
from rdc.model.similar import SimilarDocument as SimilarDocument
from rdc.model.similar import SimilarFile as SimilarFile
from rdc.model.similar import SimilarFolders as SimilarFolders
from rdc.model.similar import SimilarGroup as SimilarGroup
from rdc.model.similar import SimilarOptions as SimilarOptions
from rdc.model.similar import SimilarReport as SimilarReport
from rdc.model.similar import SimilarSummary as SimilarSummary
from rdc.model.similar import TextDifference as TextDifference
from rdc.model.sync import SyncOptions as SyncOptions
from rdc.progress import Event as Event
from rdc.progress import ItemChanged as ItemChanged
from rdc.progress import PlanKnown as PlanKnown
from rdc.progress import Problem as Problem
from rdc.progress import Progressed as Progressed
from rdc.progress import Reporter as Reporter
from rdc.progress import StopSignal as StopSignal
from rdc.signature.tree import Level as Level
from rdc.signature.tree import SignatureTree as SignatureTree
from rdc.similarity.index import Match as Match
from rdc.similarity.index import SimilarityIndex as SimilarityIndex
from rdc.similarity.index import SimilarityIndexError as SimilarityIndexError
from rdc.similarity.index import SimilarPair as SimilarPair
from rdc.similarity.index import SimilarPairs as SimilarPairs
from rdc.similarity.traits import Estimate as Estimate
from rdc.similarity.traits import Traits as Traits
from rdc.store.records import ForgetOptions as ForgetOptions
from rdc.store.records import ForgetReport as ForgetReport
from rdc.store.records import GcOptions as GcOptions
from rdc.store.records import GcReport as GcReport
from rdc.store.records import PackReport as PackReport
from rdc.store.records import SnapshotInfo as SnapshotInfo
from rdc.store.records import StoreOptions as StoreOptions
from rdc.store.records import StoreReport as StoreReport
from rdc.store.records import VerifyReport as VerifyReport
from rdc.undoing.records import UndoableSync as UndoableSync
from rdc.undoing.records import UndoItem as UndoItem
from rdc.undoing.records import UndoOptions as UndoOptions
from rdc.undoing.records import UndoReport as UndoReport
from rdc.undoing.undo import UndoReporter as UndoReporter
from rdc.uniting.records import Prefer as Prefer
from rdc.uniting.records import Resolution as Resolution
from rdc.uniting.records import Resolve as Resolve
from rdc.uniting.records import UniteConflict as UniteConflict
from rdc.uniting.records import United as United
from rdc.uniting.records import UniteEvent as UniteEvent
from rdc.uniting.records import UniteItem as UniteItem
from rdc.uniting.records import UniteOptions as UniteOptions
from rdc.uniting.records import UnitePair as UnitePair
from rdc.uniting.records import UniteReport as UniteReport
from rdc.uniting.records import UniteReporter as UniteReporter
from rdc.version import __version__ as __version__
from rdc.watching.records import Disconnected as Disconnected
from rdc.watching.records import Halted as Halted
from rdc.watching.records import InStep as InStep
from rdc.watching.records import Limited as Limited
from rdc.watching.records import Resumed as Resumed
from rdc.watching.records import WatchEvent as WatchEvent
from rdc.watching.records import WatchOptions as WatchOptions
from rdc.watching.records import WatchReport as WatchReport
from rdc.watching.records import WatchReporter as WatchReporter

__all__: list[str]

def __dir__() -> list[str]: ...

# Written by scripts/manual/stub.py from the code. Change nothing below.

def dedupe(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DedupeOptions | None = None,
    *,
    listing: DuplicateListing | None = None,
    catalog: SignatureStore | UserCatalog | None = ...,
    reporter: DedupeReporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    environ: Mapping[str, str] | None = None,
    apply: bool = False,
    hardlink: bool = False,
    chunks: bool = False,
    keep: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = (),
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    min_size: int = 1,
    max_files: int | None = None,
    max_bytes: int | None = None,
    journal: str | bytes | os.PathLike[str] | None = None,
) -> DedupeReport:
    """Make duplicates at and below `paths` share their blocks, or hard links of them.

    Without `options.apply` it only says what it would do. `listing`: groups that an earlier search found;
    None searches. `progress` receives the events about progress alone. `environ`: the variables that name the
    state directory, where journals lie; None for those of this process. Contents are compared again before a
    file changes, and between any two steps every file is complete. Raises StoppedError once `stop` is set;
    what was done until then stays. Raises UsageError for options that exclude each other, and RdcError if the
    disk is full or the journal cannot be written.
    """

def dupes(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DuplicateOptions | None = None,
    *,
    catalog: SignatureStore | UserCatalog | None = ...,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    min_size: int = 1,
    max_size: int | None = None,
    one_file_system: bool = False,
    links: bool = False,
    verify: bool = False,
    order: DuplicateOrder | str = ...,
    workers: int | None = None,
    depth: int = 0,
    max_rate: int = 0,
    across: bool = False,
    reference: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = (),
) -> DuplicateReport:
    """Find the groups of identical regular files at and below `paths` (several, or one).

    A file that cannot be read, vanishes or changes meanwhile is reported as a Problem and is in no group.
    Large files that `catalog` knows are not read. Nothing is changed. Raises StoppedError once `stop` is set.
    """

def merge(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: MergeOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    since: str | bytes | os.PathLike[str] | None = None,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    memory: int = 536870912,
) -> ScanReport:
    """Merge the parts that `rdc.scan` wrote into one report, as if one scan had read all files.

    `part`: a file to write what was merged to, as a part again. It never replaces one of `parts`, and another
    file that is no part only with `overwrite`. `since`: as for `rdc.scan`. `reporter` receives Progressed
    events of the phase 'read', in bytes of parts, before each part and at the end. Once `stop` is set, the
    merge raises StoppedError before the next part. Raises RdcError for a part that cannot be read or is
    damaged, and UsageError for parts of different options; both name the part.
    """

def scan(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: ScanOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    since: str | bytes | os.PathLike[str] | None = None,
    catalog: SignatureStore | UserCatalog | None = ...,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    clock: Callable[[], float] = ...,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    one_file_system: bool = False,
    fixed: Sequence[str] = (),
    compress: bool = True,
    memory: int = 536870912,
    seconds: float | None = None,
    sample: float | None = None,
    seed: int = 0,
    shift: int = 0,
    slice: ScanSlice | None = None,
    depth: int = 0,
    max_rate: int = 0,
) -> ScanReport:
    """Measure what deduplication and compression would save below `paths` (several, or one): files and
    directories, and URLs s3://BUCKET/NAME of objects.

    `part`: a file to write the counts to, for `rdc.merge`. It never replaces a file that is read, and another
    file that is no part only with `overwrite`. `since`: the part of an earlier scan of the same paths, for
    the report's `growth`. `catalog` is asked before a file is read and gets new signatures. Once `stop` is
    set, the scan ends with the files read so far: the report's coverage has the reason 'interrupted' and its
    exit is ExitCode.INTERRUPTED. `clock` returns seconds and never goes back. Raises UsageError. Failures of
    single files are in the report.
    """

def merge_documents(
    parts: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    one_file_system: bool = False,
    field: str = "text",
    format: str = "auto",
    shingle: str = "words",
    threshold: float = 0.8,
    link: str = "single",
    against: str | bytes | os.PathLike[str] | None = None,
    excerpts: bool = False,
    clean: str | bytes | os.PathLike[str] | None = None,
    stage: str | bytes | os.PathLike[str] | None = None,
    workers: int | None = None,
    depth: int = 0,
    max_rate: int = 0,
) -> DocumentReport:
    """Find documents that resemble each other among those of several parts.

    The report is that of one search of all documents, however they were divided and in whatever order the
    parts come. Of `options`, threshold, link, against and workers count. `part`: a file to write all of it
    to, as a part again. It never replaces one of `parts`, and another file that is no part only with
    `overwrite`. Raises RdcError for a part that cannot be read or is damaged, and UsageError for parts of
    different shingles; both name the part.
    """

def similar(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: SimilarOptions | None = None,
    *,
    catalog: SignatureStore | UserCatalog | None = ...,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    min_size: int = 512,
    max_size: int | None = None,
    one_file_system: bool = False,
    threshold: float = 0.5,
    workers: int | None = None,
    to: str | bytes | os.PathLike[str] | None = None,
    top: int = 20,
    folders: bool = False,
    depth: int = 0,
    max_rate: int = 0,
) -> SimilarReport:
    """Find files at and below `paths` that resemble each other without being identical.

    With `options.to` it ranks the files that resemble one file, with `options.folders` it finds directories
    that overlap. A file that cannot be read is reported as a Problem. Nothing is changed. Raises UsageError
    for options that exclude each other, and StoppedError once `stop` is set.
    """

def similar_documents(
    paths: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    options: DocumentOptions | None = None,
    *,
    part: str | bytes | os.PathLike[str] | None = None,
    overwrite: bool = False,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    stop: StopSignal | None = None,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    one_file_system: bool = False,
    field: str = "text",
    format: str = "auto",
    shingle: str = "words",
    threshold: float = 0.8,
    link: str = "single",
    against: str | bytes | os.PathLike[str] | None = None,
    excerpts: bool = False,
    clean: str | bytes | os.PathLike[str] | None = None,
    stage: str | bytes | os.PathLike[str] | None = None,
    workers: int | None = None,
    depth: int = 0,
    max_rate: int = 0,
) -> DocumentReport:
    """Find documents at and below `paths` that resemble each other.

    A document is a plain text file, a row of a JSONL file or a row of a Parquet file. `part`: a file to write
    what was read to, for `merge_documents`. It never replaces a file that is read, and another file that is
    no part only with `overwrite`. What cannot be read is reported as a Problem and left out. Nothing is
    changed. Raises UsageError for options out of range, and StoppedError once `stop` is set.
    """

def store_put(
    source: str | bytes | os.PathLike[str],
    store: str | bytes | os.PathLike[str],
    options: StoreOptions | None = None,
    *,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    catalog: SignatureStore | UserCatalog | None = ...,
    stop: StopSignal | None = None,
    name: str | bytes | os.PathLike[str] | None = None,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    one_file_system: bool = False,
    level: int = 3,
    deltas: bool = True,
    heal: bool = False,
    force_empty: bool = False,
    publish: bool = False,
) -> StoreReport:
    """Add a snapshot of a local directory to a store, as `rdc store put` does. A missing store is made.

    Raises UsageError for a name that no series can have and for a directory in the store, and RdcError if no
    snapshot could be added. Once `stop` is set, the run ends with StoppedError.
    """

def check(
    source: Location | str | bytes | os.PathLike[str],
    destination: Location | str | bytes | os.PathLike[str],
    options: CheckOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    on_difference: Callable[[EntryDiffers], None] = ...,
    catalog: SignatureStore | UserCatalog | None = ...,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    times: bool = True,
    modes: bool = True,
    trust_catalog: bool = False,
    sample: Sample | float | None = None,
    checksum: bool = False,
    hard_links: bool = False,
    xattrs: bool = False,
    acls: bool = False,
    one_file_system: bool = False,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    owner: bool | None = None,
    compress: bool | None = None,
    bandwidth: int | str = 0,
    max_memory: int | str | None = None,
    depth: int | str = 0,
    timeout: int | str = 0,
    items: bool = True,
) -> CheckReport:
    """Compare two trees by content, as `rdc check` does. Nothing changes at either end.

    The places, `shell`, `keys` and `reporter` are those of `rdc.sync`. `on_difference` takes each entry that
    differs. `catalog` tells what syncs learned of the file systems; its signatures are believed and filled
    only with `options.trust_catalog`. Once `stop` is set, the run ends with StoppedError. Raises UsageError
    for options that mean nothing to a check, and RdcError if the run as a whole cannot go on.
    """

def sync(
    source: Location | str | bytes | os.PathLike[str] | Sequence[Location | str | bytes | os.PathLike[str]],
    destination: Location | str | bytes | os.PathLike[str],
    options: SyncOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    catalog: SignatureStore | UserCatalog | None = ...,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    recursive: bool = True,
    perms: bool = True,
    times: bool = True,
    group: bool = True,
    chmod: str = "",
    checksum: bool = False,
    update: bool = False,
    existing: bool = False,
    ignore_existing: bool = False,
    size_only: bool = False,
    max_size: int | str | None = None,
    min_size: int | str = 0,
    hard_links: bool = False,
    xattrs: bool = False,
    acls: bool = False,
    one_file_system: bool = False,
    mkpath: bool = False,
    dry_run: bool = False,
    fsync: bool = True,
    ignore_times: bool = False,
    modify_window: int | str | None = None,
    whole_file: bool = False,
    fewest_bytes: bool = False,
    delete: bool = False,
    rules_after: bool = False,
    delete_excluded: bool = False,
    max_delete: int | str | None = None,
    max_delete_share: int | None = None,
    guard: int | str | None = None,
    force_empty: bool = False,
    force: bool = False,
    remove_source_files: bool = False,
    ignore_errors: bool = False,
    backup_dir: str | bytes | os.PathLike[str] | None = ...,
    backup: Backup | bool | str | None = None,
    keep_undo: KeepUndo | str | None = None,
    relative: bool = False,
    implied_dirs: bool = True,
    files: FileList | str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] | None = None,
    files_from: FarList | None = None,
    ignore_missing_args: bool = False,
    delete_missing_args: bool = False,
    prune_empty_dirs: bool = False,
    link_dest: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    compare_dest: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    copy_dest: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    alternates: Alternates | None = None,
    inplace: bool = False,
    append: bool = False,
    sparse: bool = False,
    delay_updates: bool = False,
    partial_dir: str | bytes | os.PathLike[str] = ...,
    temp_dir: str | bytes | os.PathLike[str] = ...,
    allocate: bool = False,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    copy_links: bool = False,
    copy_dirlinks: bool = False,
    copy_unsafe_links: bool = False,
    safe_links: bool = False,
    keep_dirlinks: bool = False,
    munge_links: bool = False,
    devices: bool = True,
    specials: bool = True,
    atimes: bool = False,
    open_noatime: bool = False,
    omit_dir_times: bool = False,
    omit_link_times: bool = False,
    owner: bool | None = None,
    super_user: bool = False,
    fake_super: bool = False,
    owner_names: bool = False,
    usermap: str | bytes | os.PathLike[str] = ...,
    groupmap: str | bytes | os.PathLike[str] = ...,
    compress: bool | None = None,
    bandwidth: int | str = 0,
    line: int | str = 0,
    max_memory: int | str | None = None,
    depth: int | str = 0,
    timeout: int | str = 0,
    unsigned: bool = False,
    items: bool = True,
    list_unchanged: bool = False,
) -> SyncReport:
    """Make `destination` equal to `source`, as `rdc sync` does.

    A string is read as on the command line: "src/" means the contents of the directory src, "src" the
    directory itself. A pathlib.Path is a local path and never ends with a slash.

    Options are one record, or keywords: every field of SyncOptions is one, and further ones are `include`,
    `exclude`, `backup_dir`, `link_dest`, `compare_dest` and `copy_dest`. A keyword also accepts text or a
    pathlib.Path for bytes, a list for a tuple, and for a number the text of the command line, such as "500M".
    Rules of `rules` come first, then those of `include`, then those of `exclude`.

    Either may be on another host, and both: everything then passes through this machine, and `catalog` is not
    used.

    Several sources are a list or tuple of them, all on one host. Where they have the same names, the first
    file counts, and directories become one.

    `reporter` receives all events, and `progress` those about progress alone, whose figures never go back.
    Problems with single files go to `reporter` and into the report's exit code. Raises RdcError if the run
    as a whole cannot go on; every path of the destination is then either old or new.

    `catalog`: stores signatures of local files. The default is the path in RDC_CATALOG or else the user's
    cache directory; None stores nothing. A catalog that the caller passes is flushed and stays open.
    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own directory.
    `stop`: once another thread sets it, the run ends with StoppedError. The next run resumes.
    """

def undo(
    destination: str | bytes | os.PathLike[str],
    options: UndoOptions | None = None,
    *,
    reporter: UndoReporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    dry_run: bool = False,
    fsync: bool = True,
) -> UndoReport:
    """Take the latest sync into a local directory back, as `rdc undo` does.

    That sync must have had `SyncOptions.keep_undo`. What was changed since is newer work: it stays,
    `reporter` gets a Problem that names it, and the report has exit code 23. `progress` receives the events
    about progress alone. Raises RdcError if the undo as a whole cannot go on; the next call continues it.
    """

def unite(
    left: Location | str | bytes | os.PathLike[str],
    right: Location | str | bytes | os.PathLike[str],
    options: UniteOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: UniteReporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    dry_run: bool = False,
    prefer: Prefer | str | None = None,
    resolve: Sequence[Resolve] = (),
    keep_both: bool = False,
    max_copies: int = 10,
    units: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] | None = None,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | Sequence[str | FilterRule] | None = None,
    checksum: bool = False,
    guard: int = 50,
    force_empty: bool = False,
    ring: bool = False,
    keep_undo: KeepUndo | str | None = ...,
    fsync: bool = True,
    merge: bool = False,
    keep_base: int = 67108864,
    watch: bool = False,
    rescan: int = 600,
    xattrs: bool = False,
    acls: bool = False,
    hard_links: bool = False,
) -> UniteReport:
    """Bring two directories together that both changed, as `rdc unite` does. One may be on another machine.

    What only one side changed goes to the other. What both changed is a conflict: both versions stay, and
    `reporter` gets a UniteConflict. The report has exit code 41 then, and 23 if entries were held or failed.
    Once `stop` is set, the run ends with StoppedError, and the next one goes on. Raises RdcError if the run
    as a whole cannot go on; no version is lost then. `shell`, `keys` and `progress` are those of `rdc.sync`.
    With `watch`, runs follow until `stop` is set, and the report sums them up.
    """

def watch(
    source: Location | str | bytes | os.PathLike[str],
    destination: Location | str | bytes | os.PathLike[str],
    options: WatchOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: WatchReporter = ...,
    progress: Callable[[Progressed], None] | None = None,
    catalog: SignatureStore | UserCatalog | None = ...,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
    sleep: Callable[[float], None] = ...,
    rescan: int = 600,
    on_sync: Sequence[str] = (),
    perms: bool = True,
    times: bool = True,
    group: bool = True,
    mkpath: bool = False,
    fsync: bool = True,
    whole_file: bool = False,
    fewest_bytes: bool = False,
    delete: bool = False,
    rules_after: bool = False,
    max_delete: int | str | None = None,
    max_delete_share: int | None = None,
    force_empty: bool = False,
    backup_dir: str | bytes | os.PathLike[str] | None = ...,
    backup: Backup | bool | str | None = None,
    inplace: bool = False,
    sparse: bool = False,
    allocate: bool = False,
    include: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    exclude: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] = ...,
    rules: str | FilterRule | DirectoryRules | Sequence[str | FilterRule | DirectoryRules] = (),
    owner: bool | None = None,
    compress: bool | None = None,
    bandwidth: int | str = 0,
    line: int | str = 0,
    max_memory: int | str | None = None,
    depth: int | str = 0,
    timeout: int | str = 0,
    items: bool = True,
) -> WatchReport:
    """Keep `destination` in sync with the directory `source` until `stop` is set, as `rdc watch` does.

    `reporter` receives the events of single entries and those of the watch itself, such as InStep after each
    turn. `progress` receives those about progress alone; its figures start again in each turn.
    KeyboardInterrupt ends the watch as `stop` does: the report says what was done until then.

    Places, `shell`, `catalog` and `keys` are those of `rdc.sync`; both may be on other hosts. `sleep` waits
    for some seconds. Raises RdcError if the first comparison of the trees fails, and for a later error that
    no wait repairs. Other errors are reported, and the remote side is dialled again.
    """
