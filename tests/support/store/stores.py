"""Makes stores, and restores their snapshots with scripts/read_store.py."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.lean.zstd import zstandard
from rdc.model.entries import Metadata
from rdc.progress import Event, Problem
from rdc.store.directory import KEY_BYTES, FrameRow
from rdc.store.frames import FrameKind, StoredFrame
from rdc.store.pack_file import PackWriter
from rdc.store.place import PackStore
from rdc.store.put import put
from rdc.store.records import StoreOptions, StoreReport
from rdc.store.snapshots import Snapshot, encode_snapshot
from rdc.store.tree_rows import StreamRef
from tests.support.project_paths import TOP

__all__ = [
    "READER",
    "PackedFrame",
    "Problems",
    "add_pack",
    "put_tree",
    "read_alone",
    "state_of",
    "write_snapshot",
]

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
    """Put a directory into a store, in the series `tree` and empty or not, unless `options` say otherwise."""
    return put(
        os.fsencode(source),
        os.fsencode(store),
        options or StoreOptions(name="tree", force_empty=True),
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
    """Return everything that a snapshot keeps of a tree, by path."""
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


@dataclass(frozen=True, slots=True)
class PackedFrame:
    """A frame of one chunk for a pack that no writer makes."""

    content: bytes
    key: bytes | None = None
    """None: the content's own."""
    bases: bytes = b""
    """Keys; with them it is a delta."""
    depth: int = 1
    """The depth of a delta."""
    stored: bytes | None = None
    """None: the content itself, or any bytes in a delta."""
    packed: bool = False
    """True if the content is compressed, or `stored` is what was compressed."""


def write_snapshot(store: Path, number: int, tree: StreamRef) -> Path:
    """Write the file of a snapshot with any tree. Return its path."""
    with PackStore.open(os.fsencode(store)) as opened:
        top = Metadata(0o755, 0, 0, 0)
        one = Snapshot(number, 0, b"tree", b"host", b"/tree", 0, 0, 0, 0, top, b"", tree)
        path = store / "snapshots" / str(number)
        path.write_bytes(encode_snapshot(one, opened.head.key))
    return path


def add_pack(store: Path, *frames: PackedFrame) -> bytes:
    """Add a pack with these frames to a store, whatever they say. Return its name."""
    with PackStore.open(os.fsencode(store)) as opened:
        writer = PackWriter(opened.fileno(), opened.label, opened.head.key)
        for one in frames:
            key = one.key or blake3(one.content, key=opened.head.key).digest(KEY_BYTES)
            kind = FrameKind.DELTA if one.bases else FrameKind.PACKED if one.packed else FrameKind.STORED
            data = one.stored
            if data is None:
                data = zstandard.ZstdCompressor().compress(one.content) if one.packed else one.content
            depth = one.depth if one.bases else 0
            row = FrameRow(kind, len(data), len(one.content), 1, depth, depth, one.bases)
            writer.add(StoredFrame(kind, data), row, [key], [len(one.content)])
        return writer.finish().name
