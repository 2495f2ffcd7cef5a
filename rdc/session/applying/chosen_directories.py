"""Directories of which only some entries take part: what is extraneous in them, whose metadata they get."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.plan.compare import Change
from rdc.progress import Problem
from rdc.session.applying.borrowed_permissions import borrow_permissions
from rdc.session.applying.writing_code import writing_code
from rdc.session.trees.announced_entries import check_included, check_selected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing
    from rdc.plan.compare import Decision
    from rdc.session.applying.applying_context import ApplyingContext

__all__ = ["ChosenDirectories"]


class ChosenDirectories:
    """Knows which directories hold the entries that the user named, and keeps the rest of them as it is."""

    def __init__(self, context: ApplyingContext) -> None:
        self._root = context.at.root
        self._only = context.at.start.only
        self._rules = context.at.filters.announced
        self._selection = context.at.selection
        self._implied = context.at.options.implied_dirs
        self._dry = context.at.options.dry_run
        self._events = context.at.events

    def check(self, path: bytes, listing: Listing) -> None:
        """Raises ProtocolError if the source announces entries that nobody selected or that rules exclude."""
        if self._selection is not None:
            check_selected(path, listing.names, self._selection)
        if self._rules:
            # Rules are about the source's names. A single file may have another name here.
            renamed = self._only and not path and len(listing) == 1
            announced = listing.named((self._only,)) if renamed else listing
            check_included(path, announced, self._rules, self._selection)

    def has_others(self, path: bytes) -> bool:
        """True if entries of the directory at `path` that the source does not announce are none of its
        business, so that they are not extraneous."""
        if self._selection is not None:
            return self._selection.names(path) is not None
        return bool(self._only) and not path

    def keeps_own(self, path: bytes) -> bool:
        """True if the directory at `path` keeps its metadata: with --no-implied-dirs, those above selected
        paths do."""
        if self._implied or self._selection is None:
            return False
        return self._selection.is_above(path)

    def borrow(self, path: bytes) -> bool:
        """Lets this side work in the directory at `path`, unless that keeps its own permissions. Returns
        whether they changed."""
        return not (self._dry or self.keeps_own(path)) and borrow_permissions(self._root, path)

    def make_plain(self, path: bytes, decision: Decision) -> bool:
        """Makes a directory that keeps its own metadata, as any program makes one; False on failure."""
        try:
            if decision.change is Change.REPLACE:
                raise self._root.refused(
                    path,
                    "make the directory",
                    expected="nothing or a directory, as --no-implied-dirs keeps what is there",
                    found="another entry",
                    advice="move it away, then run again",
                )
            if not self._dry:
                self._root.make_directory(path, 0o777)
        except FileError as error:
            self._events.report(Problem(writing_code(error), path, str(error)))
            return False
        return True
