"""Keeps syncs out of stores: a DST at or below one is refused, unless SRC is a copy of the same store, and so
is a side of a two-way sync, whatever the other one is.

A sync with --delete to a store by mistake would delete its packs. Only the first bytes of a store's head are
known here, since every sync asks.
"""

from __future__ import annotations

import os

from rdc.errors import UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions

MAGIC = b"RDCSTORE"
HEAD_NAME = b"store"
_HEAD_BYTES = 68
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def head_of(directory: int) -> bytes | None:
    """Return the head of the store that is open as `directory`, whatever else it says; None for no store."""
    try:
        fd = os.open(HEAD_NAME, _READ, dir_fd=directory)
    except OSError:
        return None
    try:
        data = os.read(fd, _HEAD_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)
    return data if data.startswith(MAGIC) else None


def head_at(directory: int, entry: bytes) -> bytes | None:
    """Return the head of the store that is the entry of an open directory, or, for b"", that directory; None
    for no store, or a symlink."""
    return _head_at(entry, os.O_NOFOLLOW, directory) if entry else head_of(directory)


def _head_at(path: bytes, flags: int = 0, directory: int | None = None) -> bytes | None:
    try:
        fd = os.open(path, _DIRECTORY | flags, dir_fd=directory)
    except OSError:
        return None
    try:
        return head_of(fd)
    finally:
        os.close(fd)


def levels_to_store(directory: int) -> int | None:
    """Return how many directories above the open `directory` a store is: 0 if it is one itself, None for no
    store."""
    at, levels = os.dup(directory), 0
    try:
        while head_of(at) is None:
            here = os.fstat(at)
            above = os.open(b"..", _DIRECTORY, dir_fd=at)
            os.close(at)
            at = above
            if os.path.samestat(here, os.fstat(at)):
                return None
            levels += 1
    except OSError:
        return None
    finally:
        os.close(at)
    return levels


def store_above(path: bytes) -> bytes | None:
    """Return the path of the store that `path` is or lies in, whether it exists or not; None for none."""
    try:
        at = os.path.realpath(path)
    except OSError:
        return None  # a relative path, and the working directory is gone
    while True:
        # The directory above decides about a path that does not exist yet, or is no directory.
        if _head_at(at) is not None:
            return at
        above = os.path.dirname(at)
        if above == at:
            return None
        at = above


def check_local(source: bytes, destination: bytes) -> None:
    """Raise UsageError if a sync of these local paths would change a store, unless SRC is the same store."""
    name = (
        b"" if source.endswith((b"/", b"/.", b"/..")) or source in (b".", b"..") else os.path.basename(source)
    )
    target = os.path.join(destination, name) if name and os.path.isdir(source) else destination
    store = store_above(target)
    if store is None:
        return
    is_store = store == os.path.realpath(target)
    if not (is_store and _head_at(source) == _head_at(store)):
        raise _refusal(target, is_store=is_store)


def comes_last(path: bytes, store: bytes = b"") -> bool:
    """Return whether an entry of the store at the path `store` is one that lists: it is of use once all packs
    are there."""
    return not (path + b"/").startswith(store + b"/packs/" if store else b"packs/")


def check_opened(
    directory: int, entry: bytes, shown: bytes, options: SyncOptions, source: bytes | None
) -> None:
    """Raise UsageError if a sync into the open `directory` would change a store, or copy one in part.

    `entry`: the one entry of it that the sync is about, b"" for all. `source`: the head of the store that SRC
    is, with a slash at its end or without; None: it is none, or does not say so.
    """
    if source is not None:
        _check_copy(shown, options)
    levels = levels_to_store(directory)
    # A SRC without a slash would become an entry inside the store, not a copy of it.
    there = None if levels is not None and entry else head_at(directory, entry)
    if levels is None and there is None:
        return
    is_store = levels in (None, 0)
    if not (is_store and there is not None and there == source):
        raise _refusal(shown, is_store=is_store)


def check_no_store(directory: int, shown: bytes) -> None:
    """Raise UsageError if the open `directory` is a store or lies in one."""
    levels = levels_to_store(directory)
    if levels is not None:
        what = "is a store" if levels == 0 else "lies in a store"
        raise UsageError(
            f"{printable(shown)} {what}: a two-way sync would change or delete its packs; name another"
            " directory, add a snapshot with rdc store put, or copy the whole store with rdc sync"
        )


def _check_copy(shown: bytes, options: SyncOptions) -> None:
    """Raise UsageError for options with which a copy would list snapshots without all of their packs."""
    partial = (
        ("filter rules", bool(options.rules)),
        ("an option that skips files", options.narrows),
        ("an option that writes into files", options.overwrites),
        ("an alternate directory", options.alternates is not None),
    )
    for what, given in partial:
        if given:
            raise UsageError(
                f"{printable(shown)}: SRC is a store, and with {what} a copy of it may not be whole; leave"
                " that out"
            )


def _refusal(destination: bytes, *, is_store: bool) -> UsageError:
    what = "is a store" if is_store else "lies in a store"
    return UsageError(
        f"{printable(destination)} {what}, and SRC is not a copy of it: a sync would change or delete its"
        " packs; name another DST, or add a snapshot with rdc store put"
    )
