"""Lists everything below the paths of a search. Entries that several paths reach are listed once."""

from __future__ import annotations

import os
import stat

from rdc.errors import FileError, RdcError
from rdc.files.base.os_errors import failure, refused
from rdc.files.root.root import Root
from rdc.model.entries import strings
from rdc.progress import Problem, check_stop
from rdc.survey.walk.file_columns import ListedDirectory
from rdc.survey.walk.listed_tree import ListedTree
from rdc.survey.walk.storage_use import StorageUse
from rdc.survey.walk.unique_walk import UniqueWalk
from rdc.tree.filter_list import filter_list
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.entries import PackedListing
    from rdc.model.filter_rules import DirectoryRules, FilterRule
    from rdc.progress import Reporter, StopSignal

__all__ = ["EntryChoice", "walk_paths"]


class EntryChoice(Protocol):
    """Chooses entries while they are walked, so that others take no memory."""

    def has_file(self, path: bytes, size: int) -> bool:
        """Whether a file that is given by itself is chosen."""

    def rows(self, directory: bytes, listing: PackedListing) -> list[int]:
        """The chosen rows of one directory. `directory`: as the user would type it, ending in a slash."""


def walk_paths(
    paths: Sequence[bytes],
    rules: Sequence[FilterRule | DirectoryRules],
    reporter: Reporter,
    *,
    one_file_system: bool,
    use: StorageUse = StorageUse(),  # noqa: B008 - it has no state
    stop: StopSignal | None = None,
    choice: EntryChoice | None = None,
) -> ListedTree:
    """All files and directories at and below `paths`. A path that is a symlink is followed; links below are
    not. Raises StoppedError once `stop` is set.

    `use`: what the walk and later reads of files may ask of storage. Patterns are relative to each path.
    A directory is walked once, whichever path leads to it. A file given by itself is listed as given,
    filters or not. What cannot be read is reported and left out. With a `choice` everything is walked all
    the same, and only what it chooses is listed.
    """
    stopped = (lambda: False) if stop is None else stop.is_set
    filters = filter_list(rules)
    walk = UniqueWalk(filters, reporter, one_file_system=one_file_system, use=use, stopped=stopped)
    tree = _Gathering(walk, reporter, choice).all(paths)
    check_stop(stop)
    return tree


class _Gathering:
    def __init__(self, walk: UniqueWalk, reporter: Reporter, choice: EntryChoice | None) -> None:
        self._walk = walk
        self._choice = choice
        self._report = reporter
        self._tree = ListedTree()
        self._named: dict[int, set[bytes]] = {}
        """Names of files given by themselves, by the number of their directory."""
        self._parents: dict[bytes, Root] = {}

    def all(self, paths: Sequence[bytes]) -> ListedTree:
        directories = []
        for path in paths:
            try:
                found = os.stat(path)
                if stat.S_ISDIR(found.st_mode):
                    directories.append(path)
                else:
                    self._add_file(path, found)
            except FileError as error:
                self._report(Problem(error.code, path, str(error)))
            except (OSError, ValueError) as error:
                self._report_missing(path, error)
        # Directories come after the files, so that the walk can skip files given by themselves.
        for path in directories:
            try:
                self._add_tree(path)
            except RdcError as error:
                self._report(Problem(error.code, path, str(error)))
        return self._tree

    def _report_missing(self, path: bytes, error: OSError | ValueError) -> None:
        if isinstance(error, ValueError):
            refusal: RdcError = refused(
                path,
                path,
                "look at it",
                expected="a path without NUL bytes",
                found="one",
                advice="correct it",
            )
        elif isinstance(error, FileNotFoundError):
            refusal = refused(
                path,
                path,
                "look at it",
                expected="a file or directory",
                found="nothing",
                advice="check the spelling and run again",
            )
        else:
            refusal = failure(error, path, path, "look at it")
        self._report(Problem(refusal.code, path, str(refusal)))

    def _add_file(self, path: bytes, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise refused(
                path,
                path,
                "look into it",
                expected="a file or directory",
                found="a special file",
                advice="leave it out",
            )
        directory, name = os.path.split(path)
        if os.path.islink(path):
            directory, name = os.path.split(os.path.realpath(path))
        root = self._parents.get(directory)
        if root is None:
            root = self._parents[directory] = self._walk.use.bind(Root.open(directory or b"."))
        named = self._named.setdefault(_number(os.fstat(root.fileno())), set())
        if name in named:
            return
        named.add(name)
        shown = os.path.join(directory, b"") if directory else b""
        if self._choice is not None and not self._choice.has_file(shown + name, found.st_size):
            return
        self._tree.add_file(ListedDirectory(root, b"", shown), name, found)

    def _add_tree(self, path: bytes) -> None:
        root = Root.open(path)
        prefix = os.path.join(path, b"")
        for found in self._walk.below(root):
            below = found.path + b"/" if found.path else b""
            first = len(self._tree)
            directory = ListedDirectory(root, below, prefix + below)
            rows = None if self._choice is None else self._choice.rows(directory.shown, found.listing)
            self._tree.add(directory, found.listing, found.inodes, rows)
            if self._named:
                named = self._named.get(_number(os.fstat(root.directory(found.path).fd)), ())
                names = strings(found.listing.names) if named else []
                for at, row in enumerate(range(len(names)) if rows is None else rows if named else ()):
                    if names[row] in named:
                        self._tree.take_out(first + at)


def _number(found: os.stat_result) -> int:
    """One number that identifies a file on this machine."""
    return found.st_dev << 64 | found.st_ino
