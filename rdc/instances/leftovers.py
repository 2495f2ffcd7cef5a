"""What an interrupted run left: displaced files, which go once it is certain that nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rdc.errors import FileError, printable
from rdc.files.displaced import is_displaced, is_displaced_of, is_unchanged
from rdc.files.hard_link import sync_directory
from rdc.files.held import HeldFile, difference, same_bytes
from rdc.files.path import join
from rdc.files.swap import put_back
from rdc.files.sweep import sweep
from rdc.files.syscalls import rename_exchange
from rdc.instances.tree import is_below
from rdc.model.entries import Kind, strings
from rdc.model.instances import Action, Instance
from rdc.tree.filters import FilterList
from rdc.tree.walk import PackedWalk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.instances.tally import Tally
    from rdc.instances.tree import Tree
    from rdc.progress import Event

__all__ = ["clear_leftovers"]


def clear_leftovers(tree: Tree, tally: Tally) -> None:
    """Find and, where the tally's options say `apply`, clear what lies about below one tree.

    A displaced file goes when it is as it was when its name became a link, or holds what the file of that
    name holds. It goes back when it was written to since and the other was not. A spare name of a file that
    has others goes too. Anything else stays and is named. Temporaries, which are copies, are swept.
    """
    stale: list[tuple[bytes, list[bytes]]] = []
    found = list(_leftovers(tree.root, lambda directory, names: stale.append((directory, names))))
    if tally.options.apply:
        for directory, names in stale:
            sweep(tree.root, directory, names)
    for directory, name, targets in found:
        path = join(directory, name)
        if any(is_below(tree.real_path(path), top) for top in tally.options.keep):
            continue
        try:
            instance = _clear(tree.root, directory, name, targets, apply=tally.options.apply)
        except FileError as error:
            tally.problem(error)
            continue
        if instance is None:
            shown = tree.root.shown(path)
            tally.skip(
                shown,
                f"{printable(shown)}: left by an interrupted run, and not what the file beside it holds;"
                " look at both and remove one",
            )
        else:
            tally.done(instance, files=0)


def _leftovers(
    root: Root, on_temporaries: Callable[[bytes, list[bytes]], None]
) -> Iterator[tuple[bytes, bytes, list[bytes]]]:
    """Directory, name there, and the names that it may have had."""
    for directory, listing in PackedWalk(root, FilterList(()), _silent, on_temporaries=on_temporaries):
        # A million names without one of ours cost one search.
        if b".rdc-" not in listing.names:
            continue
        names = strings(listing.names)
        files = [names[row] for row in listing.rows_of(Kind.FILE)]
        for name in files:
            if is_displaced(name):
                yield directory, name, [other for other in files if is_displaced_of(name, other)]


def _silent(event: Event, /) -> None:
    """The search for duplicates walks the same directories, and tells."""


def _clear(
    root: Root, directory: bytes, name: bytes, targets: Sequence[bytes], *, apply: bool
) -> Instance | None:
    path = join(directory, name)
    with HeldFile(root, path) as old:
        for target in targets:
            with HeldFile(root, join(directory, target)) as now:
                action = _decide(name, old, now)
                if action is None:
                    continue
                if apply:
                    with _named(root, path):
                        _carry_out(root, directory, name, target, old, now, action)
                freed = old.allocated if action is Action.CLEAR and old.links == 1 else 0
                return Instance(action, root.shown(path), root.shown(join(directory, target)), 0, freed, 0)
        if old.links < 2:
            return None
        # A spare name of a file that has others: nothing is lost with it.
        if apply:
            with _named(root, path):
                place = root.directory(directory, fresh=True)
                # No lease keeps names: the others may have gone since it was opened.
                if os.fstat(old.fileno()).st_nlink < 2:
                    return None
                os.unlink(name, dir_fd=place.fd)
        return Instance(Action.CLEAR, root.shown(path), root.shown(path), 0, 0, 0)


def _decide(name: bytes, old: HeldFile, now: HeldFile) -> Action | None:
    """What to do with a displaced file, given the one that has a name it may have had."""
    if is_unchanged(name, old.identity.size, old.metadata):
        # The name is a link as journalled: what its file has become is what whoever wrote there wanted.
        return Action.CLEAR
    if difference(old, now) is None and same_bytes(old, now):
        return Action.CLEAR
    # Whoever removes `now` must leave it another name.
    if is_unchanged(name, now.identity.size, now.metadata) and now.links > 1:
        return Action.RESTORE
    return None


@contextmanager
def _named(root: Root, path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise root.failure(error, path, "clear what an interrupted run left") from error


def _carry_out(
    root: Root, directory: bytes, name: bytes, target: bytes, old: HeldFile, now: HeldFile, action: Action
) -> None:
    """Raises OSError, FileChangedError."""
    place = root.directory(directory, fresh=True)
    old.check()
    now.check()
    if action is Action.RESTORE:
        rename_exchange(name, target, place.fd)
        if now.is_at(name, place.fd):
            os.unlink(name, dir_fd=place.fd)
        else:
            put_back(name, target, place.fd, os.fstat(old.fileno()))
        return
    # What has the name must be durable in its place before the other goes.
    os.fsync(now.fileno())
    sync_directory(place)
    # That takes as long as a disk does: somebody may have asked to write by now.
    old.check()
    now.check()
    if old.is_at(name, place.fd) and now.is_at(target, place.fd):
        os.unlink(name, dir_fd=place.fd)
