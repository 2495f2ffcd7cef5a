"""LeasedFiles: many files under read leases, compared and taken from their names together, in C on Linux.

A file that meets any difficulty is left to LeasedFile and to the classes that change one name
(rdc.files.names.name_removal, rdc.files.names.hard_link). They handle and name every case, and define what
the C part does. Without the C part they do everything.
"""

from __future__ import annotations

import struct
from array import array
from enum import IntEnum

from rdc.errors import FileError
from rdc.files import _files
from rdc.files.base.entry_path import has_proc
from rdc.files.facts.content_digest import PIECE_BYTES, ContentDigest
from rdc.files.names.leased_file import LeasedFile, LeaseFacts, equal_digest, same_bytes
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType, TracebackType

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.root import Root
    from rdc.model.attributes import Attributes

__all__ = ["LeasedFiles", "Outcome", "Place", "Step"]

TOGETHER_BYTES = 16 * PIECE_BYTES
"""Size of the largest file that is compared from memory. For larger files, the time is that of reading
them."""

_ROW = struct.Struct("=QQ14q")
_SECOND = 1_000_000_000


class Outcome(IntEnum):
    """What a step did to one name."""

    DONE = 0
    """The step was taken, and both files are as they were compared."""
    UNTOUCHED = 1
    """Nothing was changed."""
    UNLIKE = 2
    """The name was taken from its file, but one of the two is not as it was compared."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file is opened: its path, and the directory that was opened for it."""

    root: Root
    path: bytes
    directory: Directory
    name: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """One name to be taken from its file."""

    directory: Directory
    name: bytes
    displaced: bytes
    """The name beside it that its file gets."""
    file: int
    """Number of the file among the LeasedFiles."""
    original: int
    """Number of the file that stays."""
    original_directory: Directory
    original_name: bytes
    first: bool
    """Whether no other name of the file was changed, so that even its ctime must be as it was."""


_extension: ModuleType | None = _files if hasattr(_files, "lease_files") else None
"""The C part, which Linux alone has."""


class LeasedFiles:
    """The files at these places, each leased unless that failed. A context manager that closes them."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._fds = array("i", [-1]) * len(places)
        self._packed, self._attributes = b"", b""
        self._rows: list[tuple[int, ...]] = []
        self._facts: list[LeaseFacts] = []
        self._single: dict[int, LeasedFile | FileError] = {}
        """Files that were leased by themselves, and what went wrong with others."""
        if _extension is not None:
            fds, _, self._packed, self._attributes = _extension.lease_files(
                array("i", [place.directory.fd for place in places]),
                b"".join([place.name + b"\0" for place in places]),
            )
            self._fds = array("i", fds)
            self._rows = list(_ROW.iter_unpack(self._packed))
            self._facts = [_facts(*row) for row in self._rows]
        # Whatever failed is tried again alone, which names it.
        for number, fd in enumerate(self._fds):
            if fd < 0:
                try:
                    self._single[number] = LeasedFile(places[number].root, places[number].path)
                except FileError as error:
                    self._single[number] = error

    def facts(self, number: int) -> LeaseFacts:
        """Return the facts of a file, read after its lease. Raises FileError if it could not be leased."""
        if number in self._single:
            return self.file(number).facts
        return self._facts[number]

    def fileno(self, number: int) -> int:
        """Return the descriptor of a file. Raises FileError as `facts` does."""
        return self.file(number).fileno() if number in self._single else self._fds[number]

    def attributes(self, number: int) -> Attributes:
        """Return the extended attributes of a file. Raises FileError as `facts` does."""
        if number in self._single:
            return self.file(number).attributes
        at, end = self._rows[number - 1][15] if number else 0, self._rows[number][15]
        if at == end:
            return ()
        found = []
        while at < end:
            name = self._attributes[at : self._attributes.index(b"\0", at)]
            at += len(name) + 1
            (length,) = struct.unpack_from("=i", self._attributes, at)
            found.append((name, self._attributes[at + 4 : at + 4 + length]))
            at += 4 + length
        return tuple(sorted(found))

    def is_plain(self, number: int) -> bool:
        """Return whether it is known that all blocks of the file are its own, and take their length on
        disk."""
        return number not in self._single and bool(self._rows[number][14])

    def file(self, number: int) -> LeasedFile:
        """Return one file as an object, which this object closes. Raises FileError if it could not be
        leased."""
        found = self._single.get(number)
        if isinstance(found, FileError):
            raise found
        if found is not None:
            return found
        place = self._places[number]
        try:
            return LeasedFile.adopted(
                place.root, place.path, self._fds[number], self.facts(number), self.attributes(number)
            )
        except OSError as error:
            raise place.root.failure(error, place.path, "look at it", reading=True) from error

    def compare(
        self, original: int, others: Sequence[int], *, digest: bool
    ) -> tuple[bytes, list[bool | FileError]]:
        """Compare files with one of them. Return its ContentDigest, b"" unless `digest`, and for each other
        whether it is equal, or why it could not be compared. Raises FileError for the original."""
        name, equal = b"", bytes(len(others))
        size = self.facts(original).size
        if _extension is not None and original not in self._single and size <= TOGETHER_BYTES:
            one = self.file(original)
            content = one.pread(0, size)
            if digest:
                hasher = ContentDigest(size)
                hasher.add(0, content)
                name = hasher.digest()
            same = [number not in self._single and self.facts(number).size == size for number in others]
            fds = [self._fds[number] if fits else -1 for number, fits in zip(others, same, strict=True)]
            equal = _extension.compare_files(array("i", fds), content)
            one.check()
        found: list[bool | FileError] = [bool(one) for one in equal]
        for at, number in enumerate(others):
            if found[at]:
                continue
            try:
                # What differs is compared once more, alone: if it changes meanwhile, that is named.
                name, found[at] = self._compare_alone(original, number, name, digest=digest)
            except FileError as error:
                found[at] = error
        return name, found

    def _compare_alone(self, original: int, number: int, name: bytes, *, digest: bool) -> tuple[bytes, bool]:
        one, other = self.file(original), self.file(number)
        if name or not digest:
            return name, same_bytes(one, other)
        found = equal_digest(one, other)
        return found or b"", found is not None

    def displace(self, steps: Sequence[Step], *, exchange: bool) -> list[Outcome]:
        """Take each name from its file: rename that to `displaced`, or with `exchange` make the name a link
        to the original.

        The caller repeats what is UNTOUCHED alone. Below an append-only root and without /proc everything is.
        """
        if _extension is None or not has_proc():
            return [Outcome.UNTOUCHED] * len(steps)
        return self._take(_extension.displace_files, steps, exchange=exchange)

    def remove(self, steps: Sequence[Step], *, exchange: bool) -> list[Outcome]:
        """Check both files of each step once more, and remove what it displaced. The caller repeats what is
        UNTOUCHED alone."""
        if _extension is None:
            return [Outcome.UNTOUCHED] * len(steps)
        return self._take(_extension.remove_displaced, steps, exchange=exchange)

    def _take(self, call: Callable[..., bytes], steps: Sequence[Step], *, exchange: bool) -> list[Outcome]:
        outcomes = [Outcome.UNTOUCHED] * len(steps)
        together = [
            number
            for number, step in enumerate(steps)
            if step.file not in self._single
            and step.original not in self._single
            and not self._places[step.file].root.append_only
        ]
        if not together:
            return outcomes
        chosen = [steps[number] for number in together]
        found = call(
            exchange,
            array("i", [step.directory.fd for step in chosen]),
            b"".join([step.name + b"\0" for step in chosen]),
            b"".join([step.displaced + b"\0" for step in chosen]),
            array("I", [step.file for step in chosen]),
            array("I", [step.original for step in chosen]),
            array("i", [step.original_directory.fd for step in chosen]),
            b"".join([step.original_name + b"\0" for step in chosen]),
            self._fds,
            self._packed,
            self._attributes,
            bytes([step.first for step in chosen]),
        )
        for number, outcome in zip(together, found, strict=True):
            outcomes[number] = _OUTCOMES[outcome]
        return outcomes

    def close(self) -> None:
        """Release all leases, so that waiting writers continue."""
        if _extension is not None:
            fds, self._fds = self._fds, array("i", [-1]) * len(self._fds)
            _extension.close_files(fds)
        for one in self._single.values():
            if isinstance(one, LeasedFile):
                one.close()

    def __enter__(self) -> LeasedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_OUTCOMES = tuple(Outcome)


def _facts(
    device: int,
    inode: int,
    size: int,
    mtime: int,
    mtime_part: int,
    ctime: int,
    ctime_part: int,
    atime: int,
    atime_part: int,
    mode: int,
    uid: int,
    gid: int,
    links: int,
    allocated: int,
    _plain: int,
    _attributes: int,
) -> LeaseFacts:
    """The facts of a row of the C part: each time is a number of seconds, and nanoseconds."""
    return LeaseFacts(
        *(device, inode, size, mtime * _SECOND + mtime_part, ctime * _SECOND + ctime_part),
        *(atime * _SECOND + atime_part, mode, uid, gid, links, allocated),
    )
