"""Makes stores, and restores their snapshots with scripts/read_store.py."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.progress import Event, Problem
from rdc.store.put import put
from rdc.store.records import StoreOptions, StoreReport
from tests.support.project_paths import TOP

__all__ = ["Problems", "put_tree", "read_alone", "state_of"]

READER = TOP / "scripts" / "read_store.py"


class Problems:
    """A Reporter that keeps problems and notices."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.found.append(event)

    @property
    def texts(self) -> list[str]:
        return [one.message for one in self.found]


def put_tree(
    source: Path,
    store: Path,
    options: StoreOptions | None = None,
    problems: Problems | None = None,
    catalog: SignatureStore | None = None,
) -> StoreReport:
    """Put a directory into a store, in the series `tree` unless `options` say otherwise."""
    return put(
        os.fsencode(source),
        os.fsencode(store),
        options or StoreOptions(name="tree"),
        problems or Problems(),
        catalog or NoCatalog(),
    )


def read_alone(store: Path, number: int, destination: Path) -> None:
    """Restore a snapshot with the reader that knows nothing of rdc."""
    done = subprocess.run(
        [sys.executable, READER, store, str(number), destination], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def state_of(top: Path, *, attributes: bool = True) -> dict[str, object]:
    """Everything that a snapshot keeps of a tree, by path."""
    found: dict[str, object] = {}
    inodes: dict[tuple[int, int], str] = {}
    for directory, names, files in os.walk(top):
        for name in (".", *sorted(names + files)) if directory == str(top) else sorted(names + files):
            path = Path(directory, name)
            now = path.lstat()
            content: object = None
            if stat.S_ISREG(now.st_mode):
                content = (
                    path.read_bytes(),
                    inodes.setdefault((now.st_dev, now.st_ino), str(path.relative_to(top))),
                )
            elif stat.S_ISLNK(now.st_mode):
                content = os.readlink(path)
            elif stat.S_ISBLK(now.st_mode) or stat.S_ISCHR(now.st_mode):
                content = now.st_rdev
            sets = {
                one: os.getxattr(path, one, follow_symlinks=False)
                for one in (os.listxattr(path, follow_symlinks=False) if attributes else ())
            }
            found[str(path.relative_to(top))] = (
                now.st_mode, now.st_mtime_ns, now.st_uid, now.st_gid, content, sets,
            )  # fmt: skip
    return found
