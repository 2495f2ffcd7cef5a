"""Objects of a store in a scan: found below its URLs, each once, read several at a time, and signed as
files are.
"""

from __future__ import annotations

from array import array

from rdc.catalog.small_files import SmallOutcome, sign_contents
from rdc.catalog.store import SignedFiles
from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.files.bulk.open_many import REPLACED, Contents
from rdc.files.depth import Depths, ReadRate
from rdc.files.objects.object_store import (
    ListedObject,
    ListedObjects,
    ObjectStore,
    ObjectTree,
    ObjectUrl,
    is_url,
    parse_url,
)
from rdc.lean.records import replace
from rdc.model.entries import strings
from rdc.model.selection import are_plain
from rdc.progress import Problem, Reporter
from rdc.survey.scan.found_files import FoundFile, ScannedFile, SignedBatch, SmallBatch
from rdc.tree import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.chunking import ChunkParams
    from rdc.model.scan import ScanOptions


# ObjectWalk: finds the objects below the URLs of a scan, each once.

FIRST_DEPTH = 8
"""Calls in flight until waits were measured. A store makes each call wait, so there is no reason to begin
with one."""


def check_urls(paths: Sequence[bytes], options: ScanOptions) -> None:
    """Raise UsageError for a URL of another kind, if what reads it is not installed, and for options that
    mean nothing for objects."""
    for path in filter(is_url, paths):
        parse_url(path)
        if options.one_file_system:
            raise UsageError(f"{printable(path)}: -x is for file systems, and a store has none; leave it out")
        if not are_plain(options.rules):
            raise UsageError(f"{printable(path)}: rules of files in directories are not read from a store")


class ObjectTrees:
    """The trees that the URLs of one scan name. They share connections, calls in flight and a rate."""

    def __init__(self, options: ScanOptions, stopped: Callable[[], bool], rate: ReadRate | None) -> None:
        """`rate`: bounds how fast objects are read."""
        self.store = ObjectStore(rate)
        self.depths = Depths(options.depth, FIRST_DEPTH)
        self._stopped = stopped

    def tree(self, url: ObjectUrl, *, single: bool = False) -> ObjectTree:
        """Return the tree of a URL, or with `single` the one above the object that it names."""
        name = url.name.rpartition("/")[0] if single else url.name
        return ObjectTree(self.store, self.depths, url.bucket, name, self._stopped)


class ObjectWalk:
    """Lists objects, as UniqueWalk does with directories. What cannot be listed is reported, and skipped.

    What several URLs lead to is counted under the first of them. Only a URL can lead to what another one
    has, so no others are remembered.
    """

    def __init__(
        self,
        options: ScanOptions,
        paths: Sequence[bytes],
        reporter: Reporter,
        stopped: Callable[[], bool],
        rate: ReadRate | None,
    ) -> None:
        """`paths`: all of the scan, of which the URLs matter. `rate`: as in ObjectTrees."""
        self._trees = ObjectTrees(options, stopped, rate)
        self._filters = filter_list(options.rules)
        self._report = reporter
        self._stopped = stopped
        self._named = {b"s3://" + parse_url(path).key.encode() for path in filter(is_url, paths)}
        """The things that the URLs name: objects, or directories without a slash behind them."""
        self._counted: set[bytes] = set()
        """The part of it that was counted. A directory has its slash."""

    def explore(self, url: ObjectUrl) -> Iterator[tuple[ObjectTree, bytes, ListedObjects]]:
        """Yield what is at and below a URL, by directory: the tree, the directory's path there, and the
        objects that count."""
        tree = self._trees.tree(url)
        walk = self._trees.store.walk(
            url, self._enter, self._stopped, left_out=self._left_out, depth=self._trees.depths.listing
        )
        for listed in walk:
            if isinstance(listed, FileError):
                self._report(Problem(listed.code, listed.path_bytes, str(listed)))
                continue
            chosen = self._chosen(listed)
            if listed.single and not chosen.sizes:
                continue
            where = self._trees.tree(url, single=True) if listed.single else tree
            below = b"/" + listed.below.removesuffix(b"/") if listed.below else b""
            yield where, b"." + below, chosen
            if listed.nameless and not listed.single:
                self._report(listed.nameless_problem())

    def _left_out(self, below: bytes) -> bool:
        return self._filters.excluded(below, True)

    def _enter(self, directory: bytes, _below: bytes) -> bool:
        """Return whether a directory is taken. One that a URL names is taken once."""
        if directory.removesuffix(b"/") in self._named:
            if directory in self._counted:
                self._report_again(directory.removesuffix(b"/"))
                return False
            self._counted.add(directory)
        return True

    def _chosen(self, listed: ListedObjects) -> ListedObjects:
        """Return `listed` without objects that filters exclude or that another URL named and were counted."""
        if not self._filters and not self._may_name(listed.directory):
            return listed
        names = strings(listed.names)
        rows = []
        for row, name in enumerate(names):
            if not listed.single and self._filters.excluded(listed.below + name, False):
                continue
            url = listed.directory + name
            if name and url in self._named:
                if url in self._counted:
                    self._report_again(url)
                    continue
                self._counted.add(url)
            rows.append(row)
        if len(rows) == len(names):
            return listed
        return replace(
            listed,
            names=b"".join([names[row] + b"\0" for row in rows]),
            sizes=array("Q", [listed.sizes[row] for row in rows]),
            versions=array("Q", [listed.versions[row] for row in rows]),
        )

    def _may_name(self, directory: bytes) -> bool:
        """Return whether a URL may name an object in this directory."""
        return any(name.startswith(directory) for name in self._named)

    def _report_again(self, shown: bytes) -> None:
        self._report(Problem(ExitCode.OK, shown, f"{printable(shown)}: counted already under another path"))


# Objects of a store in a scan: they are read several at a time, and are signed as files are.


def sign_objects(batch: SmallBatch, tree: ObjectTree, params: ChunkParams) -> SignedBatch:
    """Sign the objects of `batch`, which are of `tree`. Threads may run this in parallel.

    One that cannot be read fails as a file that was replaced. It is then asked for once more, which names
    the reason.
    """
    objects = [_listed(batch.file(row)) for row in range(len(batch))]
    sizes = array("Q", [one.size for one in objects])
    spans: list[bytes] = []
    outcomes = array("i")
    for one, content in zip(objects, tree.read_small(objects), strict=True):
        failed = isinstance(content, FileError)
        outcomes.append(REPLACED if failed else 0)
        spans.append(bytes(one.size) if isinstance(content, FileError) else content)
    ctimes = array("q", bytes(8 * len(objects)))
    rows = array("I", range(len(objects)))
    read, failures = sign_contents(Contents(b"".join(spans), outcomes, ctimes), rows, sizes, params)
    known = SignedFiles(array("I"), read.signatures.chosen([]), array("q"), None)
    return SignedBatch(batch, SmallOutcome(read, known, failures), [], 0)


def fetch_objects(files: Sequence[ScannedFile]) -> None:
    """Read the contents of those that are objects, several at a time. The files are few megabytes in
    total."""
    found = [(file, file.found.root) for file in files if isinstance(file.found.root, ObjectTree)]
    at = 0
    while at < len(found):
        tree = found[at][1]
        end = at + 1
        while end < len(found) and found[end][1] is tree:
            end += 1
        contents = tree.read_small([_listed(file.found) for file, _ in found[at:end]])
        for (file, _), content in zip(found[at:end], contents, strict=True):
            file.content = content
        at = end


def _listed(found: FoundFile) -> ListedObject:
    return ListedObject(found.path, found.size, found.inode[1])
