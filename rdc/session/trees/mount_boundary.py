"""The boundary of --one-file-system: where a tree leaves the file system of its top directory."""

from __future__ import annotations

from rdc.errors import FileError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.layered_root import LayeredRoot
    from rdc.files.root.root import Root
    from rdc.tree.selection import Selection

__all__ = ["MountBoundary", "SelectedBoundary"]


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
