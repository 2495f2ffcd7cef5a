"""The comparison of whole trees, by listings or by manifests."""

from __future__ import annotations

from rdc.errors import ProtocolError, printable
from rdc.files.base.syscalls import process_umask
from rdc.lean.records import Record, replace
from rdc.lean.typed import Protocol
from rdc.model.entries import EMPTY_LISTING, Kind, Listing
from rdc.protocol.messages.field_types import join_listing
from rdc.protocol.wire.fields import increasing
from rdc.session.destination.directory_changes import AnnouncedDirectory
from rdc.session.destination.own_tree import Discovered, OwnTree, discover
from rdc.session.trees.sites import check_announced, with_made_modes
from rdc.tree.manifest import Manifest, covering_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from rdc.model.preserved import Preserved
    from rdc.protocol.messages import LikelyRequest, ListingPart, Start
    from rdc.protocol.messages import Manifest as ManifestMessage
    from rdc.session.runtime.commands import Conversation, EventRelay, LineMeter
    from rdc.session.trees.destination_options import DirectoryLinks
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable, TreeIdentities


# What comparisons by manifest and by listing ask of those who act on a directory: a sync, or a check.


class ComparedDirectories(Protocol):
    """Takes each directory once, after its parent announced it."""

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        """Return the directory at `path`, if it was announced and has not been compared yet."""

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        """Announce the directory at `path`: `compare` may follow."""

    def mark_unchanged(self, path: bytes) -> bool:
        """Like `compare` for a directory with equal listings; False if `compare` has to follow."""

    def compare(self, path: bytes, first: int, listing: Listing, existing: Listing | None) -> None:
        """Compare the directory at `path`, whose entries start at manifest row `first`. `existing` None: the
        destination's could not be read."""

    def restore_permissions_later(self, path: bytes) -> None:
        """Note that the owner borrowed permissions in the announced directory at `path`."""


class BeyondMounts(Protocol):
    """Learns of directories whose entries at the source are unknown."""

    def note_difference(self) -> None:
        """Note that the destination has entries below a mount point that the source did not enter."""


class ListedTree(Protocol):
    """A tree of which single directories are listed."""

    def listing(self, path: bytes, on_borrowed: Callable[[bytes], None], /) -> Listing | None:
        """Return the listing of one directory; None if it cannot be read. `on_borrowed`: as in OwnTree."""


class ListingIntake:
    """Takes listings. Each directory comes once, after the parent that announces it."""

    def __init__(
        self,
        wanted: Manifest,
        directories: ComparedDirectories,
        own: ListedTree,
        *,
        preserved: Preserved,
        only: bytes,
        name: bytes | None,
        attributes: WantedXattrs | None = None,
        owners: OwnerMapping | None = None,
        dirlinks: DirectoryLinks | None = None,
    ) -> None:
        """`wanted`: takes the entries. `preserved`: what both sides preserve. `only`: the one entry to sync,
        b"" for a whole directory. `name`: its name at the destination, if that differs. `attributes`: the
        announced extended attributes. `owners`: what owners become; None for the same numbers.
        `dirlinks`: takes links for directories; None: no links."""
        self._owners = owners
        self._dirlinks = dirlinks
        self._attributes = attributes
        self._preserved = preserved
        self._wanted = wanted
        self._directories = directories
        self._own = own
        self._only = only
        self._name = name
        self._parts: list[Listing] = []
        self._listed = 0
        """Number of complete directories."""

    def take(self, part: ListingPart) -> None:
        """Take one part. Raises ProtocolError for a directory that was not announced or is out of order."""
        if part.directory != self._listed or self._directories.announced(part.path) is None:
            raise ProtocolError(f"a listing of '{printable(part.path)}', which was not announced")
        self._parts.append(part.listing)
        if not part.last:
            return
        try:
            listing = self._preserved.listing(join_listing(self._parts))
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        listing = with_made_modes(listing, self._preserved)
        self._parts = []
        self._listed += 1
        path, first = part.path, len(self._wanted)
        if self._owners is not None:
            listing = self._owners.listing(listing)
        listing = self._renamed(path, listing)
        made = listing if self._attributes is None else self._attributes.guarded(first, listing)
        self._wanted.add(path, made.packed())
        existing = self._existing(path)
        if self._dirlinks is not None and existing is not None:
            existing = self._dirlinks.existing(path, listing, existing)
        self._directories.compare(path, first, listing, existing)

    def _existing(self, path: bytes) -> Listing | None:
        """Return the destination's listing of a directory; None if it cannot be read or is lost."""
        announced = self._directories.announced(path)
        if announced is not None and announced.new:
            return EMPTY_LISTING
        if announced is None or announced.lost:
            return None
        return self._own.listing(path, self._directories.restore_permissions_later)

    def end(self) -> None:
        """Note the end of the listing. Raises ProtocolError if a directory is incomplete."""
        if self._parts:
            raise ProtocolError("the listing ended inside a directory")

    def _renamed(self, path: bytes, listing: Listing) -> Listing:
        """Return `listing` with the destination's name for a single renamed entry."""
        if path or not self._only:
            return listing
        check_announced(listing.names, self._only)
        if self._name is None or not listing:
            return listing
        return listing.named((self._name,))


class ManifestComparison(Record):
    """The comparison of two trees by their manifests."""

    own: Manifest
    """The destination's, as walked."""
    own_tree: OwnTree
    wanted: Manifest
    """The source's; empty at first."""
    start: Start
    has_top: bool
    """The root directory itself takes part, with its metadata."""
    preserved: Preserved
    links: LinkTable | None
    xattrs: WantedXattrs | None
    events: EventRelay
    owners: OwnerMapping | None = None
    """The mapping of owners; None for the same numbers. If one changes, `own` has the source's until
    `compare`."""

    def learn(
        self,
        offered: ManifestMessage,
        secret: bytes,
        round_: int,
        *,
        top: bool,
        likely: Callable[[Manifest, Sequence[range]], LikelyRequest | None] | None = None,
        meter: LineMeter | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Conversation[Discovered]:
        """Fill `wanted` with the source's manifest; see `discover`."""
        return (
            yield from discover(
                self.own,
                offered.entries,
                self.wanted,
                secret,
                self.events,
                round_,
                preserved=self.preserved,
                top=top,
                likely=likely,
                meter=meter,
                meanwhile=meanwhile,
            )
        )

    def is_usable(self, offered: ManifestMessage) -> bool:
        """Return whether `wanted` is the offered manifest and the walk of the own tree is complete enough.

        Also hands over the links and extended attributes of the own tree, which equal the source's.
        """
        top = self.start.metadata if self.has_top else None
        root = covering_root(self.wanted.root(top, self.preserved), self.own_tree.further)
        if (len(self.wanted), root) != (offered.entries, offered.root):
            # A collision of short digests costs the listing, never a wrong tree.
            return False
        if any(not path or self.wanted.is_directory(path) for path in self.own_tree.unreadable):
            # Entries of unreadable directories take part, but the walk did not see what is below them.
            return False
        return self.own_tree.hand_over(self.own, self.wanted, self.links, self.xattrs)

    def compare(
        self,
        directories: ComparedDirectories,
        extraneous: BeyondMounts,
        mount_points: AbstractSet[bytes],
        round_: int,
    ) -> Conversation[None]:
        """Compare the directories in which the two manifests differ; see `compare_manifests`."""
        # The digest covered the modes as sent; from here on only what both sides preserve counts.
        self.wanted.keep_modes(self.preserved, process_umask())
        if self.owners is not None:
            self.owners.mapped(self.wanted)
            self.owners.restore(self.own)
        number = self.wanted.number(b"") if self.start.only else None
        if number is not None:
            check_announced(self.wanted.listing(number).names, self.start.only)
        yield from compare_manifests(
            self.wanted,
            self.own,
            self.own_tree.identities,
            directories,
            extraneous,
            self.events,
            round_,
            preserved=self.preserved,
            mount_points=mount_points,
            reread=lambda path: self.own_tree.listing(path, directories.restore_permissions_later),
        )
        if self.xattrs is not None:
            self.xattrs.guard(self.wanted)


def compare_manifests(
    wanted: Manifest,
    own: Manifest,
    identities: TreeIdentities | None,
    directories: ComparedDirectories,
    extraneous: BeyondMounts,
    events: EventRelay,
    round_: int,
    *,
    preserved: Preserved,
    mount_points: AbstractSet[bytes],
    reread: Callable[[bytes], Listing | None],
) -> Conversation[None]:
    """Compare the directories in which the two manifests differ, parents first.

    `identities`: of the rows of `own`. `mount_points`: directories that the source did not enter, so `wanted`
    does not list them. `reread`: lists a directory that may be in `own` under another form of its name, or
    reports why not.

    A hostile source may send any manifest that has the announced digest, so this checks everything it acts
    on.
    """
    # long because it runs once for each directory, where calls cost more than the work
    ours = {path: number for number, path in enumerate(own.directories)}
    ours_whole = wanted.taken_directories(own)
    for number, path in enumerate(wanted.directories):
        if wanted.number(path) != number:
            raise ProtocolError(f"two listings of '{printable(path)}'")
        mine = ours.pop(path, None)
        if path and ours_whole[number] and directories.mark_unchanged(path):
            # Most directories of most trees end here.
            continue
        if path and directories.announced(path) is None:
            if mine is not None and wanted.same(number, own, mine, preserved):
                continue
            directories.expect(path, _announced(wanted, path, own, preserved))
        listing = wanted.listing(number)
        if not increasing(listing.names):
            raise ProtocolError(f"names in '{printable(path)}' are not strictly increasing")
        existing = _existing(own, identities, mine, path, directories.announced(path), reread)
        directories.compare(path, wanted.firsts[number], listing, existing)
        yield from events.send_waiting(round_)
    for path, mine in ours.items():
        # Directories that have entries here and none at the source: emptied, or deleted.
        if path in mount_points:
            # The source did not enter it; its entries there are unknown.
            extraneous.note_difference()
            continue
        is_announced = directories.announced(path) is not None
        if is_announced or wanted.is_directory(path):
            # This also refuses a manifest that lists the directory and does not have it as an entry.
            directory = _announced(wanted, path, own, preserved)
            if not is_announced:
                directories.expect(path, directory)
            directories.compare(path, len(wanted), EMPTY_LISTING, _listing(own, identities, mine))
            yield from events.send_waiting(round_)


def _existing(
    own: Manifest,
    identities: TreeIdentities | None,
    mine: int | None,
    path: bytes,
    announced: AnnouncedDirectory | None,
    reread: Callable[[bytes], Listing | None],
) -> Listing | None:
    """Return the destination's listing of a directory, which is number `mine` of `own`."""
    if mine is not None:
        return _listing(own, identities, mine)
    if path.isascii() or announced is None or announced.new or announced.lost:
        return EMPTY_LISTING
    return reread(path)


def _listing(own: Manifest, identities: TreeIdentities | None, number: int) -> Listing:
    return own.listing(number) if identities is None else identities.listing(number)


def _announced(wanted: Manifest, path: bytes, own: Manifest, preserved: Preserved) -> AnnouncedDirectory:
    """Return a directory whose parent is equal on both sides: it exists and has the right metadata. If the
    two ends show one mtime differently, it keeps its own.

    Raises ProtocolError if `wanted` has no such directory.
    """
    row = wanted.row(path)
    entry = None if row is None else wanted.entry(row)
    if entry is None or entry.kind != Kind.DIRECTORY:
        raise ProtocolError(f"a listing of '{printable(path)}', which was not announced")
    metadata, mine = entry.metadata, None if preserved.keeps_all_times else own.row(path)
    if mine is not None:
        mtime = own.entry(mine).metadata.mtime_ns
        if preserved.same_time(metadata.mtime_ns, mtime):
            metadata = replace(metadata, mtime_ns=mtime)
    return AnnouncedDirectory(metadata, False, False, False)
