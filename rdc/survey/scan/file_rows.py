"""FileRows: the files of one directory that a scan found, as packed columns."""

from __future__ import annotations

from rdc.model.entries import PackedInodes
from rdc.records import dataclass

__all__ = ["NO_FILES", "FileRows"]


@dataclass(frozen=True, slots=True)
class FileRows:
    """Files of one directory, as little-endian columns. Objects have their versions as inodes."""

    names: bytes
    """Names, each followed by NUL."""
    sizes: bytes
    """u64."""
    mtimes: bytes
    """i64: nanoseconds."""
    inodes: PackedInodes

    def __len__(self) -> int:
        return len(self.sizes) // 8

    def part(self, names: list[bytes], start: int, stop: int) -> FileRows:
        """Rows [start, stop). `names`: those of all rows."""
        if (start, stop) == (0, len(self)):
            return self
        inodes, wide = self.inodes, slice(8 * start, 8 * stop)
        return FileRows(
            b"".join([name + b"\0" for name in names[start:stop]]),
            self.sizes[wide],
            self.mtimes[wide],
            PackedInodes(
                inodes.devices[wide],
                inodes.inodes[wide],
                inodes.links[4 * start : 4 * stop],
                inodes.allocated[wide],
                inodes.ctimes[wide],
            ),
        )


NO_FILES = FileRows(b"", b"", b"", PackedInodes(b"", b"", b"", b"", b""))
