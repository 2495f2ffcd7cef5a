"""The input of `rdc dedupe` and `rdc dupes --delete`: the PATHs, opened as trees that do not overlap, and
below them groups of identical files and equal parts of different files.

Groups come from the search of `rdc dupes`, or from the events that `rdc dupes --json` wrote. Such a report is
untrusted: it may be old, edited or forged. Paths outside the PATHs are refused. The deduper compares the
content of the files before it changes them.
"""

from __future__ import annotations

import json
import os
import stat
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rdc.catalog.signer import FileSigner, SignTask, sign_in_order
from rdc.duplicates.group import Tree, is_below
from rdc.duplicates.share import ChunkedFile, RunFinder
from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.base.paths import check_path, failure, is_reserved, join, refused
from rdc.files.facts.extents import Volume, volume_of
from rdc.files.own.record_log import read_log
from rdc.files.root.root import Root
from rdc.lean.records import Record
from rdc.limits import PATH_BYTES, REPORT_BYTES, SIZE_LIMIT
from rdc.model.duplicates import DuplicateOptions, EqualRuns, IdenticalFiles, RootedPath
from rdc.model.entries import Kind
from rdc.progress import Problem, Progressed
from rdc.survey.duplicates import find_duplicates
from rdc.tree.filters import FilteredTree, FilterList
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from rdc.catalog.store import SignatureStore
    from rdc.duplicates.run_totals import DedupeReporter
    from rdc.progress import Event


class Operand(Record):
    """One PATH, opened."""

    tree: Tree
    only: bytes | None
    """The name of a single file in the tree's top directory. None means the whole tree."""
    label: bytes
    """The PATH as typed."""
    absolute: bytes
    """The absolute PATH, with symlinks unresolved."""


class Operands(Record):
    """All opened PATHs, and the directories of --keep-in."""

    all: tuple[Operand, ...]
    """The directories that lie inside no other."""
    keep: tuple[bytes, ...]
    """The real paths of --keep-in."""
    searched: tuple[bytes, ...] = ()
    """All PATHs as typed and in their order, then the directories of --keep-in. A search in this order finds
    files in the order in which `rdc dupes` lists them."""

    @property
    def trees(self) -> list[Tree]:
        """The trees of all PATHs, in the order of `all`."""
        return [operand.tree for operand in self.all]

    def close(self) -> None:
        """Close the roots of all trees."""
        for operand in self.all:
            operand.tree.root.close()


def open_operands(paths: Sequence[bytes], keep: Sequence[bytes]) -> Operands:
    """Open `paths` and `keep`, without those that lie inside another. Raises RdcError.

    Symlinks in the typed paths are followed. Symlinks below them are not.
    """
    real_keep = tuple(os.path.realpath(path) for path in keep)
    # In order of length, so that an outer path precedes the paths inside it.
    given = sorted(
        {os.path.realpath(path): path for path in (*keep, *paths)}.items(), key=lambda item: len(item[0])
    )
    operands: list[Operand] = []
    tops: list[bytes] = []
    try:
        for real, path in given:
            if any(is_below(real, top) for top in tops):
                continue
            operands.append(_open(path, real))
            tops.append(real)
    except BaseException:
        Operands(tuple(operands), ()).close()
        raise
    return Operands(tuple(operands), real_keep, (*paths, *keep))


def _open(path: bytes, real: bytes) -> Operand:
    absolute = os.path.abspath(path)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise _missing(error, path) from error
    if not stat.S_ISREG(mode):
        return Operand(Tree(Root.open(path), real), None, path, absolute)
    top, name = os.path.split(real)
    # Keep the typed directory as the label if it holds the same file.
    typed, typed_name = os.path.split(path)
    label = (typed or b".") if typed_name == name and not os.path.islink(path) else top
    return Operand(Tree(Root.open(top, label=label), top), name, path, absolute)


def _missing(error: OSError, path: bytes) -> RdcError:
    if isinstance(error, FileNotFoundError):
        return refused(
            path,
            path,
            "look at it",
            expected="a directory or file",
            found="nothing",
            advice="check the spelling and run again",
        )
    return failure(error, path, path, "look at it")


def find_groups(
    operands: Operands,
    options: DuplicateOptions,
    catalog: SignatureStore | None,
    reporter: DedupeReporter,
    problem: Callable[[FileError], None],
) -> list[IdenticalFiles]:
    """Return the groups below `operands`, with all names of each file. Files are in the order of the PATHs.

    `options` must ask for links. Errors of single files go to `problem`.
    """

    def report(event: Event, /) -> None:
        if isinstance(event, Problem):
            if event.code is ExitCode.OK:
                # The deduper has already reported reserved names.
                if not is_reserved(os.path.basename(event.path_bytes)):
                    reporter(event)
            else:
                problem(FileError(event.path_bytes, event.message, code=event.code))
        elif isinstance(event, Progressed):
            reporter(Progressed("compare", event.done, event.total))

    groups = []
    known: dict[bytes, tuple[int, bytes]] = {}
    for group in find_duplicates(operands.searched, options, report, catalog):
        names = (name for file in group.files for name in (file.path_bytes, *file.links_bytes))
        groups.append(_located(group.size, names, operands, known))
    return [group for group in groups if len(group) > 1]


def _located(
    size: int, paths: Iterable[bytes], operands: Operands, known: dict[bytes, tuple[int, bytes]]
) -> IdenticalFiles:
    """Return the group of `paths`. `known`: by directory as shown, the number of its tree and the part of
    paths before a name in it."""
    roots, below = array("H"), []
    for path in paths:
        directory, _, name = path.rpartition(b"/")
        found = known.get(directory)
        if found is None:
            location = location_of(path, operands)
            if location is None:
                continue
            found = location[0], location[1][: len(location[1]) - len(name)]
            if operands.all[location[0]].only is not None:
                # A file given by itself says nothing about others beside it.
                roots.append(location[0])
                below.append(location[1])
                continue
            known[directory] = found
        roots.append(found[0])
        below.append(found[1] + name)
    return IdenticalFiles(size, roots, tuple(below))


def read_report(name: str, stdin: BinaryIO) -> bytes:
    """Return the text of the report; '-' is stdin. Raises RdcError."""
    if name != "-":
        return read_log(os.fsencode(name), REPORT_BYTES)
    data = stdin.read(REPORT_BYTES + 1)
    if len(data) > REPORT_BYTES:
        raise RdcError(f"standard input: expected a report of at most {REPORT_BYTES} bytes, found more")
    return data


def groups_of_report(
    name: str, text: bytes, operands: Operands, min_size: int, problem: Callable[[FileError], None]
) -> list[IdenticalFiles]:
    """Return one group for each `group` event.

    An event holds `size` and `files`. Each file has `path` (`path_b64` as well if the path is not UTF-8) and
    optionally `links`, its other names. Relative paths start at `cwd` of the last `start` event; without it
    they start at the working directory. Raises UsageError for any other text. A path outside the PATHs goes
    to `problem`.
    """
    groups = []
    origin: bytes | None = None
    for number, event in _events(name, text):
        if event["event"] == "start":
            origin = _origin(name, number, event)
        if event["event"] != "group":
            continue
        size, paths = _group(name, number, event)
        if size < max(1, min_size):
            continue
        roots, below = array("H"), []
        for path in paths:
            location = location_of(path, operands, origin)
            if location is None:
                problem(_outside(path, origin))
                continue
            roots.append(location[0])
            below.append(location[1])
        if len(below) > 1:
            groups.append(IdenticalFiles(size, roots, tuple(below)))
    return groups


def location_of(path: bytes, operands: Operands, origin: bytes | None = None) -> tuple[int, bytes] | None:
    """Return the number of the tree that holds `path`, and the path below it; None outside all trees.

    `origin` is the absolute directory where a relative path starts; None means the working directory.
    """
    absolute = _absolute(path, origin)
    found = _locate(absolute, operands)
    if found is not None:
        return found
    # The path may go through symlinks that the PATH does not contain.
    directory, name = os.path.split(absolute)
    return _locate(os.path.join(os.path.realpath(directory), name), operands)


def _absolute(path: bytes, origin: bytes | None) -> bytes:
    return os.path.abspath(path if origin is None else os.path.join(origin, path))


def _outside(path: bytes, origin: bytes | None) -> FileError:
    found = f"found {printable(_absolute(path, origin))}"
    advice = "left alone"
    if not os.path.isabs(path) and origin is None:
        found += ", as the report does not say from which directory its names are"
        advice += "; run it in the directory in which rdc dupes ran"
    return FileError(path, f"{printable(path)}: expected a file below the PATHs given, {found}; {advice}")


def _locate(absolute: bytes, operands: Operands) -> tuple[int, bytes] | None:
    for number, operand in enumerate(operands.all):
        real = operand.tree.real if operand.only is None else os.path.join(operand.tree.real, operand.only)
        for top in (operand.absolute, real):
            if is_below(absolute, top):
                below = operand.only if operand.only is not None else absolute[len(top) :].lstrip(b"/")
                try:
                    check_path(below)
                except FileError:
                    return None
                return (number, below) if below else None
    return None


def _events(name: str, text: bytes) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield all events with their line numbers. Raises UsageError for a line that is no event."""
    any_event = False
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _error(name, "a JSON event a line, as rdc dupes --json writes it", number) from error
        if not isinstance(event, dict) or event.get("v") != 1 or not isinstance(event.get("event"), str):
            raise _error(name, 'an event with "v":1', number)
        any_event = True
        yield number, event
    if not any_event:
        raise _error(name, "events of rdc dupes --json", 1)


def _group(name: str, number: int, event: dict[str, object]) -> tuple[int, list[bytes]]:
    size, files = event.get("size"), event.get("files")
    paths: list[bytes] = []
    good = isinstance(size, int) and not isinstance(size, bool) and 0 <= size <= SIZE_LIMIT
    for file in files if isinstance(files, list) else (None,):
        names = [file, *_links(file)]
        found = [path for one in names if (path := _path(one)) is not None]
        good = good and len(found) == len(names)
        paths += found
    if not good or not isinstance(size, int):
        raise _error(name, "a group with a size and files with paths", number)
    return size, paths


def _origin(name: str, number: int, event: dict[str, object]) -> bytes | None:
    """Return the directory of a report's relative names, or None without `cwd`. Raises UsageError."""
    if "cwd" not in event:
        return None
    origin = _path(event, "cwd")
    if origin is None or not os.path.isabs(origin):
        raise _error(name, "an absolute directory as cwd", number)
    return origin


def _links(file: object) -> list[object]:
    links = file.get("links", []) if isinstance(file, dict) else []
    return links if isinstance(links, list) else [None]


def _path(file: object, key: str = "path") -> bytes | None:
    """Return the path of a JSON object, or None if it holds no valid path."""
    if not isinstance(file, dict):
        return None
    text, encoded = file.get(key), file.get(f"{key}_b64")
    try:
        if isinstance(encoded, str):
            import base64

            path = base64.b64decode(encoded, validate=True)
        elif isinstance(text, str):
            path = text.encode("utf-8")
        else:
            return None
    except ValueError:
        return None
    return path if path and len(path) <= PATH_BYTES and b"\0" not in path else None


def _error(name: str, expected: str, line: int) -> UsageError:
    return UsageError(f"{name}, line {line}: not a report of duplicates: expected {expected}")


class RunSearch:
    """Walks the trees and signs their files. Errors go to `problem`, other events to `reporter`."""

    def __init__(
        self,
        operands: Operands,
        filters: FilterList,
        catalog: SignatureStore | None,
        min_size: int,
        reporter: DedupeReporter,
        problem: Callable[[FileError], None],
    ) -> None:
        self._operands = operands
        self._filters = filters
        self._signer = FileSigner(catalog=catalog)
        self._min_size = max(1, min_size)
        self._reporter = reporter
        self._problem = problem

    def runs(self) -> Iterator[list[EqualRuns]]:
        """Yield the equal ranges of each file."""
        finder = RunFinder()
        # Protected files come first, so that other files share with them.
        files = sorted(self._files(), key=lambda item: not self._protected(item[0]))
        tasks = (self._task(location, size) for location, size in files)
        for signed in sign_in_order(self._signer, tasks):
            if signed.error is not None:
                self._problem(signed.error)
            elif signed.tree is not None and signed.identity is not None:
                try:
                    volume = self._volume(signed.key)
                except FileError as error:
                    self._problem(error)
                    continue
                protected = self._protected(signed.key)
                yield finder.add(
                    ChunkedFile(signed.key, volume.id, volume.block_size, signed.tree, protected)
                )
        self._signer.close()
        if finder.forgotten:
            text = f"{finder.forgotten:,} chunks were too many to remember: some equal parts were not found"
            self._reporter(Problem(ExitCode.OK, b"", text))

    def _files(self) -> Iterator[tuple[RootedPath, int]]:
        """Yield each regular file once, with its listed size."""
        for number, operand in enumerate(self._operands.all):
            root = operand.tree.root
            filters = self._filters.at_source(FilteredTree(root, operand.only or b""))
            for directory in Walk(root, filters, self._walked(root.shown), operand.only):
                if operand.only is not None and directory.path:
                    break
                listing = directory.listing.unpacked()
                for name, kind, size in zip(listing.names, listing.kinds, listing.sizes, strict=True):
                    if kind == Kind.FILE and size >= self._min_size:
                        yield RootedPath(number, join(directory.path, name)), size

    def _task(self, location: RootedPath, size: int) -> SignTask[RootedPath]:
        return SignTask(
            location, size, partial(self._operands.all[location.root].tree.root.open_read, location.path)
        )

    def _walked(self, shown: Callable[[bytes], bytes]) -> Callable[[Event], None]:
        def report(event: Event, /) -> None:
            if isinstance(event, Problem) and event.code is not ExitCode.OK:
                self._problem(FileError(shown(event.path_bytes), event.message, code=event.code))

        return report

    def _protected(self, location: RootedPath) -> bool:
        real = self._operands.all[location.root].tree.real_path(location.path)
        return any(is_below(real, top) for top in self._operands.keep)

    def _volume(self, location: RootedPath) -> Volume:
        root = self._operands.all[location.root].tree.root
        looking = root.failing(location.path, "look at its file system", reading=True)
        with root.open_read(location.path) as source, looking:
            return volume_of(source.fileno())
