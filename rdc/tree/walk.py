"""Walks a confined tree, a directory at a time, in the order both sides of a sync agree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, FileError, printable
from rdc.model.entries import Kind
from rdc.progress import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.confined import Root
    from rdc.model.entries import Listing
    from rdc.progress import Reporter
    from rdc.tree.filters import FilterList

__all__ = ["ListedDirectory", "Walk", "join"]


def join(directory: bytes, name: bytes) -> bytes:
    """Relative path of `name` in `directory`; b'' is the root."""
    return directory + b"/" + name if directory else name


@dataclass(frozen=True, slots=True)
class ListedDirectory:
    """One directory of a walk: its relative path and the entries that the filters leave."""

    path: bytes
    listing: Listing


class Walk:
    """Pre-order: a directory's listing, then those of its subdirectories by name. Never follows links.

    An unreadable directory is reported, counted in `read_errors` and passed over; a directory that vanished
    in between is reported with exit code 24. Special files are named once and left in the listing, so that
    the other side does not take their counterparts for extra.
    """

    def __init__(
        self, root: Root, filters: FilterList, reporter: Reporter, only: bytes | None = None
    ) -> None:
        self._root = root
        self._filters = filters
        self._report = reporter
        self._only = only
        self.read_errors = 0

    def __iter__(self) -> Iterator[ListedDirectory]:
        todo = [b""]
        while todo:
            path = todo.pop()
            try:
                listing = self._root.list(path)
            except FileError as error:
                if path == b"":
                    raise
                self.read_errors += 1
                self._report(Problem(error.code, path, str(error)))
                continue
            listing = self._selected(path, listing)
            yield ListedDirectory(path, listing)
            children = [
                join(path, name)
                for name, kind in zip(listing.names, listing.kinds, strict=True)
                if kind == Kind.DIRECTORY
            ]
            todo.extend(reversed(children))

    def _selected(self, path: bytes, listing: Listing) -> Listing:
        if path == b"" and self._only is not None:
            listing = listing.rows([i for i, name in enumerate(listing.names) if name == self._only])
        excluded = self._filters.excluded
        kept = []
        for row, (name, kind) in enumerate(zip(listing.names, listing.kinds, strict=True)):
            if self._filters and excluded(join(path, name), kind == Kind.DIRECTORY):
                continue
            kept.append(row)
            if kind == Kind.SPECIAL:
                whole = join(path, name)
                text = f"{printable(whole)}: skipped, neither file, directory nor symlink"
                self._report(Problem(ExitCode.OK, whole, text))
        return listing if len(kept) == len(listing) else listing.rows(kept)
