"""This end's conversation of a check. The far end is the source of the session, and answers as in a sync."""

from __future__ import annotations

import os
from array import array

from rdc.checking.content_comparison import ContentComparison, chosen_files
from rdc.checking.records import Aspect, CheckOptions, EntryDiffers
from rdc.checking.tree_comparison import TreeComparison, compare_attributes, compare_links
from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.limits import FURTHER_BYTES, SMALL_MANIFEST
from rdc.model.entries import EMPTY_LISTING, Kind
from rdc.progress import Problem
from rdc.protocol.messages import (
    Describe,
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    MountPoints,
    TopTier,
)
from rdc.protocol.messages import Manifest as ManifestMessage
from rdc.session.destination.comparison import ListingIntake, ManifestComparison
from rdc.session.destination.own_tree import OwnTree, next_message, receive_offer
from rdc.session.runtime.commands import Conversation, Flush, Send, TransferProgress
from rdc.session.transfer.destination import Destination, PartialFiles
from rdc.session.trees.destination_root import DestinationRoot, unkept_attributes
from rdc.session.trees.sites import ANYWHERE
from rdc.tree.hard_links import LinkTable
from rdc.tree.manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.entries import Listing
    from rdc.session.trees.source_tree import MountBoundary
    from rdc.session.trees.wanted_xattrs import WantedXattrs


CLOSED_DIRECTORIES = 1 << 16
"""Most unreadable directories of the far end that are remembered. Entries of others may be reported as only
here; the run ends with 23 even so."""


def near_tree(path: bytes, name: bytes | None, only: bytes, entry: Kind) -> DestinationRoot:
    """Open this end's tree. Raises FileError if nothing is there. Makes nothing.

    `name`: this end is SRC, and `name` is its one entry, b"" for all. None: this end is DST, where rsync's
    rules say what a path means. `only`, `entry`: the one entry that the far end compares, b"" for all, and
    its kind.
    """
    if b"/@" in b"/" + path and (snapshot := _near_snapshot(path, name, only)) is not None:
        return snapshot
    if name is None and only:
        single = entry is not Kind.DIRECTORY and not path.endswith(b"/") and not os.path.isdir(path)
        name = os.path.basename(path) if single else only
        path = os.path.dirname(path) or b"." if single else path
    elif name:
        path = os.path.dirname(path) or b"."
    root = Root.open(path)
    if name and root.kind(name) is None:
        root.close()
        advice = "check the path"
        if name == only and entry is Kind.DIRECTORY:
            below = printable(path.rstrip(b"/")) + "/"
            advice = f"for the contents of both, end SRC with a slash: rdc check {printable(name)}/ {below}"
        raise FileError(name, f"{printable(os.path.join(path, name))}: nothing there to compare; {advice}")
    return DestinationRoot(root, name if name and name != only else None, False)


def _near_snapshot(path: bytes, name: bytes | None, only: bytes) -> DestinationRoot | None:
    """Return this end's tree if `path` leads into a snapshot of a store; None for another path."""
    from rdc.store.snapshot_root import open_snapshot

    found = open_snapshot(path, ANYWHERE.has_directory, ANYWHERE.open)
    if found is None:
        return None
    root, single = found
    name = single or name or only
    if name and root.kind(name) is None:
        root.release()
        shown = printable(os.path.join(path, name))
        raise FileError(name, f"{shown}: nothing there to compare; check the path")
    return DestinationRoot(root, name if name and name != only else None, False)


def _not_compared(path: bytes) -> str:
    return f"{printable(path)}: not compared, because it has the name of a temporary file of rdc; rename it"


class ClosedDirectories:
    """Directories whose entries one end does not know: unreadable ones, and mount points with -x."""

    def __init__(self) -> None:
        self._far: set[bytes] = set()
        """Paths with problems at the far end."""
        self.near: set[bytes] = set()
        self.mount_points: set[bytes] = set()

    def note_far(self, problem: Problem) -> None:
        """Take a problem that the far end reported."""
        if problem.code is not ExitCode.OK and len(self._far) < CLOSED_DIRECTORIES:
            self._far.add(problem.path_bytes)

    def note_mount_points(self, paths: Sequence[bytes]) -> None:
        self.mount_points.update(paths)

    def has(self, path: bytes, listed: bool) -> bool:
        """Return whether the directory cannot be compared. `listed`: the far end sent entries of it."""
        return path in self.near or path in self.mount_points or (not listed and path in self._far)


class Counts(Record, frozen=False):
    """The entries, files and bytes that were compared."""

    entries: int = 0
    files: int = 0
    total_bytes: int = 0
    files_compared: int = 0
    bytes_compared: int = 0
    different: int = 0
    missing: int = 0
    extra: int = 0


class _WalkedTree:
    """This end's tree as it was walked."""

    def __init__(self, own: Manifest, closed: ClosedDirectories) -> None:
        self._own = own
        self._closed = closed

    def listing(self, path: bytes, _: Callable[[bytes], None], /) -> Listing | None:
        if path in self._closed.near:
            return None
        number = self._own.number(path)
        return EMPTY_LISTING if number is None else self._own.listing(number)


class Check:
    """One comparison. Before `run`, the caller sent Describe(False, ...) to the source."""

    def __init__(
        self,
        context: Destination,
        options: CheckOptions,
        closed: ClosedDirectories,
        on_difference: Callable[[EntryDiffers], None],
        *,
        far_is_source: bool,
        boundary: MountBoundary | None,
    ) -> None:
        """Take `closed`, which records the far end's problems from now on, and `boundary`: this end's, with
        -x."""
        self._context = context
        self._options = options
        self._closed = closed
        self._on_difference = on_difference
        self._far_is_source = far_is_source
        self._boundary = boundary
        self._root = context.destination_root.root
        self._events = context.events
        self._preserved = context.agreed
        name = context.destination_root.name
        self._name = name
        self._near_start = context.start if name is None else replace(context.start, only=name)
        self._own_links = LinkTable() if options.session.hard_links else None
        self._links = LinkTable() if options.session.hard_links else None
        self._xattrs: WantedXattrs | None = None
        if self._preserved.attributes:
            from rdc.session.trees.wanted_xattrs import WantedXattrs

            self._xattrs = WantedXattrs(self._preserved.attributes)
        self._reserved = PartialFiles(self._root)
        self._own_tree = OwnTree(
            context.at(self._near_start),
            self._reserved,
            links=self._own_links,
            enter=None if boundary is None else boundary.enters,
        )
        self._wanted = Manifest()
        self.counts = Counts()

    def run(self, round_: int) -> Conversation[int]:
        """Compare the trees and report each entry that differs. Returns the round to go on with."""
        unkept = unkept_attributes(self._options.session, self._preserved)
        if unkept is not None:
            self._events.report(Problem(ExitCode.OK, b"", unkept.replace("synced", "compared")))
        yield Flush()
        own = self._own_tree.walk()
        self._note_closed()
        tree = self._tree(own)
        offer = yield from receive_offer(self._events, self._preserved, self._closed.note_mount_points)
        offered, round_ = offer.manifest, offer.round
        own_root = self._own_tree.digest(own, self._preserved)
        if self._name is None and own_root == offered.root and len(own) == offered.entries:
            self._wanted = own
            return (yield from self._compare_contents(self._tree(own), own, round_))
        round_, by_manifest = yield from self._compare_trees(tree, own, offered, round_, top=offer.first)
        tree.finish()
        if not by_manifest:
            # A manifest was usable only if hard links and attributes are equal.
            if self._links is not None and self._own_links is not None:
                compare_links(tree, self._wanted, self._links, own, self._own_links)
            if self._xattrs is not None:
                whole = not self._near_start.only
                compare_attributes(tree, self._root, self._wanted, self._xattrs, self._events, top=whole)
        return (yield from self._compare_contents(tree, own, round_))

    def _tree(self, own: Manifest) -> TreeComparison:
        return TreeComparison(
            self._root,
            self._near_start,
            self._wanted,
            own,
            self._options,
            self._preserved,
            far_is_source=self._far_is_source,
            is_closed=self._closed.has,
        )

    def _note_closed(self) -> None:
        """Report what of this end is not compared: unreadable directories, reserved names, mount points."""
        for path in self._reserved.foreign(self._context.filters.listed, only=self._near_start.only or None):
            self._events.report(Problem(ExitCode.PARTIAL, path, _not_compared(path)))
        for path in sorted(self._own_tree.unreadable):
            self._closed.near.add(path)
            shown = printable(self._root.shown(path))
            why = self._own_tree.reasons.get(path)
            text = f"{shown}: cannot be read, so nothing in it is compared" + (f": {why}" if why else "")
            self._events.report(Problem(ExitCode.PARTIAL, path, text))
        if self._boundary is not None:
            self._closed.note_mount_points(self._boundary.beyond)

    def _compare_trees(
        self, tree: TreeComparison, own: Manifest, offered: ManifestMessage, round_: int, *, top: bool
    ) -> Conversation[tuple[int, bool]]:
        """Compare all entries but for contents. Returns the round, and whether it was done by manifest."""
        further = self._own_tree.further[:FURTHER_BYTES]
        if self._name is None and offered.entries > SMALL_MANIFEST and offered.further == further:
            comparison = ManifestComparison(
                own,
                self._own_tree,
                self._wanted,
                self._near_start,
                not self._near_start.only,
                self._preserved,
                self._links,
                None,
                self._events,
            )
            round_ = (yield from comparison.learn(offered, self._context.secret, round_, top=top)).round
            if comparison.is_usable(offered):
                yield from comparison.compare(tree, tree, self._closed.mount_points, round_)
                return round_, True
            self._wanted.clear()
            if self._links is not None:
                self._links.clear()
        yield Send(Describe(True, self._context.described), round_)
        return (yield from self._receive_listing(tree, own, round_)), False

    def _receive_listing(self, tree: TreeComparison, own: Manifest, round_: int) -> Conversation[int]:
        intake = ListingIntake(
            self._wanted,
            tree,
            _WalkedTree(own, self._closed),
            preserved=self._preserved,
            only=self._context.start.only,
            name=self._name,
        )
        while True:
            received = yield from next_message(self._events)
            round_, message = max(round_, received.round + 1), received.message
            if isinstance(message, ListingPart):
                intake.take(message)
            elif isinstance(message, HardLinks) and self._links is not None:
                self._links.extend(message.files, message.firsts)
            elif isinstance(message, EntryAttributes) and self._xattrs is not None:
                self._xattrs.extend(message)
            elif isinstance(message, MountPoints):
                self._closed.note_mount_points(message.paths)
            elif isinstance(message, ListingEnd):
                intake.end()
                return round_
            elif not isinstance(message, (TopTier, ManifestMessage)):
                raise ProtocolError(f"expected a listing, found {type(message).__name__}")

    # Contents, and what is reported

    def _compare_contents(self, tree: TreeComparison, own: Manifest, round_: int) -> Conversation[int]:
        wanted, counts = self._wanted, self.counts
        near_rows = tree.near_rows
        counts.entries = len(wanted) + len(near_rows)
        files = array("I", filter(tree.has_content, range(len(wanted))))
        counts.files, counts.total_bytes = len(files), sum(wanted.sizes_of(files)) if files else 0
        chosen = chosen_files(wanted, files, self._options.sample)
        pending = set(chosen) if self._options.sample is not None else None
        self._report_top(tree)
        for row, aspects in tree.noted():
            if not tree.has_content(row) or (pending is not None and row not in pending):
                self._report(wanted, row, aspects)
        for row in near_rows:
            self._report(own, row, tree.only_near)
        progress = TransferProgress(self._events)
        progress.compare_bytes += sum(wanted.sizes_of(chosen)) if chosen else 0
        progress.plan_known()

        def compared(row: int, equal: bool | None) -> None:
            if equal is not None:
                counts.files_compared += 1
                counts.bytes_compared += wanted.sizes_of((row,))[0]
            aspects = tree.aspects(row) | (Aspect.CONTENT if equal is False else Aspect.NONE)
            if aspects:
                self._report(wanted, row, aspects)

        contents = ContentComparison(
            self._root,
            wanted,
            self._context.signer,
            self._context.secret,
            self._events,
            progress,
            compared,
            keep=self._options.trust_catalog,
        )
        return (yield from contents.run(chosen, round_))

    def _report_top(self, tree: TreeComparison) -> None:
        if tree.top:
            self.counts.different += 1
            self._on_difference(EntryDiffers(b"./", tree.top))

    def _report(self, manifest: Manifest, row: int, aspects: Aspect) -> None:
        counts = self.counts
        counts.different += 1
        counts.missing += bool(aspects & Aspect.MISSING)
        counts.extra += bool(aspects & Aspect.EXTRA)
        (path,) = manifest.paths((row,))
        slash = b"/" if manifest.kinds[row] == Kind.DIRECTORY else b""
        self._on_difference(EntryDiffers(path + slash, aspects))
