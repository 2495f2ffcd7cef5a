"""Snapshots of many small files: their identities at one moment, and their contents while needed."""

from __future__ import annotations

from itertools import accumulate

from rdc.errors import FileError
from rdc.files.bulk.open_many import OpenedFiles, can_open, most_opened
from rdc.files.root.memory_file import MemoryFile
from rdc.lean.records import dataclass
from rdc.limits.sessions import BUNDLED_FILE_BYTES
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.root import Root

__all__ = ["Look", "Snapshot", "SnapshotContent", "identities_of", "look"]


class Snapshot:
    """Regular files below `root`, each read whole at one moment."""

    __slots__ = ("_content", "identities", "paths", "root")

    def __init__(
        self, root: Root, paths: Sequence[bytes], identities: Sequence[Identity], content: bytes | None
    ) -> None:
        """`content` holds all files, joined. None means that it is read when it is first needed."""
        self.root = root
        self.paths = paths
        self.identities = identities
        """Identity of each file when it was read."""
        self._content = content

    @property
    def cached_bytes(self) -> int:
        """Bytes of content in memory."""
        return len(self._content or b"")

    def drop(self) -> None:
        """Free the content. It is read again when it is next needed."""
        self._content = None

    def chosen(self, rows: Sequence[int]) -> Snapshot:
        """Return a snapshot of the files in `rows`."""
        paths, identities = [self.paths[row] for row in rows], [self.identities[row] for row in rows]
        content = None
        if self._content is not None:
            content = Look(self.identities, self._content).chosen(rows).content
        return Snapshot(self.root, paths, identities, content)

    def content(self) -> bytes | None:
        """Return all contents, joined. Return None if they had to be read again and a file has changed."""
        if self._content is not None:
            return self._content
        again = look(self.root, self.paths)
        return again.content if list(again.identities) == list(self.identities) else None


@dataclass(frozen=True, slots=True)
class Look:
    """The result of reading files once."""

    identities: Sequence[Identity | None]
    """One per file; None for a file that could not be read whole."""
    content: bytes
    """Contents of the files that were read, joined."""

    def chosen(self, rows: Sequence[int]) -> Look:
        """Return the part for `rows`, all of which were read."""
        sizes = [0 if found is None else found.size for found in self.identities]
        ends = list(accumulate(sizes))
        contents = [self.content[ends[row] - sizes[row] : ends[row]] for row in rows]
        return Look([self.identities[row] for row in rows], b"".join(contents))


def look(root: Root, paths: Sequence[bytes], most: int = BUNDLED_FILE_BYTES) -> Look:
    """Read the files at `paths` that are regular and have at most `most` bytes each."""
    if not can_open():
        return _look_singly(root, paths, most)
    identities: list[Identity | None] = []
    contents = []
    for opened in _opened(root, paths):
        failed = set(opened.failed)
        rows = [row for row in range(len(opened)) if row not in failed and opened.sizes[row] <= most]
        content, good = opened.read(rows) if rows else (b"", b"")
        some: list[Identity | None] = [None] * len(opened)
        for row, is_good in zip(rows, good, strict=True):
            if is_good:
                some[row] = opened.identity(row)
        identities += some
        contents.append(content)
    return Look(identities, b"".join(contents))


def identities_of(root: Root, paths: Sequence[bytes]) -> list[Identity | None]:
    """Return the present identity at each path, or None if no file there can be opened."""
    found: list[Identity | None] = []
    if can_open():
        for opened in _opened(root, paths):
            failed = set(opened.failed)
            found += [None if row in failed else opened.identity(row) for row in range(len(opened))]
        return found
    for path in paths:
        try:
            found.append(root.identity(path))
        except FileError:
            found.append(None)
    return found


def _opened(root: Root, paths: Sequence[bytes]) -> Iterator[OpenedFiles]:
    """Yield the files at `paths` in groups that may be open together. A group is closed when the next is
    opened."""
    at = 0
    while at < len(paths):
        some = paths[at : at + most_opened(root)]
        at += len(some)
        with OpenedFiles(root, b"".join([path + b"\0" for path in some])) as opened:
            yield opened


def _look_singly(root: Root, paths: Sequence[bytes], most: int) -> Look:
    identities: list[Identity | None] = []
    contents = []
    for path in paths:
        try:
            with root.open_read(path) as source:
                if source.size > most:
                    identities.append(None)
                    continue
                content = source.pread(0, source.size)
                source.check_unchanged()
        except FileError:
            identities.append(None)
        else:
            identities.append(source.identity)
            contents.append(content)
    return Look(identities, b"".join(contents))


class SnapshotContent(MemoryFile):
    """The contents of many files as one file, for reading."""

    __slots__ = ()

    def __init__(self, root: Root, content: bytes) -> None:
        super().__init__(root, b"", Identity(0, 0, len(content), 0, 0), content)

    def check_unchanged(self) -> None:
        """Never raises: later changes to the files do not affect what was read."""
