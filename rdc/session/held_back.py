"""New files, held back until everything is listed: only then is it known where their content may be."""

from __future__ import annotations

from rdc.session.file_queue import FileQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HeldBack"]


class HeldBack:
    """In the order in which they were listed."""

    def __init__(self) -> None:
        self._files = FileQueue()
        self._hints: dict[int, tuple[bytes, ...]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """A file that nothing is at the path of. `bases`: files that stay, and may have its content."""
        self._files.append(file)
        if bases:
            self._hints[file] = bases

    def drained(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Gives them up, each with its bases."""
        while self._files:
            file = self._files.popleft()
            yield file, self._hints.pop(file, ())
