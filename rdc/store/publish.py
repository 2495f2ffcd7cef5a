"""Writes the index with which any static web server publishes a store.

The index is the last file of each change: what it names is there, for as long as no gc removes it. It is
written once by `put --publish`. From then on everything that changes the store writes it again.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from blake3 import blake3

from rdc.errors import FileError, TrustError
from rdc.files.base.paths import make_aside
from rdc.files.base.store_guard import HEAD_NAME
from rdc.store.index_file import (
    INDEX_BYTES,
    PUBLISHED,
    PublishedSnapshot,
    StoreIndex,
    decode_index,
    encode_index,
)
from rdc.store.pack_file import pack_path, storing_failure
from rdc.store.place import INDEX_NAME, PackStore, is_gone
from rdc.store.snapshots import SNAPSHOT_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rdc.store.pack_file import PackEnd

FILE_MODE, DIRECTORY_MODE = 0o444, 0o755
"""Modes of what is published: a web server runs as another user."""


def own_keys() -> Path | None:
    """Return the directory of the user's key; None if there is no key."""
    from rdc.transport.keys import key_directory

    try:
        found = key_directory(os.environ)
    except TrustError:
        return None
    return found if (found / "identity.pem").exists() else None


def is_published(store: PackStore) -> bool:
    """Return whether a store has an index."""
    return bool(store.read_small(INDEX_NAME, 1))


def publish(store: PackStore, *, first: bool = False, without: frozenset[bytes] = frozenset()) -> None:
    """Write the index of a store that has one; with `first`, of any. Raises RdcError.

    `without`: packs that are about to be removed.
    """
    if not first and not is_published(store):
        return
    with store.publishing():
        index = StoreIndex(
            PUBLISHED,
            store.head.data,
            _next_number(store),
            int(time.time()),
            tuple(_snapshots(store)),
            _packs(store, without),
        )
        _open_to_all(store, index.packs, index.snapshots)
        _write(store, _encoded(store, index))


def _encoded(store: PackStore, index: StoreIndex) -> bytes:
    try:
        return encode_index(index, own_keys())
    except ValueError as error:
        shown = store.shown(INDEX_NAME)
        raise FileError(shown, f"{os.fsdecode(shown)}: the store is too large to publish: {error}") from error


def _snapshots(store: PackStore) -> Iterator[PublishedSnapshot]:
    """Yield what an index says of the snapshots. Whoever forgets one meanwhile writes the next index."""
    for number in store.numbers():
        try:
            yield published_snapshot(store, number)
        except FileError as error:
            if not is_gone(error):
                raise


def _packs(store: PackStore, without: frozenset[bytes]) -> dict[bytes, PackEnd]:
    """Return the ends of all packs that can be read; verify reports the others."""
    found: dict[bytes, PackEnd] = {}
    for name in store.pack_names():
        if name in without:
            continue
        with suppress(FileError):
            found[name] = store.pack_end(name)
    return found


def _next_number(store: PackStore) -> int:
    """Return a number above the last index's. One that was lost was not made later than now."""
    last = 0
    with suppress(ValueError):
        last = decode_index(store.read_small(INDEX_NAME, INDEX_BYTES)).index.number
    return max(last + 1, int(time.time()))


def published_snapshot(store: PackStore, number: int) -> PublishedSnapshot:
    """Return what an index says of a snapshot. Raises FileError."""
    data = store.read_small(b"snapshots/%d" % number, SNAPSHOT_BYTES)
    snapshot = store.snapshot(number)
    return PublishedSnapshot(number, snapshot.seconds, snapshot.series, len(data), blake3(data).digest())


def _open_to_all(store: PackStore, packs: Iterable[bytes], snapshots: Iterable[PublishedSnapshot]) -> None:
    """Let all users read what is published."""
    files = [HEAD_NAME, *map(pack_path, packs), *[b"snapshots/%d" % one.number for one in snapshots]]
    directories = {b".", *[path.rpartition(b"/")[0] for path in files if b"/" in path], b"packs"}
    for path, mode in (*[(one, FILE_MODE) for one in files], *[(one, DIRECTORY_MODE) for one in directories]):
        try:
            now = os.stat(path, dir_fd=store.fileno(), follow_symlinks=False).st_mode
            if stat.S_ISLNK(now) or stat.S_IMODE(now) & mode & 0o555 == mode & 0o555:
                continue
            os.chmod(path, stat.S_IMODE(now) | mode & 0o555, dir_fd=store.fileno())
        except OSError as error:
            raise storing_failure(error, store.shown(path), "open it to other users") from error


def _write(store: PackStore, data: bytes) -> None:
    made = [-1]

    def make(temporary: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        made[0] = os.open(temporary, flags, FILE_MODE, dir_fd=store.fileno())

    place = store.fileno()
    try:
        temporary = make_aside(INDEX_NAME, make)
        try:
            os.fchmod(made[0], FILE_MODE)
            with open(made[0], "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, INDEX_NAME, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=place)
            raise
        os.fsync(place)
    except OSError as error:
        raise storing_failure(error, store.shown(INDEX_NAME), "write it") from error
