"""Description of the source's tree: a whole listing, or a manifest that is sent where the trees differ."""

from __future__ import annotations

import os
from collections import OrderedDict, deque

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.lean.records import Record, replace
from rdc.limits import (
    ASKED_FILE_BYTES,
    ASKED_FREELY_BYTES,
    ASKED_NODE_BYTES,
    ATTRIBUTE_MESSAGE_BYTES,
    BUNDLE_FILES,
    BUNDLE_FILES_LEAST,
    BUNDLED_FILE_BYTES,
    BUNDLES_IN_FLIGHT,
    COMPARED_TIMES,
    FILES_PER_MESSAGE,
    FURTHER_BYTES,
    ITEMS_BYTES,
    ITEMS_PER_MESSAGE,
    LIKELY_BLOCKS_BYTES,
    LIKELY_FILES,
    MOUNT_POINTS,
    OFFERED_ROWS,
    OWNER_NAME_BYTES,
    OWNERS,
    OWNERS_PER_MESSAGE,
    PACKED_CONTEXT_BYTES,
    ROW_REQUESTS,
    ROWS_FREELY,
    ROWS_PER_PART,
    ROWS_TEXT_BYTES,
    SENT_TIMES,
    SMALL_MANIFEST,
    TIER_NODES,
    TIER_NODES_WHOLE,
    TOP_NODES,
)
from rdc.model.entries import NODES, Kind, ListedDirectories, PackedListing, little_endian_integers
from rdc.model.preserved import END_NS, AttributeKinds, Preserved
from rdc.progress import Event, Problem
from rdc.protocol import messages
from rdc.protocol.messages import MountPoints, Owners, RowsPart
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, AboutFiles, Rows, Segment, slice_listing
from rdc.session.runtime.commands import Conversation, EventRelay, Flush, Send
from rdc.tree.manifest import GROUPS, Fold, Group, Manifest, Tier, covering_root, further_digest
from rdc.tree.walk import Walk, lasting_directories, passed_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rdc.session.trees.source_options import SourceRemoval
    from rdc.session.trees.source_tree import MountBoundary, SourceTree
    from rdc.session.trees.wanted_xattrs import EntrySet, TreeXattrs
    from rdc.tree.filters import FilterList
    from rdc.tree.hard_links import LinkTable


def no_file(row: int) -> ProtocolError:
    """Return the error for a request of an entry that is no regular file. `row`: of the manifest."""
    return ProtocolError(f"the remote side asked for entry {row}, which is no listed regular file")


# Limits on what a destination may have the source read and send: multiples of what the source announced.
#
# Each request is charged with its highest possible cost before it is answered. A destination that follows the
# protocol stays far below the limits; only a hostile one is refused.

CLOSE_BYTES = 16 << 10
"""Bytes between two ranges of a file that cost less to read than a separate read costs."""


class Demand:
    """The demand of one session or one turn. Every method raises ProtocolError if it exceeds a limit."""

    def __init__(self, manifest: Manifest) -> None:
        """`manifest`: what was announced; it may still grow, or be made again."""
        self._manifest = manifest
        self._announced = 0
        """Bytes announced at the last count."""
        self._grown: dict[int, int] = {}
        """Sizes of files that grew after they were listed; few, unless the source changes a lot."""
        self._grown_bytes = 0
        self._bundles: OrderedDict[int, int] = OrderedDict()
        """Bytes of each of the last bundles."""
        self.sent = 0
        """Bytes of content requested so far."""
        self.compared = 0
        """Bytes to read for comparisons requested so far."""

    def take(self, message: messages.Message) -> None:
        """Charge a request."""
        if isinstance(message, messages.FileRequest):
            self._send(self._bytes_of(message.files))
        elif isinstance(message, messages.RangeRequest):
            self._send(sum(message.lengths))
            around = min(PACKED_CONTEXT_BYTES, self._size(message.file)) if message.pack else 0
            self.compare(self._read(message) + around + len(message.claims.cells) * CHECK_BLOCK_BYTES)
        elif isinstance(message, messages.BlockRequest):
            self.compare(self._read(message))
        elif isinstance(message, messages.NodeRequest):
            self.compare(ASKED_FILE_BYTES + len(message.nodes) * ASKED_NODE_BYTES)
        elif isinstance(message, messages.BundleRequest):
            size = self._bundles[message.bundle] = self._bytes_of(message.files)
            if len(self._bundles) > BUNDLES_IN_FLIGHT:
                self._bundles.popitem(last=False)
            self.compare(size)
        elif isinstance(message, AboutFiles):
            self.compare(self._bytes_of(message.files))

    def compare(self, size: int) -> None:
        """Charge `size` bytes that are about to be read for a comparison."""
        self.compared += size
        if self.compared > ASKED_FREELY_BYTES:
            self._check(self.compared, COMPARED_TIMES, "compare")

    def grew(self, file: int, listed: int, size: int) -> None:
        """Charge the growth of a file that is sent whole: it had `listed` bytes and has `size` now."""
        known = self._grown.get(file, listed)
        if size > known:
            self._grown[file] = size
            self._grown_bytes += size - known
        if size > listed:
            self._send(size - listed)

    def _send(self, size: int) -> None:
        self.sent += size
        if self.sent > ASKED_FREELY_BYTES:
            self._check(self.sent, SENT_TIMES, "send")

    def _check(self, asked: int, times: int, what: str) -> None:
        if asked <= times * self._announced + ASKED_FREELY_BYTES:
            return
        # The total is counted only here. It grows while a listing is sent.
        manifest = self._manifest
        now = manifest.total_size + len(manifest) * ASKED_FILE_BYTES + self._grown_bytes
        self._announced = max(self._announced, now)
        if asked > times * self._announced + ASKED_FREELY_BYTES:
            raise ProtocolError(
                f"the remote side asked this one to {what} {asked} bytes: more than {times} times"
                f" the {self._announced} that it was told of"
            )

    def _bytes_of(self, files: tuple[int, ...]) -> int:
        """Return the cost of reading these files. The answer reports entries that are no files."""
        if files[-1] >= len(self._manifest):
            return 0
        return sum(self._manifest.sizes_of(files)) + len(files) * ASKED_FILE_BYTES

    def _size(self, file: int) -> int:
        """Return the size of a file or a bundle, in bytes."""
        if file < len(self._manifest):
            return self._grown.get(file, 0) or self._manifest.sizes_of((file,))[0]
        return self._bundles.get(file, 0)

    def _read(self, message: messages.BlockRequest | messages.RangeRequest) -> int:
        """Return the cost of reading ranges and the short gaps between them. A bundle may be read whole."""
        if message.file >= len(self._manifest):
            return ASKED_FILE_BYTES + self._bundles.get(message.file, 0)
        if not message.lengths:
            return ASKED_FILE_BYTES
        spanned = message.end - message.gaps[0]
        return ASKED_FILE_BYTES + min(spanned, sum(message.lengths) + len(message.lengths) * CLOSE_BYTES)


# One message with rows of the manifest: entries of several nodes, as columns.


class RowsMessage:
    """Collects entries of several nodes for one RowsPart."""

    __slots__ = ("_complete", "_counts", "_groups", "_manifest", "_owner", "_rows", "_segments", "_text")

    def __init__(self, manifest: Manifest, groups: Group, *, owner: bool) -> None:
        """Take `groups`: the columns that were requested. `owner`: user and group ids are preserved."""
        self._manifest = manifest
        self._groups = groups
        self._owner = owner
        self._counts: list[int] = []
        self._rows: list[range] = []
        self._segments: list[Segment] = []
        self._text = 0
        self._complete = True

    def full(self, rows: int, text: int) -> bool:
        """Tell whether `rows` more rows, with `text` bytes of names and paths, do not fit."""
        return bool(self._counts) and (
            sum(self._counts) + rows > ROWS_PER_PART
            or self._text + text > ROWS_TEXT_BYTES
            or len(self._counts) >= TIER_NODES
        )

    def add(self, first: int, stop: int, segments: Iterable[Segment], text: int, *, complete: bool) -> None:
        """Add rows [first, stop) of one node. `complete`: they end the node."""
        self._counts.append(stop - first)
        self._rows.append(range(first, stop))
        self._segments += segments
        self._text += text
        self._complete = complete

    def message(self) -> RowsPart:
        """Return the message."""
        manifest, groups = self._manifest, self._groups
        names, attributes = bool(groups & Group.NAMES), bool(groups & Group.ATTRIBUTES)
        rows = Rows(
            sum(self._counts),
            tuple(self._segments),
            self._column(names, manifest.kinds, 1),
            self._column(attributes, manifest.modes, 2),
            self._column(attributes, manifest.sizes, 8),
            self._column(attributes and self._owner, manifest.uids, 4),
            self._column(attributes and self._owner, manifest.gids, 4),
            self._column(bool(groups & Group.MTIMES), manifest.mtimes, 8),
        )
        return RowsPart(tuple(self._counts), self._complete, rows)

    def _column(self, wanted: bool, column: bytearray, width: int) -> bytes:
        """Return the added rows of a column, `width` bytes per row; empty unless `wanted`."""
        if not wanted:
            return b""
        return b"".join(column[width * rows.start : width * rows.stop] for rows in self._rows)


def send_mount_points(boundary: MountBoundary, round_: int) -> Conversation[None]:
    """Send the mount points that `boundary` did not let a walk enter. Raises RdcError if there are too
    many."""
    left = deque(boundary.beyond)
    if len(left) > MOUNT_POINTS:
        raise RdcError(
            f"{len(left)} directories of the source lie on other file systems,"
            f" {MOUNT_POINTS} are the most; exclude some",
            code=ExitCode.PARTIAL,
        )
    while left:
        paths, size = [left.popleft()], 0
        while left and len(paths) < ITEMS_PER_MESSAGE:
            size += len(paths[-1]) + 1
            if size + len(left[0]) + 1 > ITEMS_BYTES:
                break
            paths.append(left.popleft())
        yield Send(MountPoints(tuple(paths)), round_)


class OwnerNames:
    """Remembers which ids were announced."""

    def __init__(self) -> None:
        self._users: set[int] = set()
        self._groups: set[int] = set()

    def announce(self, uids: bytes | bytearray, gids: bytes | bytearray) -> Iterator[Owners]:
        """Yield the messages that have to precede entries with these columns of ids, u32 little-endian.

        Raises RdcError for more owners than a destination takes.
        """
        users, groups = _unannounced(self._users, uids), _unannounced(self._groups, gids)
        if max(len(self._users), len(self._groups)) > OWNERS:
            raise RdcError(
                f"SRC has more than {OWNERS:,} users or groups, which cannot be kept by name: use"
                " --numeric-ids, without --usermap, --groupmap and --chown",
                code=ExitCode.PARTIAL,
            )
        for at in range(0, max(len(users), len(groups)), OWNERS_PER_MESSAGE):
            some = slice(at, at + OWNERS_PER_MESSAGE)
            yield _named(users[some], groups[some])

    def send(self, columns: PackedListing | Manifest, round_: int) -> Conversation[None]:
        """Send the names of owners of entries that are sent next."""
        for message in self.announce(columns.uids, columns.gids):
            yield Send(message, round_)

    def first(self, uid: int, gid: int) -> Owners:
        """Return the message about the owners of the tree's top."""
        self._users.add(uid)
        self._groups.add(gid)
        return _named([uid], [gid])


def _unannounced(announced: set[int], column: bytes | bytearray) -> list[int]:
    """Return the ids of a column that were not announced, which count as announced from now on."""
    new = sorted(set(little_endian_integers("I", column)) - announced)
    announced.update(new)
    return new


def _named(users: list[int], groups: list[int]) -> Owners:
    import grp
    import pwd

    return Owners(
        tuple(users),
        tuple([_name(lambda uid: pwd.getpwuid(uid).pw_name, uid) for uid in users]),
        tuple(groups),
        tuple([_name(lambda gid: grp.getgrgid(gid).gr_name, gid) for gid in groups]),
    )


def _name(look_up: Callable[[int], str], number: int) -> bytes:
    """Return the name of an id; b"" for none."""
    try:
        name = os.fsencode(look_up(number))
    except (KeyError, OverflowError):
        return b""
    return name if len(name) <= OWNER_NAME_BYTES and b"\0" not in name else b""


DIRECTORIES_PER_LOOK = 64
"""Directories walked between two checks whether the destination wants a listing instead: about 2 ms."""

LIKELY_BYTES = 64 << 20
"""Bytes of files that the source signs unasked. The destination may lack them, and then needs none of it."""

LIKELY_SHARE = 4
"""Blocks are described unasked if at most one file in this many is likely changed. More look like a tree
whose files were only touched, and the destination then asks for roots."""

LIKELY_LEAST = 1024
"""Files up to this many bytes are not described unasked: the destination has them sent whole."""

ENTRIES_PER_LOOK = 64
"""Entries of a listing sent between two checks for requests. A check costs as much as five entries."""


class LikelyFiles(Record):
    """Files that the destination is expected to ask for next."""

    trees: tuple[int, ...] = ()
    """The files whose trees are sent."""
    blocks: tuple[int, ...] = ()
    """The files whose blocks are described, to be compared in bundles."""


class Description:
    """Walks the tree, remembers its entries by row, and sends what the destination asks for."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        secret: bytes,
        events: EventRelay,
        boundary: MountBoundary | None = None,
        *,
        hard_links: bool = False,
        owners: OwnerNames | None = None,
        removal: SourceRemoval | None = None,
    ) -> None:
        """`secret`: the session's. `boundary`: walks do not cross it. `hard_links`: links are announced.
        `owners`: announces the names of users and groups; None: they are not announced. `removal`: is told
        which inodes are listed; None: nothing is removed."""
        self._owners = owners
        self._removal = removal
        self._kinds = AttributeKinds.NONE
        self._attributes: TreeXattrs | None = None
        self._links: LinkTable | None = None
        if hard_links:
            from rdc.tree.hard_links import LinkTable

            self._links = LinkTable(aliased=tree.root.reads.followed is not None)
        self._tree = tree
        self._boundary = boundary
        self._filters = filters.at_source(tree.filtered)
        self._unbound = filters
        self._secret = secret
        self._events = events
        self.manifest = Manifest()
        self._fold: Fold | None = None
        self._offered = False
        """The manifest has what an offer walked, as it was read."""
        self._preserved = Preserved(owner=False)
        """The metadata that both sides preserve, and so those that are announced."""
        self._requested = 0
        """Rows and nodes of the manifest requested so far."""
        self._sent: list[range] = []
        """Rows of the manifest that were sent; some may have been sent twice."""
        self._reported: set[bytes] = set()
        """Paths with a reported problem."""
        self.read_errors = 0
        """The number of directories that could not be read in any walk."""

    @property
    def files(self) -> int:
        """The number of regular files walked so far."""
        return self.manifest.kinds.count(Kind.FILE)

    @property
    def total_bytes(self) -> int:
        """The total size of these files, in bytes."""
        return self.manifest.total_size

    def take(self, tree: SourceTree) -> None:
        """Describe from the next walk on what `tree` shows, the same tree."""
        self._tree = tree
        self._offered = False

    def keep(self, preserved: Preserved) -> None:
        """Set what both sides preserve of entries. Call it before anything is sent."""
        self._preserved = preserved
        self._kinds = preserved.attributes

    def _walk(self, *, again: bool = False) -> Walk:
        """Start a new walk and forget the entries of the last one. `again`: right after an offer, whose
        directories are not read again, unless reads wait: then many of the others are to be read at a
        time."""
        known = self.manifest.moved()
        waits = self._tree.root.depths.listing.now > 1
        if not (again and self._offered) or waits or len(known) > OFFERED_ROWS:
            known.clear()
        self._offered = False
        self._sent.clear()
        self._fold = None
        for problem in self._tree.problems:
            self._report(problem)
        if not self._tree.prunes:
            return self._begin_walk(known=known)
        return self._begin_walk(lasting_directories(self._begin_walk(), self._unbound, self._tree.filtered))

    def _begin_walk(self, lasting: Container[bytes] | None = None, known: Manifest | None = None) -> Walk:
        """Start a walk. `lasting`: as in Walk. `known`: has the entries of directories that need not be read
        again."""
        followed = self._tree.root.reads.followed
        if followed is not None:
            followed.begin(self._report, self._filters.excluded)
        if self._kinds:
            from rdc.session.trees.wanted_xattrs import TreeXattrs

            self._attributes = TreeXattrs(self._tree.root, self._kinds, self._report)
        enter = None
        if self._links is not None:
            self._links.clear()
        if self._removal is not None:
            self._removal.begin()
        if self._boundary is not None:
            self._boundary.beyond.clear()
            enter = self._boundary.enters
        return Walk(
            self._tree.root,
            self._filters,
            self._report,
            self._tree.only,
            enter=enter,
            on_lookalike=self._report_left_out,
            selection=self._tree.selection,
            lasting=lasting,
            known=known.listed if known else None,
        )

    def _send_links(self, start: int, stop: int, round_: int) -> Conversation[None]:
        """Send the hard links of entries [start, stop), which are sent next."""
        if self._links is None:
            return
        pairs = self._links.between(start, stop)
        for at in range(pairs.start, pairs.stop, FILES_PER_MESSAGE):
            some = slice(at, min(at + FILES_PER_MESSAGE, pairs.stop))
            yield Send(
                messages.HardLinks(tuple(self._links.files[some]), tuple(self._links.firsts[some])), round_
            )

    def _send_attributes(self, sets: Sequence[EntrySet], round_: int) -> Conversation[None]:
        """Send the extended attributes of entries that are sent next."""
        at = 0
        while at < len(sets):
            ordinals: list[int] = []
            numbers: list[int] = []
            distinct: dict[bytes, int] = {}
            size = 0
            for one in sets[at : at + FILES_PER_MESSAGE]:
                size += 0 if one.packed in distinct else len(one.packed)
                if size > ATTRIBUTE_MESSAGE_BYTES and ordinals:
                    break
                ordinals.append(one.ordinal)
                numbers.append(distinct.setdefault(one.packed, len(distinct)))
            at += len(ordinals)
            yield Send(messages.EntryAttributes(tuple(ordinals), tuple(numbers), tuple(distinct)), round_)

    def _send_mount_points(self, round_: int) -> Conversation[None]:
        if self._boundary is not None:
            yield from send_mount_points(self._boundary, round_)

    def _report(self, event: Event) -> None:
        """Report a problem of a walk, once per path: what was missing once may be missing again."""
        if isinstance(event, Problem) and event.path_bytes not in self._reported:
            self._reported.add(event.path_bytes)
            self.read_errors += event.code is not ExitCode.OK
            self._events.report(event)

    def _report_left_out(self, path: bytes) -> None:
        """Report an entry that no sync transfers. The destination deletes no entry with such a name."""
        if path not in self._reported:
            self._reported.add(path)
            self._events.report(Problem(ExitCode.PARTIAL, path, passed_over(path)))

    def _add(self, listed: ListedDirectories) -> list[EntrySet]:
        """Add directories to the manifest and return the extended attributes to send."""
        found: list[EntrySet] = []
        if self._attributes is not None:
            for path in listed.paths:
                found += self._attributes.read(path, len(self.manifest), listed.listing)
        if self._links is not None:
            self._links.add(len(self.manifest), listed.listing.kinds, listed.inodes)
        if self._removal is not None:
            self._removal.note(listed.inodes)
        self.manifest.add_many(listed)
        return found

    def send_listing(
        self, round_: int, serve: Callable[[], Conversation[None]], *, again: bool = False
    ) -> Conversation[None]:
        """Send the listing, directory by directory. `serve` is called now and then to answer requests.
        `again`: the destination declined an offer that was just made, or would have been."""
        directories = looked = 0
        walk = self._walk(again=again)
        if self._attributes is not None:
            yield from self._send_attributes(self._attributes.begin(top=self._tree.has_top), round_)
        for path, found, inodes in walk:
            at = len(self.manifest)
            packed = self._preserved.announced(self._tree.announced(found))
            sets = deque(self._add(ListedDirectories.of(path, packed, inodes)))
            if self._owners is not None and self._preserved.owner:
                yield from self._owners.send(packed, round_)
            parts = list(slice_listing(packed.unpacked()))
            for i, part in enumerate(parts):
                yield from self._send_links(at, at + len(part), round_)
                these = []
                while sets and sets[0].ordinal <= at + len(part):
                    these.append(sets.popleft())
                yield from self._send_attributes(these, round_)
                yield Send(messages.ListingPart(directories, path, at, i == len(parts) - 1, part), round_)
                at += len(part)
            directories += 1
            yield from self._events.send_waiting(round_)
            if at - looked >= ENTRIES_PER_LOOK:
                looked = at
                yield from serve()
        yield from self._events.send_waiting(round_)
        yield from self._send_mount_points(round_)
        self._sent.append(range(len(self.manifest)))
        totals = (directories, len(self.manifest), self.files, self.total_bytes, self.read_errors)
        yield Send(messages.ListingEnd(*totals), round_)

    def likely(self, newest: int, *, blocks: bool) -> LikelyFiles | None:
        """Return files among the rows that were sent whose mtime is later than `newest`, the newest that the
        destination has there; None if they are too many. The smallest ones have no trees: they come whole.

        `blocks`: whether the destination accepts blocks of files. Blocks are chosen only if
        there are enough files for it to compare them in bundles."""
        found: dict[int, int] = {}
        at_source, manifest = self._preserved.at_source, self.manifest
        most = LIKELY_FILES + BUNDLE_FILES
        for span in self._sent:
            columns = (
                manifest.kinds[span.start : span.stop],
                little_endian_integers("q", manifest.mtimes[8 * span.start : 8 * span.stop]),
                little_endian_integers("Q", manifest.sizes[8 * span.start : 8 * span.stop]),
            )
            for row, kind, mtime, size in zip(span, *columns, strict=True):
                is_new = kind == Kind.FILE and newest < mtime < END_NS and at_source.mtime(mtime) > newest
                if is_new and size:
                    found[row] = size
                    if len(found) > most:
                        return None
        long = [row for row, size in found.items() if size > LIKELY_LEAST]
        small: list[int] = []
        if len(long) > LIKELY_FILES and blocks:
            small = [row for row, size in found.items() if size <= BUNDLED_FILE_BYTES]
            long = [row for row, size in found.items() if size > BUNDLED_FILE_BYTES]
            many = sum(map(found.__getitem__, small)) > LIKELY_BLOCKS_BYTES or len(small) > BUNDLE_FILES
            if many or len(small) * LIKELY_SHARE > self.files:
                return None
        if len(long) > LIKELY_FILES or sum(map(found.__getitem__, long)) > LIKELY_BYTES:
            return None
        return LikelyFiles(
            tuple(sorted(long)), tuple(sorted(small)) if len(small) >= BUNDLE_FILES_LEAST else ()
        )

    def offer(
        self,
        preserved: Preserved,
        round_: int,
        declined: Callable[[], Conversation[bool]] | None = None,
        *,
        again: bool = False,
    ) -> Conversation[bool]:
        """Walk the tree and send the manifest's root. The destination then asks for what differs.

        `declined` is called now and then; if it returns true, the walk ends early and this returns False, as
        it does if there are fifos, sockets or devices. None: the destination asked for the offer.
        `again`: an earlier offer did not fit what is preserved. The manifest's top was sent in vain then, and
        is not sent unasked a second time.
        """
        # long because each thing that is announced beside entries is a step
        self.keep(preserved)
        walk = self._walk(again=again)
        if self._attributes is not None:
            self._attributes.begin(top=self._tree.has_top)
        as_read = preserved.owner and preserved.group and self._tree.changes is None
        looked = number = 0
        self._offered = not again and self._can_tell_again
        for listed in walk.many(single=self._attributes is not None):
            shown = listed.listing if as_read else preserved.announced(self._tree.announced(listed.listing))
            self._offered = self._offered and shown is listed.listing
            self._add(listed if as_read else replace(listed, listing=shown))
            number += listed.walked
            if declined is not None and number >= looked + DIRECTORIES_PER_LOOK:
                looked = number
                if (yield from declined()):
                    return False
        if declined is not None and not NODES.isdisjoint(self.manifest.kinds):
            return False  # the remote side's Hello says whether it knows such kinds, and has not come
        yield from self._events.send_waiting(round_)
        yield from self._send_mount_points(round_)
        if self._owners is not None and preserved.owner:
            yield from self._owners.send(self.manifest, round_)
        top = preserved.metadata(self._tree.metadata(b"", Kind.DIRECTORY)) if self._tree.has_top else None
        compared = preserved.at_source
        links = None if self._links is None else self._links.digest(self.manifest)
        further = further_digest(links, None if self._attributes is None else self._attributes.digest())
        root = covering_root(self.manifest.root(top, compared), further)
        totals = (len(self.manifest), self.files, self.total_bytes, self.read_errors)
        yield Send(messages.Manifest(root, *totals, preserved, further[:FURTHER_BYTES]), round_)
        if len(self.manifest) > SMALL_MANIFEST and not again:
            # An equal tree needs no more than the root, so the root is sent before the fold is computed.
            yield Flush()
            yield Send(self._top(), round_)
        return True

    @property
    def _can_tell_again(self) -> bool:
        """Return whether a listing needs no more than the columns of a manifest: no inodes, attributes or
        mounts, but for those that a snapshot names by their paths."""
        tree = self._tree
        boundary = None if tree.root.has_mount_points else self._boundary
        beside = (self._links, self._removal, self._attributes, boundary, tree.root.reads.followed)
        return not any(one is not None for one in beside) and not tree.prunes

    def _top(self) -> messages.TopTier:
        """Return the largest tier with at most TOP_NODES nodes."""
        tiers = self._tiers()
        level = next(level for level, tier in enumerate(tiers) if len(tier) <= TOP_NODES)
        references = tiers[level].references(Group.WHOLE, self._secret, range(len(tiers[level])))
        return messages.TopTier(level, references)

    def _tiers(self) -> list[Tier]:
        """Return the tiers of nodes over the manifest. They are computed at the first request."""
        if self._fold is None:
            self._fold = Fold(self.manifest, self._preserved.at_source)
        return self._fold.tiers

    def send_tier(self, message: messages.TierRequest, round_: int) -> Conversation[None]:
        """Send references of requested nodes. Raises ProtocolError if there are no such nodes."""
        tiers = self._tiers()
        if not tiers or (message.nodes and message.level + 1 >= len(tiers)):
            raise ProtocolError(f"the remote side asked for manifest tier {message.level} of {len(tiers)}")
        level = min(message.level, len(tiers) - 1)
        tier = tiers[level]
        spans = [range(len(tier))]
        if len(tier) > TIER_NODES_WHOLE and not message.nodes:
            raise ProtocolError(
                f"the remote side asked for all {len(tier)} nodes of manifest tier {level} at once"
            )
        if message.nodes:
            above = tiers[level + 1]
            if message.nodes[-1] >= len(above):
                raise ProtocolError(
                    f"the remote side asked for manifest node {message.nodes[-1]} of {len(above)}"
                )
            spans = [above.children(node) for node in message.nodes]
        self._charge(sum(map(len, spans)))
        references = b"".join(
            tier.references(group, self._secret, span)
            for group in GROUPS
            if group & message.groups
            for span in spans
        )
        firsts, counts = tuple(span.start for span in spans), tuple(map(len, spans))
        yield Send(messages.TierAnswer(level, firsts, counts, references), round_)

    def send_rows(self, message: messages.RowsRequest, round_: int) -> Conversation[None]:
        """Send the entries of requested nodes. Raises ProtocolError if there are no such nodes."""
        tiers = self._tiers()
        if message.level >= len(tiers) or message.nodes[-1] >= len(tiers[message.level]):
            raise ProtocolError(
                f"the remote side asked for rows of tier {message.level}, node {message.nodes[-1]}"
            )
        self._charge(sum(len(tiers[message.level].span(node)) for node in message.nodes))
        groups = Group(message.groups)
        part_message = RowsMessage(self.manifest, groups, owner=self._preserved.owner)
        for node in message.nodes:
            span = tiers[message.level].span(node)
            self._sent.append(span)
            first, most = span.start, ROWS_PER_PART
            while first < span.stop:
                stop = min(first + most, span.stop)
                segments = self._segments(first, stop) if groups & Group.NAMES else ()
                text = sum(len(s.path) + len(s.names) + len(s.targets) for s in segments)
                if text > ROWS_TEXT_BYTES and stop - first > 1:
                    # Some paths, names or link targets have thousands of bytes: try half as many rows.
                    most = (stop - first) // 2
                    continue
                if part_message.full(stop - first, text):
                    yield Send(part_message.message(), round_)
                    part_message = RowsMessage(self.manifest, groups, owner=self._preserved.owner)
                part_message.add(first, stop, segments, text, complete=stop == span.stop)
                first, most = stop, min(2 * most, ROWS_PER_PART)
        yield Send(part_message.message(), round_)

    def _charge(self, rows: int) -> None:
        """Charge rows or nodes that are about to be sent.

        Raises ProtocolError if the destination requested the whole manifest several times over.
        """
        self._requested += rows
        if self._requested > ROW_REQUESTS * len(self.manifest) + ROWS_FREELY:
            raise ProtocolError(
                f"the remote side asked for {self._requested} rows and nodes of a manifest of"
                f" {len(self.manifest)}: more than {ROW_REQUESTS} times all of it"
            )

    def _segments(self, first: int, stop: int) -> tuple[Segment, ...]:
        """Return paths, names and link targets of rows [first, stop), by directory."""
        return tuple(
            Segment(path, part.count, part.names, part.targets)
            for path, part in self.manifest.parts(first, stop)
        )
