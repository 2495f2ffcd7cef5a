"""New files, deferred until the comparison is complete: only then is it known where their content may be."""

from __future__ import annotations

from rdc.session.transfer.file_queue import FileQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DeferredFiles"]


class DeferredFiles:
    """Deferred files, in the order in which they were listed."""

    def __init__(self) -> None:
        self._files = FileQueue()
        self._hints: dict[int, tuple[bytes, ...]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Adds a file that does not exist locally. `bases`: local files that may have its content."""
        self._files.append(file)
        if bases:
            self._hints[file] = bases

    def drained(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Takes all files, each with its bases."""
        while self._files:
            file = self._files.popleft()
            yield file, self._hints.pop(file, ())
