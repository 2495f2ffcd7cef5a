"""Where a tree leaves the file system that it begins on: what --one-file-system does not go beyond."""

from __future__ import annotations

from rdc.errors import FileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["Boundary"]


class Boundary:
    """Asked of directories on the way down, it says which to go into, and keeps those that lie beyond.

    As for rsync, a device number of its own makes a file system: a bind mount of the same one is none, a
    subvolume of a btrfs is.
    """

    def __init__(self, root: Root, top: bytes) -> None:
        """`top`: the directory below `root` that decides; b"" is `root` itself."""
        self._root = root
        self._top = top
        self._device: int | None = None
        self.beyond: list[bytes] = []
        """Directories that were not entered."""

    def holds(self, path: bytes) -> bool:
        """Whether the directory at `path` is on the file system of the top. Raises FileError."""
        if self._device is None:
            self._device = self._device_of(self._top)
        return self._root.identity(path).device == self._device

    def enters(self, path: bytes) -> bool:
        """The same, for a walk from the root down, which passes through what is above the top."""
        if not path or self.holds(path):
            return True
        self.beyond.append(path)
        return False

    def _device_of(self, top: bytes) -> int:
        try:
            return self._root.identity(top).device
        except FileError:
            # Not made yet, as in a dry run: it would be where the root is.
            return self._root.identity(b"").device
