"""Where trees meet: one that contains the other, and the boundary of --one-file-system."""

from __future__ import annotations

import os

from rdc.errors import FileError, UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.layered_root import LayeredRoot
    from rdc.files.root.root import Root
    from rdc.model.selection import SelectedPaths
    from rdc.model.sync import SyncOptions
    from rdc.tree.filters import FilterList
    from rdc.tree.selection import Selection


def check_overlap(
    source: bytes,
    destination: bytes,
    filters: FilterList,
    *,
    delete: bool,
    delete_excluded: bool = False,
    one_file_system: bool = False,
    name: bytes | None = None,
) -> None:
    """Raises UsageError if DST would be copied into itself or SRC would be deleted. Both paths are local.

    Otherwise each run would copy the result of the last one, a level deeper, and a watch would never end.
    An excluded inner tree does no harm, unless `delete_excluded` removes that protection. With
    `one_file_system`, an inner tree on another file system does no harm either. `name`: the path of the
    source below the destination; None: by rsync's rule.
    """
    # long because each way in which trees can overlap is one test with its message
    if not os.path.isdir(source) or (not source.endswith(b"/") and os.path.islink(source)):
        return  # a file, or a symlink that is copied as a symlink
    try:
        top, target = os.path.realpath(source), os.path.realpath(destination)
    except OSError:
        return  # the working directory is gone; the step that fails because of that reports it
    if name is None:
        name = b"" if _content_only(source) else os.path.basename(source)
    if name:
        target = os.path.join(target, name)
    if one_file_system and None is not _device(target) != _device(top):
        return  # the walk down to the inner tree crosses a mount boundary
    if (inside := _below(top, target)) and not _left_out(name, inside, filters):
        raise UsageError(
            f"{printable(destination)} lies inside {printable(source)}: each run would copy what the last one"
            f" made; leave it out with --exclude={_pattern(name, inside)}"
        )
    one_sided = delete_excluded or (delete and filters.certain is not filters)
    if one_sided and filters and _is_same(target, top):
        raise UsageError(
            f"{printable(source)} and {printable(destination)} are one place: --delete-excluded, or a rule"
            " for one side, would remove what the filter rules leave out of it; use --delete and plain rules"
        )
    if not (delete and (inside := _below(target, top))):
        return
    if delete_excluded:
        raise UsageError(
            f"{printable(source)} lies inside {printable(destination)}: --delete-excluded would remove it; "
            f"use --delete and --exclude={_pattern(name, inside)}"
        )
    if not _left_out(name, inside, filters.certain):
        raise UsageError(
            f"{printable(source)} lies inside {printable(destination)}: --delete would remove it; "
            f"leave it out with --exclude={_pattern(name, inside)}"
        )


def check_selected(
    selected: Sequence[SelectedPaths],
    destination: bytes,
    filters: FilterList,
    options: SyncOptions,
) -> None:
    """As `check_overlap`, for each selected path. Without recursion no tree is copied into itself."""
    from rdc.model.selection import read_name

    for paths in selected if options.recursive else ():
        for text in paths.names:
            name = read_name(text)
            source = os.path.join(paths.origin, name.path)
            check_overlap(
                source,
                destination,
                filters,
                delete=options.delete,
                delete_excluded=options.delete_excluded,
                name=name.path,
            )


def _content_only(source: bytes) -> bool:
    """Whether SRC means its contents: it ends with a slash, "." or ".."."""
    return source.endswith(b"/") or source.rpartition(b"/")[2] in (b".", b"..")


def _below(top: bytes, path: bytes) -> bytes:
    """`path` relative to `top`; empty if it is not strictly below."""
    top = top if top.endswith(b"/") else top + b"/"
    return path[len(top) :] if path.startswith(top) else b""


def _is_same(one: bytes, other: bytes) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _device(path: bytes) -> int | None:
    """The device number of `path` or of the directory that it would be made in; None if unknown."""
    for at in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
        try:
            return os.stat(at).st_dev
        except OSError:
            continue
    return None


def _left_out(name: bytes, path: bytes, filters: FilterList) -> bool:
    """Whether a rule excludes a directory at or above `path`, so that walks do not reach it."""
    at = name
    for part in path.split(b"/"):
        at = os.path.join(at, part)
        if filters.excluded(at, True):
            return True
    return False


def _pattern(name: bytes, path: bytes) -> str:
    return _shown(b"/" + os.path.join(name, path) + b"/")


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


# The boundary of --one-file-system: where a tree leaves the file system of its top directory.


class MountBoundary:
    """Decides which directories a walk enters, and collects those beyond the boundary.

    As in rsync, a different device number means another file system. A bind mount of the same file system
    does not count; a btrfs subvolume does.
    """

    def __init__(self, root: Root, top: bytes) -> None:
        """`top`: the directory below `root` whose file system counts; b"" is `root` itself."""
        self._root = root
        self._top = top
        self._device: int | None = None
        self.beyond: list[bytes] = []
        """Directories that walks did not enter."""

    def holds(self, path: bytes) -> bool:
        """Whether the directory at `path` is on the top's file system. Raises FileError."""
        if self._device is None:
            self._device = self._device_of(self._top)
        return self._root.identity(path).device == self._device

    def enters(self, path: bytes) -> bool:
        """Whether a walk enters the directory at `path`. It always enters the root, which may be above the
        top."""
        if not path or self.holds(path):
            return True
        self.beyond.append(path)
        return False

    def _device_of(self, top: bytes) -> int:
        try:
            return self._root.identity(top).device
        except FileError:
            # It does not exist, as in a dry run: it would be on the root's file system.
            return self._root.identity(b"").device


class SelectedBoundary(MountBoundary):
    """The same for selected paths, each of which has a file system of its own.

    Below a selected directory a walk stays on one file system. So it enters what is on that of the directory
    above.
    """

    def __init__(self, root: LayeredRoot, selection: Selection) -> None:
        super().__init__(root, b"")
        self._layered = root
        self._selection = selection

    def holds(self, path: bytes) -> bool:
        if self._selection.is_end(path) or self._selection.is_above(path):
            return True
        base = self._layered.base
        crossed = {
            base.identity(real).device != base.identity(real.rpartition(b"/")[0]).device
            for real in self._layered.reals(path)
        }
        if len(crossed) > 1:
            raise FileError(
                path,
                f"{printable(path)}: on another file system below one SRC, and not below another one; sync"
                " one after the other, or leave out -x",
            )
        return crossed == {False}
