"""MemoryFile: a SourceFile whose content was read completely and is kept in memory."""

from __future__ import annotations

from rdc.files.base.known_devices import is_unchanged
from rdc.files.base.os_errors import changed
from rdc.files.root.source_file import SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.files.root.root import Root
    from rdc.model.entries import Identity

__all__ = ["MemoryFile"]


class MemoryFile(SourceFile):
    """The content of a file at one moment, without a descriptor. `check_unchanged` looks at the file at its
    path."""

    __slots__ = ("_content", "_root")

    def __init__(self, root: Root, path: bytes, identity: Identity, content: bytes) -> None:
        self._root = root
        self._path = path
        self._content = content
        self._fd = -1
        self._outlasted = True
        self.on_span = None
        self.identity = identity
        self.size = len(content)

    @property
    def taken(self) -> None:
        """All of it is in memory."""

    def pread(self, offset: int, length: int) -> bytes:
        data = self._content[offset : offset + length]
        self._check_length(data, offset, length)
        return data

    def peek(self, offset: int, length: int) -> memoryview:
        data = memoryview(self._content)[offset : offset + length]
        self._check_length(data, offset, length)
        return data

    def _check_length(self, data: bytes | memoryview, offset: int, length: int) -> None:
        if len(data) != length:
            shown = self._root.shown(self._path)
            raise changed(self._path, shown, f"{offset + length} bytes", f"{self.size}")

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self.pread(offset, len(buffer))

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.peek, rows[0::2], rows[1::2]))

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        buffer[:] = self.read_ranges(rows)

    def again(self) -> SourceFile:
        return self

    def check_unchanged(self) -> None:
        """Raise FileChangedError unless the file at its path is still the one that was read."""
        if not is_unchanged(self.identity, self._root.identity(self._path)):
            raise changed(
                self._path, self._root.shown(self._path), "the file that was read", "another or a changed one"
            )
