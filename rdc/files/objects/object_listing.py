"""ListedObjects: the objects of one directory, as the pages of a store's listing give them."""

from __future__ import annotations

from array import array
from itertools import pairwise

from blake3 import blake3

from rdc.errors import ExitCode, printable
from rdc.lean.records import dataclass
from rdc.limits.wire import DIRECTORY_BYTES, ENTRY_BYTES, KEY_BYTES, SIZE_LIMIT
from rdc.model.entries import strings
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["ListedObjects", "PageReader", "version_of"]


@dataclass(frozen=True, slots=True)
class ListedObjects:
    """The objects of which one directory consists, were their names paths."""

    directory: bytes
    """The directory as the user would type it, ending in a slash."""
    below: bytes
    """The same, relative to the URL that is walked: empty, or ending in a slash."""
    names: bytes
    """The rest of each key behind the directory, in order, each followed by NUL. A rest is empty if the key
    of an object with content ends in a slash."""
    sizes: array[int]
    versions: array[int]
    """Typecode 'Q', one per name: bytes, and what version_of returns."""
    directories: list[bytes]
    """Names of directories in it, in order. One is empty if a key has two slashes in a row."""
    nameless: int = 0
    """Objects that are left out, since their names contain NUL."""
    single: bool = False
    """Whether the URL names one object, which this listing holds alone."""

    def nameless_problem(self) -> Problem:
        """What is to be said of the objects that are left out."""
        text = f"{printable(self.directory)}: {self.nameless} names with NUL bytes; rename these objects"
        return Problem(ExitCode.PARTIAL, self.directory, text)


def version_of(answer: Mapping[str, Any]) -> int:
    """64 bits that differ if the store says that the content does: its ETag, or the time where it gives
    none."""
    version = answer.get("ETag")
    if not version:
        changed = answer.get("LastModified")
        version = changed.replace(microsecond=0).isoformat() if changed is not None else ""
    return int.from_bytes(blake3(str(version).encode()).digest(8), "little")


class PageReader:
    """Gathers the pages of one directory in columns, some tens of bytes an object.

    A store is not trusted: what it lists is checked, and what a directory may take is bounded.
    """

    def __init__(self, prefix: str) -> None:
        """`prefix`: that of all keys, empty or ending in a slash."""
        self._prefix = prefix
        self._names: list[bytes] = []
        self._sizes, self._versions = array("Q"), array("Q")
        self._directories: set[bytes] = set()
        self._nameless = 0
        self.bytes = 0
        """What the entries take of memory, as DIRECTORY_BYTES counts them."""
        self.is_empty = True
        """Whether the store lists nothing, not even an object that stands for the directory."""

    def add(self, page: Mapping[str, Any]) -> None:
        """Takes one answer of list_objects_v2. Raises ValueError for what no store lists."""
        for entry in page.get("Contents") or ():
            self.is_empty = False
            name, size = self._name(entry["Key"]), entry["Size"]
            if not isinstance(size, int) or not 0 <= size <= SIZE_LIMIT:
                raise ValueError(f"expected the size of an object, found {str(size)[:40]}")
            if b"/" in name:
                raise ValueError("expected the objects of one directory, found others")
            if b"\0" in name:
                self._nameless += 1
            elif name or size:
                # An empty object with the name of the directory stands for it.
                self._names.append(name)
                self._sizes.append(size)
                self._versions.append(version_of(entry))
        for entry in page.get("CommonPrefixes") or ():
            self.is_empty = False
            name = self._name(entry["Prefix"])
            if not name.endswith(b"/") or b"/" in name[:-1]:
                raise ValueError("expected the directories of one directory, found others")
            if b"\0" in name:
                self._nameless += 1
            else:
                self._directories.add(name[:-1])

    def _name(self, key: str) -> bytes:
        name = key.removeprefix(self._prefix).encode()
        if not key.startswith(self._prefix) or len(name) > KEY_BYTES:
            raise ValueError("expected names below the one that was asked for, found others")
        self.bytes += ENTRY_BYTES + len(name)
        if self.bytes > DIRECTORY_BYTES:
            raise ValueError(f"expected at most {DIRECTORY_BYTES >> 20} MiB of names, found more")
        return name

    def listed(self, directory: bytes, below: bytes) -> ListedObjects:
        """What all pages list, by name."""
        names, sizes, versions = self._names, self._sizes, self._versions
        if any(one >= next_ for one, next_ in pairwise(names)):
            # Some stores list in another order. Of a name that comes twice, the first one counts.
            order = sorted(range(len(names)), key=names.__getitem__)
            order = [row for at, row in enumerate(order) if not at or names[row] != names[order[at - 1]]]
            names = [names[row] for row in order]
            sizes = array("Q", [sizes[row] for row in order])
            versions = array("Q", [versions[row] for row in order])
        column = b"".join([name + b"\0" for name in names])
        return ListedObjects(
            directory, below, column, sizes, versions, sorted(self._directories), nameless=self._nameless
        )

    def single(self, name: str, directory: bytes) -> ListedObjects | None:
        """The object of this very name, if the pages have it."""
        listed = self.listed(directory, b"")
        names = strings(listed.names)
        if name.encode() not in names:
            return None
        row = names.index(name.encode())
        one = slice(row, row + 1)
        return ListedObjects(
            directory, b"", names[row] + b"\0", listed.sizes[one], listed.versions[one], [], single=True
        )
