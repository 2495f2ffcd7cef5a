"""Where the destination's tree goes, and what can be said of that place before the session begins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.confined import Root
from rdc.model.entries import Kind

if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start

__all__ = ["Place", "is_bare", "keeps_owner", "open_destination", "wants_listing"]


def keeps_owner(options: SyncOptions) -> bool:
    """Whether this side, as the destination, sets uid and gid."""
    return os.geteuid() == 0 if options.owner is None else options.owner


def is_bare(path: bytes) -> bool:
    """Nothing is at `path`, or an empty directory: everything the source has will be new."""
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False


def wants_listing(path: bytes, options: SyncOptions) -> bool:
    """Whether to ask for the source's whole listing at once: all of it will be new, or all files are to be
    compared, and manifests do not tell contents."""
    return options.checksum or is_bare(path)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tree goes."""

    root: Root
    name: bytes | None
    """What a single entry is to be called there; None: as at the source."""
    new: bool
    """The directory is made by this run, so nothing is in it; in a dry run `root` is the one above it."""


def open_destination(path: bytes, start: Start, *, dry_run: bool) -> Place:
    """Where `path`, as its user wrote it, puts the tree that `start` announces (rsync's rules).

    A directory is made when its parent exists. A single file goes INTO a directory, or to the path itself
    when nothing or no directory is there and no slash follows it. Raises RdcError with rsync's exit code 11
    when the destination cannot be used at all.
    """
    try:
        return _open(path, start, dry_run=dry_run)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error


def _open(path: bytes, start: Start, *, dry_run: bool) -> Place:
    single_file = start.only and start.entry is not Kind.DIRECTORY
    if single_file and not path.endswith(b"/") and not os.path.isdir(path):
        parent = os.path.dirname(path) or b"."
        return Place(Root.open(parent, writable=not dry_run), os.path.basename(path), False)
    new = not os.path.lexists(path)
    if dry_run and new:
        return Place(Root.open(os.path.dirname(path.rstrip(b"/")) or b"."), None, True)
    return Place(Root.open(path, create=not dry_run, writable=not dry_run), None, new)
