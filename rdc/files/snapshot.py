"""What many small files of one tree were at one look at each: facts, and contents while these are needed."""

from __future__ import annotations

from itertools import accumulate

from rdc.errors import FileError
from rdc.files.opened import OpenedFiles, can_open, most_opened
from rdc.files.source import HeldContent
from rdc.limits import BUNDLED_FILE_BYTES
from rdc.model.entries import Identity
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.confined import Root

__all__ = ["Look", "Snapshot", "SnapshotContent", "identities_of", "look"]


class Snapshot:
    """Regular files below `root`, each read whole at one moment."""

    __slots__ = ("_content", "identities", "paths", "root")

    def __init__(
        self, root: Root, paths: Sequence[bytes], identities: Sequence[Identity], content: bytes | None
    ) -> None:
        """`content`: of all files, one behind another, or None, to be read when it is asked for."""
        self.root = root
        self.paths = paths
        self.identities = identities
        """Of each when it was read."""
        self._content = content

    @property
    def held(self) -> int:
        """Bytes of content in memory."""
        return len(self._content or b"")

    def drop(self) -> None:
        """The content is to be read again when it is next asked for."""
        self._content = None

    def chosen(self, rows: Sequence[int]) -> Snapshot:
        """These files alone."""
        paths, identities = [self.paths[row] for row in rows], [self.identities[row] for row in rows]
        content = None
        if self._content is not None:
            content = Look(self.identities, self._content).chosen(rows).content
        return Snapshot(self.root, paths, identities, content)

    def content(self) -> bytes | None:
        """All contents, one behind another; None where they would have to be read again, and a file is no
        more what it was."""
        if self._content is not None:
            return self._content
        again = look(self.root, self.paths)
        return again.content if list(again.identities) == list(self.identities) else None


@dataclass(frozen=True, slots=True)
class Look:
    """One look at files."""

    identities: Sequence[Identity | None]
    """Of each; None of one that could not be read whole."""
    content: bytes
    """Of the others, one behind another."""

    def chosen(self, rows: Sequence[int]) -> Look:
        """These rows, which were read."""
        sizes = [0 if found is None else found.size for found in self.identities]
        ends = list(accumulate(sizes))
        pieces = [self.content[ends[row] - sizes[row] : ends[row]] for row in rows]
        return Look([self.identities[row] for row in rows], b"".join(pieces))


def look(root: Root, paths: Sequence[bytes], most: int = BUNDLED_FILE_BYTES) -> Look:
    """Reads the files at `paths` that are regular and have at most `most` bytes each."""
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
    """What is at each of these paths now; None: no file that can be opened."""
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
    """The files at `paths`, so many at a time as may be open; closed with the next ones."""
    most = most_opened()
    for at in range(0, len(paths), most):
        with OpenedFiles(root, b"".join([path + b"\0" for path in paths[at : at + most]])) as opened:
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


class SnapshotContent(HeldContent):
    """Contents of many files as one, which were of one moment each when they were read."""

    __slots__ = ()

    def __init__(self, root: Root, content: bytes) -> None:
        super().__init__(root, b"", Identity(0, 0, len(content), 0, 0), content)

    def check_unchanged(self) -> None:
        """What happens to the files afterwards changes nothing about what was read."""
