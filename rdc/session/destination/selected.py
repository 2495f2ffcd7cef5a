"""Comparisons that few runs need: of chosen directories, and of names in another Unicode form."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.plan.compare import Change, Decision
from rdc.progress import Problem
from rdc.session.destination.deletion import borrow_permissions, writing_code
from rdc.session.trees.sites import check_included, check_selected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing
    from rdc.session.destination.entry_changes import ApplyingContext


# Directories of which only some entries take part: what is extraneous in them, whose metadata they get.


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
        """Raise ProtocolError if the source announces entries that nobody selected or that rules exclude."""
        if self._selection is not None:
            check_selected(path, listing.names, self._selection)
        if self._rules:
            # Rules are about the source's names. A single file may have another name here.
            renamed = self._only and not path and len(listing) == 1
            announced = listing.named((self._only,)) if renamed else listing
            check_included(path, announced, self._rules, self._selection)

    def has_others(self, path: bytes) -> bool:
        """Return whether entries of the directory at `path` that the source does not announce lie outside the
        selection, so that they are not extraneous."""
        if self._selection is not None:
            return self._selection.names(path) is not None
        return bool(self._only) and not path

    def keeps_own(self, path: bytes) -> bool:
        """Return whether the directory at `path` keeps its metadata: with --no-implied-dirs, those above
        selected paths do."""
        if self._implied or self._selection is None:
            return False
        return self._selection.is_above(path)

    def borrow(self, path: bytes) -> bool:
        """Let this side work in the directory at `path`, unless that keeps its own permissions. Returns
        whether they changed."""
        return not (self._dry or self.keeps_own(path)) and borrow_permissions(self._root, path)

    def make_plain(self, path: bytes, decision: Decision) -> bool:
        """Make a directory that keeps its own metadata, as any program makes one; False on failure."""
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


# Recognises entries that the destination's file system keeps under another form of their name, as HFS+ does.
#
# Such a file system decomposes accented letters, and finds the entry by either form. So a listing of it has
# other names than the source gave.


def as_named_by_source(
    root: Root, path: bytes, wanted: Iterable[bytes], own: Sequence[bytes], *, dry_run: bool
) -> Sequence[bytes]:
    """Return `own`, the names in the directory at `path`, with the source's name of each entry that this file
    system renamed. `wanted`: the source's names.

    A name is exchanged only if a trial shows that the file system itself keeps the source's name so.
    Otherwise the entry is somebody else's, and the two names clash. A dry run leaves out the trial, because
    it writes nothing.
    """
    pairs = _equivalent(set(wanted).difference(own), set(own).difference(wanted))
    same = {one: other for one, other in pairs.items() if _is_one(root, path, one, other)}
    if same and not dry_run:
        from rdc.files.names.entry_names import names_as_listed

        listed = names_as_listed(root, path, tuple(same))
        same = {one: other for one, other in same.items() if other in listed and one not in listed}
    if not same:
        return own
    given = {other: one for one, other in same.items()}
    return tuple(given.get(name, name) for name in own)


def _equivalent(wanted: Iterable[bytes], own: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return the names of `wanted` that Unicode calls equivalent to one of `own`, with that one."""
    own_names = _by_decomposed(own)
    pairs = ((names, own_names.get(decomposed, ())) for decomposed, names in _by_decomposed(wanted).items())
    return {one[0]: other[0] for one, other in pairs if len(one) == len(other) == 1}


def _by_decomposed(names: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Return the names by their decomposed form, without those in ASCII, which have one form only."""
    from unicodedata import normalize

    found: dict[str, list[bytes]] = {}
    for name in names:
        if not name.isascii():
            found.setdefault(normalize("NFD", name.decode("utf-8", "surrogateescape")), []).append(name)
    return found


def _is_one(root: Root, path: bytes, name: bytes, other: bytes) -> bool:
    from rdc.files.names.entry_names import inode_at

    inode = inode_at(root, path, name)
    return inode is not None and inode == inode_at(root, path, other)
