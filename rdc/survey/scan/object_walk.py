"""ObjectWalk: finds the objects below the URLs of a scan, each once."""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.files.depth.depth import Depths
from rdc.files.objects.object_store import ObjectStore
from rdc.files.objects.object_tree import ObjectTree
from rdc.files.objects.object_url import is_url, parse_url
from rdc.model.entries import strings
from rdc.model.filter_rules import are_plain
from rdc.progress import Problem
from rdc.records import dataclass, replace
from rdc.survey.scan.directory_numbers import DirectoryNumbers
from rdc.tree.filter_list import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.objects.object_listing import ListedObjects
    from rdc.files.objects.object_url import ObjectUrl
    from rdc.model.scan import ScanOptions
    from rdc.progress import Reporter
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.scan.found_files import Found
    from rdc.survey.walk.slice_choice import SliceChoice

__all__ = ["ObjectWalk", "WalkedObjects", "check_urls"]

FIRST_DEPTH = 8
"""Calls in flight until waits were measured. A store makes each call wait, so there is no reason to begin
with one."""


def check_urls(paths: Sequence[bytes], options: ScanOptions) -> None:
    """Raises UsageError for a URL of another kind, if what reads it is not installed, and for options that
    mean nothing for objects."""
    for path in filter(is_url, paths):
        parse_url(path)
        if options.one_file_system:
            raise UsageError(f"{printable(path)}: -x is for file systems, and a store has none; leave it out")
        if not are_plain(options.rules):
            raise UsageError(f"{printable(path)}: rules of files in directories are not read from a store")


@dataclass(frozen=True, slots=True)
class WalkedObjects:
    """What was walked, whichever slice it belongs to."""

    directories: int
    files: int
    bytes: int


class ObjectWalk:
    """Fills `found` and `locations`, as Explorer does for directories. What cannot be listed is reported and
    skipped.

    What several URLs lead to is counted under the first of them. Only a URL can lead to what another one
    has, so no others are remembered.
    """

    def __init__(
        self,
        options: ScanOptions,
        paths: Sequence[bytes],
        found: Found,
        locations: ChunkLocations,
        reporter: Reporter,
        stopped: Callable[[], bool],
        rate: ReadRate | None,
    ) -> None:
        """`paths`: all of the scan, of which the URLs matter. `rate`: bounds how fast objects are read."""
        self._store = ObjectStore(rate)
        self._depths = Depths(options.depth, FIRST_DEPTH)
        self._filters = filter_list(options.rules)
        self._found = found
        self._locations = locations
        self._report = reporter
        self._stopped = stopped
        self._named = {b"s3://" + parse_url(path).key.encode() for path in filter(is_url, paths)}
        """What the URLs name: objects, or directories without a slash behind them."""
        self._counted: set[bytes] = set()
        """What of it was counted. A directory has its slash."""

    def explore(self, url: ObjectUrl, operand: int, walked: int, choice: SliceChoice | None) -> WalkedObjects:
        """Finds what is at and below a URL, number `operand` of the paths of the scan, after `walked`
        directories."""
        tree = self._tree(url.bucket, url.name)
        numbers = DirectoryNumbers(self._locations, operand)
        directories, files, size = 0, 0, 0
        walk = self._store.walk(
            url, self._enter, self._stopped, left_out=self._left_out, depth=self._depths.listing
        )
        for listed in walk:
            if isinstance(listed, FileError):
                self._report(Problem(listed.code, listed.path, str(listed)))
                continue
            chosen = self._chosen(listed)
            if listed.single and not chosen.sizes:
                continue
            below = listed.below.removesuffix(b"/") if listed.below else b""
            own = choice is None or choice.has_directory(operand, below)
            if listed.single:
                self._add_single(url, operand, walked + directories, chosen, own=own)
            else:
                path = b"." + (b"/" + below if listed.below else b"")
                numbers.enter(path, tree.shown(path), walked + directories)
                if own:
                    number = numbers.number()
                    if chosen.sizes:
                        self._found.add_objects(tree, number, path, chosen)
                if listed.nameless:
                    self._report(listed.nameless_problem())
            directories += 1
            files += len(chosen.sizes)
            size += sum(chosen.sizes)
        return WalkedObjects(directories, files, size)

    def _add_single(
        self, url: ObjectUrl, operand: int, walked: int, listed: ListedObjects, *, own: bool
    ) -> None:
        if own:
            above = url.name.rpartition("/")[0]
            tree = self._tree(url.bucket, above)
            number = self._locations.add_directory(tree.shown(b"."), -1, operand, walked)
            self._found.add_objects(tree, number, b".", listed)

    def _tree(self, bucket: str, name: str) -> ObjectTree:
        return ObjectTree(self._store, self._depths, bucket, name, self._stopped)

    def _left_out(self, below: bytes) -> bool:
        return self._filters.excluded(below, True)

    def _enter(self, directory: bytes, _below: bytes) -> bool:
        """Whether a directory is taken. One that a URL names is taken once."""
        if directory.removesuffix(b"/") in self._named:
            if directory in self._counted:
                self._report_again(directory.removesuffix(b"/"))
                return False
            self._counted.add(directory)
        return True

    def _chosen(self, listed: ListedObjects) -> ListedObjects:
        """Without those that filters leave out, and those that another URL named and were counted."""
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
        """Whether a URL may name an object in this directory."""
        return any(name.startswith(directory) for name in self._named)

    def _report_again(self, shown: bytes) -> None:
        self._report(Problem(ExitCode.OK, shown, f"{printable(shown)}: counted already under another path"))
