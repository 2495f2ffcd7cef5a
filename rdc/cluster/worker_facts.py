"""WorkerFacts: what a worker must have in common with the machine that gives it work."""

from __future__ import annotations

import os
import socket

from blake3 import blake3

from rdc.errors import printable
from rdc.files.objects.object_url import is_url
from rdc.lean.records import dataclass
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NAMES", "RootFacts", "WorkerFacts", "difference", "worker_facts"]

NAMES = 64
"""Names compared of each directory. If two lists of names have a share j in common, so have the 64 names with
the least hashes, to 0.06 (Broder 1997)."""


@dataclass(frozen=True, slots=True)
class RootFacts:
    """One path of a job, as one machine sees it."""

    path: bytes
    inode: int
    """0 if it could not be looked at, and of a URL."""
    names: tuple[int, ...]
    """The NAMES least hashes of names in a directory, increasing."""


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    host: str
    version: str
    """The version of rdc, and the parameters of the job."""
    roots: tuple[RootFacts, ...]


def worker_facts(paths: Sequence[bytes], method: str) -> WorkerFacts:
    """The facts of this process for a job of these paths. `method`: its parameters."""
    return WorkerFacts(socket.gethostname(), f"{__version__}; {method}", tuple(map(_root, paths)))


def _root(path: bytes) -> RootFacts:
    if is_url(path):
        return RootFacts(path, 0, ())
    try:
        inode = os.stat(path).st_ino
    except (OSError, ValueError):
        return RootFacts(path, 0, ())
    try:
        names = os.listdir(path)
    except OSError:
        names = []
    hashes = sorted(int.from_bytes(blake3(name).digest(8), "big") for name in names)
    return RootFacts(path, inode, tuple(hashes[:NAMES]))


def difference(here: WorkerFacts, there: WorkerFacts) -> str:
    """Why a worker with the facts `there` cannot do work for a machine with the facts `here`; '' if it can.

    A mount is compared by the inode number of its root and by half of the names there. Device numbers differ
    between machines anyway, and a tree in use may get another name while slices wait.
    """
    if here.version != there.version:
        return (
            f"worker {printable(there.host)} has another rdc: expected {here.version!r}, found"
            f" {there.version[:200]!r}; install the same version there"
        )
    for one, other in zip(here.roots, there.roots, strict=True):
        if one.inode != other.inode or not _alike(one.names, other.names):
            seen = "is not there" if not other.inode else "is another directory there than here"
            return (
                f"worker {printable(there.host)}: {printable(one.path)} {seen}; mount the same file system at"
                " this path, and give absolute paths"
            )
    return ""


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    least = sorted({*one, *other})[:NAMES]
    return 2 * len({*least} & {*one} & {*other}) >= len(least)
