"""A user's script that uses every public name of rdc. `mypy --strict` accepts it; nothing runs it."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import rdc

VERSION: str = rdc.__version__
KERNEL: str = rdc.kernel_name()
PARAMS = rdc.ChunkParams.for_mean(16384)


class Events:
    """Counts what a job reports."""

    def __init__(self) -> None:
        self.bytes = 0
        self.problems: list[str] = []

    def of_a_job(self, event: rdc.Event, /) -> None:
        if isinstance(event, rdc.PlanKnown):
            self.bytes = event.bytes
        elif isinstance(event, rdc.ItemChanged):
            print(event.change, event.path, event.target, event.path_bytes)
        elif isinstance(event, rdc.Progressed):
            print(event.phase, event.done, event.total)
        else:
            self.problem(event)

    def problem(self, problem: rdc.Problem) -> None:
        if problem.code is not rdc.ExitCode.OK:
            self.problems.append(problem.message)

    def of_a_dedupe(self, event: rdc.DedupeEvent, /) -> None:
        if isinstance(event, rdc.Instance) and event.action is rdc.Action.LINK:
            print(event.path_bytes, event.source_bytes)

    def of_a_watch(self, event: rdc.Event | rdc.WatchEvent, /) -> None:
        if isinstance(event, rdc.InStep):
            print(event.seconds)
        elif isinstance(event, rdc.Halted | rdc.Limited | rdc.Disconnected):
            print(event.reason)
        elif isinstance(event, rdc.Resumed):
            print("resumed")


EVENTS = Events()
REPORTER: rdc.Reporter = EVENTS.of_a_job
DEDUPE_REPORTER: rdc.DedupeReporter = EVENTS.of_a_dedupe
WATCH_REPORTER: rdc.WatchReporter = EVENTS.of_a_watch
STOP: rdc.StopSignal = threading.Event()
RULES: tuple[rdc.FilterRule | rdc.DirectoryRules, ...] = (
    rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"*.o"),
    rdc.FilterRule(rdc.RuleAction.EXCLUDE, b"own", rdc.RuleModifiers(side=rdc.RuleSide.DESTINATION)),
    rdc.DirectoryRules(b".gitignore", rdc.RuleSyntax.GIT),
)


def costs(report: rdc.SyncReport) -> dict[rdc.Purpose, list[rdc.MessageCost]]:
    return {purpose: [cost for cost in report.by_kind if cost.purpose is purpose] for purpose in rdc.Purpose}


def synced(place: rdc.Location) -> rdc.ExitCode:
    yesterday = rdc.Alternates(rdc.AlternateUse.LINK, (b"../yesterday",))
    names, there = rdc.FileList((b"docs/./index.md",)), rdc.FarList(b"list")
    print(rdc.SyncOptions(alternates=yesterday), rdc.SyncOptions(files=names))
    print(rdc.SyncOptions(files_from=there))
    options = rdc.SyncOptions(delete=True, rules=RULES, backup=rdc.Backup(b"~"))
    shell = rdc.RemoteShell(("ssh", "-p", "2222"))
    catalog: rdc.UserCatalog = rdc.USER_CATALOG
    try:
        report = rdc.sync("src/", place, options, shell=shell, reporter=REPORTER, catalog=catalog, stop=STOP)
    except rdc.StoppedError as error:
        return error.code
    except (rdc.CommandMissingError, rdc.IncompatiblePeerError, rdc.OutOfSpaceError, rdc.TrustError) as error:
        print(error)
        return error.code
    except (rdc.ProtocolError, rdc.StreamError, rdc.UsageError) as error:
        return error.code
    except rdc.RdcError as error:
        return error.code
    print(costs(report))
    rdc.sync(b"src/", place, delete=True, exclude=["*.o", b"*.a"], max_size="5G", progress=print)
    return report.exit


def undone(place: str) -> list[bytes]:
    paths: list[bytes] = []

    def report(event: rdc.UndoItem | rdc.Problem | rdc.Progressed, /) -> None:
        if not isinstance(event, rdc.Progressed):
            paths.append(event.path_bytes)

    reporter: rdc.UndoReporter = report
    rdc.sync("src/", place, rdc.SyncOptions(keep_undo=rdc.KeepUndo(days=30)))
    syncs: tuple[rdc.UndoableSync, ...] = rdc.undoable_syncs(place)
    taken_back: rdc.UndoReport = rdc.undo(place, rdc.UndoOptions(dry_run=True), reporter=reporter)
    print(len(syncs), taken_back.exit)
    return paths


def united(left: str, right: str) -> list[bytes]:
    torn: list[rdc.UniteConflict] = []

    def report(event: rdc.UniteEvent | rdc.Event | rdc.WatchEvent, /) -> None:
        if isinstance(event, rdc.United | rdc.UniteItem):
            print(event.left if isinstance(event, rdc.United) else event.side)
        if isinstance(event, rdc.UniteConflict):
            torn.append(event)

    reporter: rdc.UniteReporter = report
    resolve = (rdc.Resolve(b"notes.txt", rdc.Resolution.LEFT),)
    options = rdc.UniteOptions(prefer=rdc.Prefer.NEWER, resolve=resolve)
    done: rdc.UniteReport = rdc.unite(left, right, options, reporter=reporter, stop=STOP)
    pair: rdc.UnitePair | None = rdc.unite_status(left, right)
    print(done.conflicts, pair.conflicts if pair else rdc.forget_united(left, right))
    return [conflict.path_bytes for conflict in torn]


def stored(directory: str) -> list[int]:
    options = rdc.StoreOptions(name="daily", rules=RULES)
    report: rdc.StoreReport = rdc.store_put(directory, "states", options, reporter=REPORTER, stop=STOP)
    verified: rdc.VerifyReport = rdc.verify_store("states", 0.01, reporter=REPORTER)
    print(report.number, verified.snapshots)
    forgotten: rdc.ForgetReport = rdc.forget_snapshots("states", rdc.ForgetOptions(retain="7d,4w"))
    cleaned: rdc.GcReport = rdc.clean_store("states", rdc.GcOptions(wait=1.0), reporter=REPORTER, stop=STOP)
    packed: rdc.PackReport = rdc.store_pack("states", 2, "update", base=1, stop=STOP)
    print(forgotten.kept, cleaned.freed, packed.bytes)
    listed: tuple[rdc.SnapshotInfo, ...] = rdc.snapshots("states", alone=True)
    return [snapshot.number for snapshot in listed]


def checked() -> list[bytes]:
    found: list[rdc.EntryDiffers] = []
    options = rdc.CheckOptions(rdc.SyncOptions(rules=RULES), sample=rdc.Sample(0.5, seed=1))
    report: rdc.CheckReport = rdc.check(
        "src/", "host:copy/", options, reporter=REPORTER, on_difference=found.append, stop=STOP
    )
    print(report.different, report.exit)
    return [one.path_bytes for one in found if rdc.Aspect.CONTENT in one.aspects]


def watched() -> int:
    options = rdc.WatchOptions(rdc.SyncOptions(delete=True), rescan=60)
    place = rdc.parse_location("host:copy/")
    report: rdc.WatchReport = rdc.watch("src/", place, options, reporter=WATCH_REPORTER, stop=STOP)
    return report.turns


def scanned(store: rdc.SignatureStore) -> rdc.ScanReport:
    options = rdc.ScanOptions(compress=False, shift=2, slice=rdc.ScanSlice(1, 1))
    rdc.scan(["a", b"b"], options, part="a.rdcscan", catalog=store, stop=STOP)
    with ThreadPoolExecutor(2) as executor:
        parts: tuple[str, ...] = rdc.scan_parts(
            "a", executor, 4, "parts", threads=2, reporter=REPORTER, stop=STOP
        )
    return rdc.merge([*parts, "a.rdcscan"], rdc.MergeOptions(memory=1 << 28), reporter=REPORTER, stop=STOP)


def shown(report: rdc.ScanReport) -> list[bytes | str]:
    levels: tuple[rdc.LevelSummary, ...] = report.levels
    bars: list[rdc.Bin] = [bar for level in levels for bar in level.sizes]
    directories: tuple[rdc.DirectorySummary, ...] = report.directories
    types: tuple[rdc.TypeSummary, ...] = report.types
    overlaps: tuple[rdc.Overlap, ...] = report.overlaps
    similar: tuple[rdc.SimilarFiles, ...] = report.similar
    identical: tuple[rdc.IdenticalSummary, ...] = report.identical
    ages: tuple[rdc.AgeSummary, ...] = report.ages
    growth: rdc.Growth | None = report.growth
    if growth is not None:
        grown: tuple[rdc.DirectoryGrowth, ...] = growth.directories
        by_type: tuple[rdc.TypeGrowth, ...] = growth.types
        print(identical, ages, grown, by_type)
    problems: tuple[rdc.ScanProblem, ...] = report.errors
    coverage: rdc.Coverage = report.coverage
    attribution: rdc.Attribution = report.attribution
    print(bars, overlaps, similar, coverage.complete, attribution.rate)
    return [
        *(one.path_bytes for one in directories),
        *(one.name for one in types),
        *(one.message for one in problems),
    ]


def duplicates() -> list[rdc.DuplicateFile]:
    options = rdc.DuplicateOptions(order=rdc.DuplicateOrder.SIZE)
    with rdc.Catalog("catalog") as catalog:
        report: rdc.DuplicateReport = rdc.dupes("photos", options, catalog=catalog, stop=STOP)
    groups: Iterable[rdc.DuplicateGroup] = report.groups
    directories: tuple[rdc.DirectoryGroup, ...] = report.directories
    summary: rdc.DuplicateSummary = report.summary
    print(summary.waste, directories)
    return [file for group in groups for file in group.files]


def alike() -> list[rdc.SimilarFile]:
    report: rdc.SimilarReport = rdc.similar("texts", rdc.SimilarOptions(folders=True), stop=STOP)
    pairs: tuple[rdc.SimilarFolders, ...] = report.folders
    summary: rdc.SimilarSummary | None = report.summary
    groups: list[rdc.SimilarGroup] = list(report.groups)
    print(pairs, summary)
    return [file for group in groups for file in group.files]


def deduped(text: bytes) -> rdc.DedupeReport:
    options = rdc.DedupeOptions(hardlink=True, keep=(b"master",), rules=RULES)
    listing = rdc.DuplicateListing(text, "dupes.json")
    return rdc.dedupe("work", options, listing=listing, reporter=DEDUPE_REPORTER, stop=STOP)


def signed(file: rdc.BinaryReader) -> rdc.SignatureTree:
    try:
        there = rdc.sign_file("disk.img", PARAMS)
    except rdc.FileChangedError as error:
        print(error.path)
        raise
    except rdc.FileError as error:
        print(error.path)
        raise
    level: rdc.Level = there.levels[0]
    print(level.records)
    return rdc.sign(file, PARAMS)


def cut(data: bytes) -> list[rdc.Chunk]:
    chunker = rdc.Chunker(PARAMS)
    found = [*chunker.feed(data), *chunker.finish()]
    assert [chunk.offset + chunk.length for chunk in rdc.chunks(io.BytesIO(data), PARAMS)] == list(
        rdc.cuts(data, PARAMS)
    )
    return found


def patched(old: bytes, new: bytes) -> bytes:
    signature: bytes = rdc.sign(old).to_bytes()
    try:
        rdc.patch("old", rdc.signature_delta(signature, new), to="new", limit=1 << 40)
    except rdc.DeltaError as error:
        print(error)
    return rdc.patch(old, rdc.delta(old, new))


def alike_texts(texts: list[str]) -> list[rdc.NearDuplicate]:
    found: rdc.NearDuplicates = rdc.near_duplicates(texts, threshold=0.9)
    print(found.groups, found.kept, [chunk.length for chunk in rdc.chunks(texts[0].encode())])
    return list(found.pairs)


def indexed(traits: rdc.Traits) -> list[rdc.Match]:
    try:
        index: rdc.SimilarityIndex = rdc.open_index("traits.index")
    except rdc.SimilarityIndexError:
        index = rdc.SimilarityIndex()
    estimate: rdc.Estimate = traits.estimate(traits)
    pairs: rdc.SimilarPairs = index.pairs()
    first: rdc.SimilarPair | None = next(iter(pairs), None)
    print(estimate.jaccard, first)
    return index.query(traits)


def documents() -> list[rdc.Document]:
    options = rdc.DocumentOptions(field="body", threshold=0.9, rules=RULES)
    report: rdc.DocumentReport = rdc.similar_documents("corpus", options, part="corpus.rdcdocs", stop=STOP)
    summary: rdc.DocumentSummary = report.summary
    print(summary.documents, summary.pairs)
    labels = [group.label for group in groups(rdc.merge_documents(["corpus.rdcdocs"], options))]
    count: rdc.DocumentSlice = rdc.document_slice(
        "corpus", rdc.ScanSlice(1, 2), "1.rdcdocs", options, stop=STOP
    )
    print(count.documents, count.exit)
    with ThreadPoolExecutor(2) as executor:
        parts: tuple[str, ...] = rdc.document_parts(
            "corpus", executor, 4, "parts", options, reporter=REPORTER
        )
    print(parts)
    return [*labels, *report.kept]


def groups(report: rdc.DocumentReport) -> list[rdc.DocumentGroup]:
    found = list(report.groups)
    members: list[rdc.SimilarDocument] = [member for group in found for member in group.documents]
    print([(member.document.path_bytes, member.resemblance, member.like.row) for member in members])
    places: list[rdc.TextDifference] = [place for member in members for place in member.differences]
    print([(place.before, place.here, place.like, place.after) for place in places])
    return found
