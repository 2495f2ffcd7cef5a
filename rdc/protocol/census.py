"""What S has said of its tree so far: as it was asked to, listings without gaps, totals that agree."""

from __future__ import annotations

from rdc.limits import FILES_PER_MESSAGE, MOUNT_POINTS
from rdc.model.entries import Kind
from rdc.model.kept import EVERYTHING
from rdc.protocol.messages import (
    Changed,
    Describe,
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    Manifest,
    MountPoints,
    Start,
    Turn,
)
from rdc.protocol.states import Illegal

__all__ = ["Census"]


class Census:
    def __init__(self, turn: Turn | None = None) -> None:
        """`turn`: what S begins after a first time; None: it has not described anything yet."""
        self._changes = turn is not None and not turn.whole
        """S tells only what changed, and D asks for no description."""
        self.directories = 0
        """Directories whose listing has begun."""
        self.entries = 0
        self.files = 0
        self.bytes = 0
        self.may_offer = False
        """S dialled: it may offer a manifest before it was asked to describe its tree, once."""
        self._unasked: Manifest | None = None
        self._asked: Describe | None = None
        self._started = False
        self._kept = EVERYTHING
        """By the source, as Start says."""
        self._offered: int | None = None
        """Entries of the manifest that stands for a listing."""
        self._bundles = 0
        """That were asked for."""
        self._top_due = False
        """A manifest came, and its topmost nodes may follow, even when a listing was asked for by then."""
        self._mount_points = 0
        self._linked = self._linked_to = 0
        """Entries that were said to be further names, and the one behind the last of them."""
        self._attributed = self._attributed_to = 0
        """The same of those whose extended attributes were told; one more than entries, as 0 is the root."""
        self._unfinished: ListingPart | None = None
        """The last part, when its directory goes on."""

    @property
    def known(self) -> int:
        """Entries that may be asked for."""
        return self.entries if self._offered is None else self._offered

    def bundle(self, number: int) -> None:
        """Illegal unless this is the name of the next bundle: they are numbered from where entries end."""
        if number != self.known + self._bundles:
            raise Illegal(f"a bundle named {number}, expected {self.known + self._bundles}")
        self._bundles += 1

    def is_bundle(self, number: int) -> bool:
        """Whether this names a bundle that there is."""
        return self.known <= number < self.known + self._bundles

    @property
    def described(self) -> bool:
        """Describe came."""
        return self._asked is not None

    @property
    def started(self) -> bool:
        """Start came."""
        return self._started

    def describe(self, message: Describe) -> bool:
        """Illegal a second time, but for a listing after a manifest, which it replaces. True when what is
        asked for was offered already."""
        if self._changes:
            raise Illegal("only what changed is told")
        if self._asked is not None and (self._offered is None or not message.whole):
            raise Illegal("the tree is being described already")
        self._asked = message
        self._offered = None
        self._mount_points = 0
        return self._unasked is not None and self._accept(self._unasked)

    def _accept(self, manifest: Manifest) -> bool:
        asked = self._asked
        if asked is None or asked.whole or asked.kept.both(self._kept) != manifest.kept:
            return False
        self._offered = manifest.entries
        self._unasked = None
        return True

    def start(self, message: Start) -> None:
        """Illegal unasked (of an S that was dialled), or a second time."""
        unasked = self._asked is None and not self.may_offer
        if unasked or self._started:
            raise Illegal("nobody asked for it" if unasked else "it came already")
        self._started = True
        self._kept = message.kept

    def offer(self, manifest: Manifest) -> bool:
        """Illegal unless a manifest was asked for, or may be offered. True when it is what is looked into."""
        if not self._started or self._offered is not None or self.directories:
            raise Illegal("its Start is missing, or the tree is being described already")
        if not self._accept(manifest):
            if not self.may_offer:
                raise Illegal("no such manifest was asked for")
            self._unasked = manifest
        self.may_offer = False
        self._top_due = True
        return self._unasked is None

    def top(self) -> None:
        """Illegal without a manifest, or a second time."""
        if not self._top_due:
            raise Illegal("there is no manifest that it is of")
        self._top_due = False

    def leave_out(self, message: MountPoints) -> None:
        """Illegal before Start, and where they are too many."""
        self._mount_points += len(message.paths)
        if not self._started or self._mount_points > MOUNT_POINTS:
            raise Illegal("its Start is missing, or they are more than " + str(MOUNT_POINTS))

    def link(self, message: HardLinks) -> None:
        """Illegal unless they are among the entries that come next in a listing. What one message holds may
        be told before as many entries have come, so that entries bound what is remembered of links."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        self._linked += len(message.files)
        if message.files[0] < max(self.entries, self._linked_to):
            raise Illegal(f"entry {message.files[0]} was listed, or told of, already")
        if self._linked > self.entries + FILES_PER_MESSAGE:
            raise Illegal(f"{self._linked} of them before more than {self.entries} entries were listed")
        self._linked_to = message.files[-1] + 1

    def attribute(self, message: EntryAttributes) -> None:
        """The same as for links; of the root and the entries that come next."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        self._attributed += len(message.entries)
        if message.entries[0] < max(self.entries + bool(self.directories), self._attributed_to):
            raise Illegal(f"entry {message.entries[0]} was listed, or told of, already")
        if self._attributed > self.entries + 1 + FILES_PER_MESSAGE:
            raise Illegal(f"{self._attributed} of them before more than {self.entries} entries were listed")
        self._attributed_to = message.entries[-1] + 1

    def look(self) -> None:
        """Illegal unless there is a manifest to look into."""
        if self._offered is None:
            raise Illegal("no manifest was offered")

    def add(self, part: ListingPart) -> None:
        """Raises Illegal unless a listing was asked for and `part` goes on where it stands."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        if part.first != self.entries:
            raise Illegal(f"a listing's first entry is {part.first}, expected {self.entries}")
        before = self._unfinished
        if before is None:
            if part.directory != self.directories:
                raise Illegal(f"a listing of directory {part.directory}, expected {self.directories}")
            self.directories += 1
        elif (part.directory, part.path) != (before.directory, before.path):
            raise Illegal(f"the listing of directory {before.directory} is not complete")
        elif part.listing and part.listing.names[0] <= before.listing.names[-1]:
            raise Illegal(f"names of directory {part.directory} do not increase from part to part")
        self.entries += len(part.listing)
        self.files += part.listing.kinds.count(Kind.FILE)
        self.bytes += sum(part.listing.sizes)
        self._unfinished = None if part.last else part

    def change(self, part: Changed | None) -> None:
        """Illegal unless S tells what changed, and unless `part` (None: anything but entries) goes on where
        it stands."""
        if not self._changes:
            raise Illegal("no turn that tells of changes has begun")
        if part is not None:
            if part.first != self.entries:
                raise Illegal(f"the first entry is {part.first}, expected {self.entries}")
            self.entries += len(part.listing)

    def end(self, totals: ListingEnd) -> None:
        if self._asked is None or not self._asked.whole or not self.directories:
            raise Illegal("the root was not listed")
        if self._unfinished is not None:
            raise Illegal(f"the listing of directory {self._unfinished.directory} is not complete")
        stated = (totals.directories, totals.entries, totals.files, totals.bytes)
        counted = (self.directories, self.entries, self.files, self.bytes)
        if stated != counted:
            raise Illegal(f"(directories, entries, files, bytes) stated {stated}, listed {counted}")
