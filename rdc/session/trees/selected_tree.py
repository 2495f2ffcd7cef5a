"""Opens the tree of a source of which some paths are selected: a LayeredRoot over their directories."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import closing
from functools import partial

from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.files.base.metadata import kind_of
from rdc.files.base.paths import join, refused_component
from rdc.files.root.followed_links import UnfollowedError
from rdc.files.root.layered_root import Layer, LayeredRoot, PackedNames
from rdc.files.root.root import Root
from rdc.lean.records import Record
from rdc.model.entries import Kind, strings
from rdc.model.selection import SelectedName, SelectedPaths, read_name
from rdc.progress import Problem
from rdc.session.trees.sites import ServedDirectory, Site
from rdc.session.trees.source_tree import SourceTree, changes_of, read_policy
from rdc.tree import filter_list
from rdc.tree.selection import Selection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rdc.files.root.followed_links import FollowedLinks
    from rdc.model.sync import SyncOptions
    from rdc.tree.filters import FilterList


_KINDS = tuple(Kind)

MOST_NAMED = 3
"""Missing paths that one error names."""


class _Found(Record):
    """A selected path that exists."""

    name: SelectedName
    origin: bytes
    """Below the base: the directory that the name is below."""
    kind: Kind

    @property
    def real(self) -> bytes:
        return _below(self.origin, self.name.path)


class _FoundPaths:
    """The selected paths that exist, in their order. A list may have a million of them, so each is kept as
    its text, which the selection has as well, and its kind."""

    def __init__(self) -> None:
        self._texts: list[bytes] = []
        self._kinds = bytearray()
        self._origins: list[tuple[int, bytes]] = []
        """The path with which each origin begins."""

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[_Found]:
        ends = [*(first for first, _ in self._origins[1:]), len(self._texts)]
        for (first, origin), end in zip(self._origins, ends, strict=False):
            for row in range(first, end):
                yield _Found(read_name(self._texts[row]), origin, _KINDS[self._kinds[row]])

    @property
    def origins(self) -> Iterator[bytes]:
        """The directories that the paths are below."""
        return (origin for _, origin in self._origins)

    def add(self, origin: bytes, text: bytes, kind: Kind) -> None:
        if not self._origins or self._origins[-1][1] != origin:
            self._origins.append((len(self._texts), origin))
        self._texts.append(text)
        self._kinds.append(kind)


def selection_of(selected: Sequence[SelectedPaths], options: SyncOptions) -> Selection:
    """Return the selected paths as a Selection, the same at both sides. Raises UsageError for too many
    directories."""
    return Selection(selected, recursive=options.recursive)


def _refuse_snapshots(selected: Sequence[SelectedPaths], site: Site) -> None:
    """Raise UsageError if a selected path leads into a snapshot, which one SRC alone may name."""
    from rdc.store.snapshot_root import is_in_snapshot

    for paths in selected:
        for text in paths.names:
            path = os.path.join(paths.origin, read_name(text).path)
            if b"/@" in b"/" + path and is_in_snapshot(path, site.has_directory, site.open):
                raise UsageError(
                    f"{printable(path)}: a snapshot is read as the one SRC of a sync: leave out other SRC,"
                    " --relative and --files-from, or restore its parts one by one"
                )


def open_selected(
    selected: Sequence[SelectedPaths],
    options: SyncOptions,
    site: Site,
    *,
    destination: bytes | None = None,
) -> SourceTree:
    """Open the tree with the selected paths. `destination`: the path that it is synced to, if that is on
    this machine.

    Paths that are missing or excluded are left out; the tree has a Problem for each missing one. Raises
    FileError if none exists.
    """
    selection = selection_of(selected, options)
    several = len({paths.origin for paths in selected}) > 1
    lookup = _LookUp(site, options, several=several, destination=destination)
    try:
        for paths in selected:
            lookup.add(paths)
        if lookup.problems and not lookup.found:
            _refuse_snapshots(selected, site)
            raise _nothing_there(lookup.problems)
        base = lookup.base
        layers = _layers(lookup.found, lookup.above_missing, recursive=options.recursive)
        root = LayeredRoot(base, layers, _top(lookup.found), read_policy(options), lookup.links)
    except BaseException:
        lookup.release()
        raise
    return SourceTree(
        root,
        None,
        changes_of(options.chmod),
        selection=selection,
        problems=tuple(lookup.problems),
        layered=root,
        origins=_origins(base, lookup.found.origins),
        prunes=options.prune_empty_dirs,
    )


def _origins(base: Root, origins: Iterable[bytes]) -> tuple[Root, ...]:
    """One directory above found paths for each file system that such directories are on."""
    roots: dict[int, Root] = {}
    for path in dict.fromkeys(origins):
        fd = base.directory(path).fd
        device = os.fstat(fd).st_dev
        if device not in roots:
            roots[device] = Root(os.dup(fd), base.shown(path))
    return tuple(roots.values())


def _nothing_there(problems: Sequence[Problem]) -> FileError:
    if len(problems) == 1:
        return FileError(problems[0].path_bytes, problems[0].message)
    more = f"; and {len(problems) - MOST_NAMED:,} more" if len(problems) > MOST_NAMED else ""
    return FileError(
        problems[0].path_bytes, "; ".join(problem.message for problem in problems[:MOST_NAMED]) + more
    )


class _LookUp:
    """Looks for selected paths below one base."""

    def __init__(self, site: Site, options: SyncOptions, *, several: bool, destination: bytes | None) -> None:
        """`several`: there are several origins, so the base is above all of them."""
        self._site = site
        self._filters = filter_list(options.rules)
        self._ignores_missing = options.ignore_missing_args or options.delete_missing_args
        self._deletes_missing = options.delete_missing_args
        self._several = several
        self._base: Root | None = site.open_base() if several else None
        self._choice = options.follows
        self._destination = destination
        self.links: FollowedLinks | None = None
        """Follows links from the base on; None: none is to be followed, or none was found yet."""
        self.found = _FoundPaths()
        self.above_missing: list[_Found] = []
        """Directories above missing paths, where these are to be deleted."""
        self.problems: list[Problem] = []

    @property
    def base(self) -> Root:
        if self._base is None:
            self._base = self._site.open_base()
        return self._base

    def release(self) -> None:
        if self._base is not None:
            self._base.release()
        if self.links is not None:
            self.links.top.release()

    def add(self, paths: SelectedPaths) -> None:
        """Look for all names below one origin."""
        origin = b""
        try:
            if self._several:
                opened = self._site.open(paths.origin)
                opened.release()
                origin = self._site.below_base(paths.origin)
            else:
                self._base = self._site.open(paths.origin)
        except FileError as error:
            for name in paths.names:
                self._note_missing(paths.origin, name, error)
            return
        if self._choice is not None and self.links is None:
            from rdc.session.trees.source_options import links_from

            self.links = links_from(self.base, self._choice, self._site, self._destination)
        filters = self._filters.for_operands(self.base, origin)
        for name in paths.names:
            self._look(paths.origin, origin, name, filters)

    def _look(self, shown_origin: bytes, origin: bytes, text: bytes, filters: FilterList) -> None:
        name = read_name(text)
        if refused_component(name.path) is not None:
            shown = printable(os.path.normpath(os.path.join(shown_origin, text)))
            self._report(shown_origin, text, f"{shown}: left out, because rdc keeps such names for itself")
            return
        try:
            kind = self.base.kind(_below(origin, name.path))
            if kind is Kind.SYMLINK and self.links is not None:
                kind = self._followed(_below(origin, name.path), name.path)
        except FileError as error:
            self._report(shown_origin, text, str(error))
            return
        if kind is None:
            self._note_missing(shown_origin, text, None)
            if self._deletes_missing:
                self._look_above(origin, name.path.rpartition(b"/")[0])
        elif not (filters and filters.excluded(name.path, kind is Kind.DIRECTORY)):
            self.found.add(origin, text, kind)

    def _followed(self, real: bytes, path: bytes) -> Kind | None:
        """Return the kind of what a link that is selected leads to. With -L, one that leads to nothing counts
        as missing, as in rsync. What else cannot be followed stays a link here: its listing reports it.

        Raises FileError if the kernel cannot follow it.
        """
        if self.links is None:
            return Kind.SYMLINK
        target = self.base.perform(
            real, "read the link", lambda name, parent: os.readlink(name, dir_fd=parent)
        )
        above, _, name = real.rpartition(b"/")
        try:
            found = self.links.follow(self.base, above, name, target, entry=path)
        except UnfollowedError as error:
            if self._choice is None or not self._choice.every or not isinstance(error.__cause__, OSError):
                return Kind.SYMLINK
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise FileError(path, f"{printable(path)}: skipped, {error}: {printable(target)}") from error
        return Kind.SYMLINK if found is None else Kind(kind_of(found.st_mode))

    def _look_above(self, origin: bytes, above: bytes) -> None:
        """Note the deepest of a directory and those above it that exists. They get their metadata, as in
        rsync."""
        while above:
            try:
                kind = self.base.kind(_below(origin, above))
            except FileError:
                return
            if kind is Kind.DIRECTORY:
                self.above_missing.append(_Found(SelectedName(above, False, False), origin, kind))
                return
            above = above.rpartition(b"/")[0]

    def _note_missing(self, origin: bytes, name: bytes, error: FileError | None) -> None:
        missing = error is None or isinstance(error.__cause__, FileNotFoundError)
        # If the directory above it is missing, its file system may not be mounted: nothing is deleted then.
        if missing and self._ignores_missing and (error is None or not self._deletes_missing):
            return
        shown = printable(os.path.normpath(os.path.join(origin, name)))
        text = f"{shown}: no such file or directory; check the path"
        self._report(origin, name, text if missing else str(error))

    def _report(self, origin: bytes, name: bytes, text: str) -> None:
        self.problems.append(Problem(ExitCode.PARTIAL, os.path.normpath(os.path.join(origin, name)), text))


class _Given:
    """The entries that one shown directory gets of real ones, in the order in which it was given: of two
    entries with one name the first counts, whichever directory was named first."""

    def __init__(self) -> None:
        self._runs: list[tuple[bytes, bytearray | None]] = []
        """A real directory, and names that were given one after another, with NUL after each; None: all."""
        self._known: set[bytes] = set()
        self._whole: set[bytes] = set()

    def add_all(self, real: bytes) -> None:
        """Add all entries of a real directory."""
        self._known.add(real)
        if real not in self._whole:
            self._whole.add(real)
            if self._runs and self._runs[-1][0] == real:
                self._runs.pop()
            self._runs.append((real, None))

    def add(self, real: bytes, name: bytes = b"") -> bool:
        """Add an entry of a real directory, or none. Returns True if it gave some before."""
        known = real in self._known
        self._known.add(real)
        if real in self._whole:
            return known
        if not (self._runs and self._runs[-1][0] == real):
            self._runs.append((real, bytearray()))
        last = self._runs[-1][1]
        if name and last is not None:
            last += name + b"\0"
        return known

    def layers(self) -> list[Layer]:
        return [Layer(real, None if names is None else _packed(names)) for real, names in self._runs]


def _packed(names: bytearray) -> PackedNames:
    """Return the names, each once."""
    return PackedNames(b"".join(name + b"\0" for name in dict.fromkeys(strings(bytes(names)))))


def _layers(
    found: _FoundPaths, above_missing: Sequence[_Found], *, recursive: bool
) -> dict[bytes, list[Layer]]:
    """Return the layers of every directory that has several or not all entries. The first path of a name
    wins, so a real directory has one layer for each run of paths that are in it."""
    covered = _Covered(found if recursive else ())
    shared: set[bytes] = set()
    """Directories above selected paths."""
    for each in found:
        if not covered.above(each.origin, each.name.path):
            for path in _above(each.name.path):
                if path in shared:
                    break
                shared.add(path)
    parts: defaultdict[bytes, _Given] = defaultdict(_Given)
    for each in found:
        if not covered.above(each.origin, each.name.path):
            _give(parts, each, contents=each.name.contents and not recursive)
        # A directory that is selected, and has selected paths below it from elsewhere.
        if recursive and each.kind is Kind.DIRECTORY and each.name.path in shared:
            parts[each.name.path].add_all(each.real)
    _give_above_missing(parts, above_missing, covered)
    if b"" not in parts:
        parts[b""].add(next(iter(found.origins), b""))
    return {path: given.layers() for path, given in parts.items()}


def _above(path: bytes) -> Iterator[bytes]:
    """Yield the directories above `path`."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def _give(parts: defaultdict[bytes, _Given], found: _Found, *, contents: bool) -> None:
    """Add a path to the directories above it, and, with `contents`, its own entries."""
    path = found.name.path
    if contents or not path:
        parts[path].add_all(found.real)
    while path:
        above, _, component = path.rpartition(b"/")
        if parts[above].add(_below(found.origin, above), component):
            return  # the directories above it give theirs, too
        path = above


def _give_above_missing(
    parts: defaultdict[bytes, _Given], above_missing: Sequence[_Found], covered: _Covered
) -> None:
    """Add directories without any entry, and those above them."""
    for each in above_missing:
        if not covered.holds(each):
            parts[each.name.path].add(each.real)
            _give(parts, each, contents=False)


class _Covered:
    """Knows which paths are below a directory that is selected with everything below it."""

    def __init__(self, found: Iterable[_Found]) -> None:
        self._whole = {(each.origin, each.name.path) for each in found if each.kind is Kind.DIRECTORY}
        self._known: dict[tuple[bytes, bytes], bool] = {}

    def holds(self, directory: _Found) -> bool:
        """Return whether the directory is one of them, or below one."""
        path = directory.name.path
        return (directory.origin, path) in self._whole or self.above(directory.origin, path)

    def above(self, origin: bytes, path: bytes) -> bool:
        """Return whether a directory above `path` is such a one."""
        passed = []
        is_covered = False
        while path:
            path = path.rpartition(b"/")[0]
            real = origin, path
            if real in self._known or real in self._whole:
                is_covered = self._known.get(real, True)
                break
            passed.append(real)
        self._known.update(dict.fromkeys(passed, is_covered))
        return is_covered


def _top(found: _FoundPaths) -> bytes:
    """Return the real directory whose metadata the root directory has, if they count."""
    first = next(iter(found.origins), b"")
    return next((each.origin for each in found if each.name.with_top), first)


def _below(directory: bytes, path: bytes) -> bytes:
    return join(directory, path) if path else directory


# The tree of a source on this machine of which the remote side's list selects some (--files-from=:FILE).
#
# The names are no more trusted than any other message: they are bounded and plain, and are opened below SRC
# without following a symlink.


def open_listed(path: bytes, selected: Sequence[SelectedPaths], options: SyncOptions) -> SourceTree:
    """Open the tree at `path` with what is selected below it. Raises FileError if that is missing, or all
    of it is behind symlinks."""
    with closing(Root.open(path)) as top:
        site = ServedDirectory(partial(os.dup, top.fileno()), "SRC", path)
        return open_selected(selected, options, site)
