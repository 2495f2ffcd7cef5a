"""Trees as values: written to disk, read back and compared, by means that share nothing with rdc's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

__all__ = [
    "Directory",
    "File",
    "Link",
    "Node",
    "Tree",
    "describe",
    "litter",
    "parent_of",
    "read_tree",
    "tree",
    "write_tree",
]

LONG_AGO = 1_000_000_000_123_456_789
"""An mtime in nanoseconds for whoever does not care: not now, and no whole second."""


@dataclass(frozen=True, slots=True, repr=False)
class File:
    content: bytes
    mode: int = 0o644
    mtime_ns: int = LONG_AGO

    def __repr__(self) -> str:
        # A failing example is read by people: 200 KB of content are not.
        shown = self.content if len(self.content) <= 40 else blake2b(self.content, digest_size=6).hexdigest()
        return f"File({len(self.content)}: {shown!r}, {self.mode:#o}, {self.mtime_ns})"


@dataclass(frozen=True, slots=True)
class Directory:
    mode: int = 0o755
    mtime_ns: int = LONG_AGO


@dataclass(frozen=True, slots=True)
class Link:
    target: bytes
    mtime_ns: int = LONG_AGO


Node = File | Directory | Link
Tree = dict[bytes, Node]
"""Relative path to entry; b"" is the top directory, and every entry's directory is in it."""


def parent_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


Entries = Mapping[str, Node | bytes] | Mapping[str, Node] | Mapping[str, bytes]


def tree(entries: Entries | None = None, *, top: Directory | None = None) -> Tree:
    """A Tree from what matters in it: missing directories are added, plain bytes are a file's content."""
    found: Tree = {b"": top or Directory()}
    for name, entry in (entries or {}).items():
        path = os.fsencode(name)
        found[path] = File(entry) if isinstance(entry, bytes) else entry
        while path := parent_of(path):
            found.setdefault(path, Directory())
    return dict(sorted(found.items()))


@contextmanager
def _directories(top: Path, paths: list[bytes]) -> Iterator[dict[bytes, int]]:
    """Descriptors of directories below `top`, made where missing; step by step, since paths may be longer
    than the system takes."""
    opened = {b"": os.open(top, os.O_RDONLY | os.O_DIRECTORY)}
    try:
        for path in sorted(paths):
            if path:
                parent, _, name = path.rpartition(b"/")
                os.mkdir(name, 0o700, dir_fd=opened[parent])
                opened[path] = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=opened[parent])
        yield opened
    finally:
        for fd in opened.values():
            os.close(fd)


def write_tree(top: Path, wanted: Tree) -> Path:
    """Make `wanted` at `top`, which is missing or empty; returns `top`."""
    top.mkdir(exist_ok=True)
    directories = [path for path, node in wanted.items() if isinstance(node, Directory)]
    with _directories(top, directories) as opened:
        for path, node in wanted.items():
            parent, _, name = path.rpartition(b"/")
            if isinstance(node, File):
                _write_file(name, opened[parent], node)
            elif isinstance(node, Link):
                os.symlink(node.target, name, dir_fd=opened[parent])
                times = (node.mtime_ns, node.mtime_ns)
                os.utime(name, ns=times, dir_fd=opened[parent], follow_symlinks=False)
        for path in sorted(directories, reverse=True):
            directory = wanted[path]
            assert isinstance(directory, Directory)
            os.fchmod(opened[path], directory.mode)
            os.utime(opened[path], ns=(directory.mtime_ns, directory.mtime_ns))
    return top


def _write_file(name: bytes, directory: int, node: File) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=directory)
    try:
        left = memoryview(node.content)
        while left:
            left = left[os.write(fd, left) :]
        os.fchmod(fd, node.mode)
        os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))
    finally:
        os.close(fd)


def read_tree(top: Path) -> Tree:
    """Return the tree at `top`, in order of paths; special files are not expected."""
    found: Tree = {}
    _read(os.open(top, os.O_RDONLY | os.O_DIRECTORY), b"", found)
    return dict(sorted(found.items()))


def _read(fd: int, path: bytes, found: Tree) -> None:
    try:
        here = os.fstat(fd)
        found[path] = Directory(stat.S_IMODE(here.st_mode), here.st_mtime_ns)
        for name in map(os.fsencode, os.listdir(fd)):
            below = path + b"/" + name if path else name
            entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(entry.st_mode):
                _read(os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd), below, found)
            elif stat.S_ISLNK(entry.st_mode):
                found[below] = Link(os.readlink(name, dir_fd=fd), entry.st_mtime_ns)
            else:
                if not stat.S_ISREG(entry.st_mode) and any(map(_is_temporary, path.split(b"/"))):
                    continue  # of a trial that was killed
                assert stat.S_ISREG(entry.st_mode), below
                with open(os.open(name, os.O_RDONLY, dir_fd=fd), "rb") as file:
                    found[below] = File(file.read(), stat.S_IMODE(entry.st_mode), entry.st_mtime_ns)
    finally:
        os.close(fd)


def describe(expected: Tree, found: Tree) -> list[str]:
    """The differences, a line each, short enough to read; none for equal trees."""
    lines = []
    for path in sorted(expected.keys() | found.keys()):
        wanted, got = expected.get(path), found.get(path)
        if wanted != got:
            lines.append(f"{path[-60:]!r}: expected {wanted}, found {got}")
    return lines


def litter(found: Tree) -> list[bytes]:
    """Temporary files among the paths of a tree, and what is in temporary directories."""
    return [path for path in found if any(map(_is_temporary, path.split(b"/")))]


def _is_temporary(name: bytes) -> bool:
    return name.startswith(b".rdc-") and name.endswith(b".tmp")
