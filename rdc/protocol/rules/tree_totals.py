"""Totals of what the source has announced of its tree, and the rules that its messages about it follow.

S is the source and D the destination."""

from __future__ import annotations

from rdc.limits.paths import FILTER_BYTES, FILTER_RULES, SELECTED_BYTES, SELECTED_NAMES
from rdc.limits.sessions import MOUNT_POINTS
from rdc.limits.wire import FILES_PER_MESSAGE, OWNERS
from rdc.model.entries import Kind
from rdc.model.preserved import EVERYTHING
from rdc.protocol.messages.registry import (
    Changed,
    Describe,
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    Manifest,
    MountPoints,
    Owners,
    Renamed,
    Rules,
    Selected,
    Start,
    TopTier,
    Turn,
    TurnEnd,
)
from rdc.protocol.rules.states import Illegal
from rdc.protocol.wire.options import rule_bytes

__all__ = ["TreeTotals"]


class TreeTotals:
    """Everything announced of one tree in one turn. Each method checks one message and counts it, or raises
    Illegal."""

    def __init__(self, turn: Turn | None = None) -> None:
        """turn: the Turn that begins a later description of a watched tree; None for the first one."""
        self._changes = turn is not None and not turn.whole
        """S announces only changes, and D asks for no description."""
        self.directories = 0
        """Directories whose listing has begun."""
        self.entries = 0
        self.files = 0
        self.bytes = 0
        self.may_offer = False
        """S dialled, so it may offer one manifest before D asks for a description."""
        self._unasked: Manifest | None = None
        self._asked: Describe | None = None
        self._started = False
        self._preserved = EVERYTHING
        """The metadata that the source preserves, from Start."""
        self._offered: int | None = None
        """Entries of the manifest that replaces a listing; None without one."""
        self._bundles = 0
        """Bundles that D asked for."""
        self._top_due = False
        """A manifest came, and its top tier may follow, even after D asked for a listing instead."""
        self._rules = self._rules_bytes = 0
        """Filter rules that came after Open, and their bytes."""
        self._selected = self._selected_bytes = 0
        """Selected names, and their bytes."""
        self.all_selected = False
        """Whether the last of the selected names came."""
        self._mount_points = 0
        self._linked = self._linked_to = 0
        """Number of announced hard links, and the ordinal after the last of them."""
        self._attributed = self._attributed_to = 0
        """Number of entries with announced attributes, and the number after the last of them. Number 0 is the
        root, and entry n has number n + 1."""
        self._users = self._groups = 0
        """Number of owners whose names were announced."""
        self._unfinished: ListingPart | None = None
        """The last listing part, if its directory is not complete."""

    @property
    def known(self) -> int:
        """Number of entries that D may ask for."""
        return self.entries if self._offered is None else self._offered

    def bundle(self, number: int) -> None:
        """Count a bundle that D asks for. Bundles are numbered on from the last entry."""
        if number != self.known + self._bundles:
            raise Illegal(f"a bundle named {number}, expected {self.known + self._bundles}")
        self._bundles += 1

    def is_bundle(self, number: int) -> bool:
        """Whether `number` names a bundle that D asked for."""
        return self.known <= number < self.known + self._bundles

    @property
    def described(self) -> bool:
        """Whether D asked for a description."""
        return self._asked is not None

    @property
    def offered(self) -> bool:
        """Whether a manifest stands in for the listing."""
        return self._offered is not None

    @property
    def started(self) -> bool:
        """Whether S sent Start."""
        return self._started

    def describe(self, message: Describe) -> None:
        """D asks for a description, once; it may ask for a listing after a manifest, which the listing
        replaces. A suitable manifest that S sent unasked is accepted."""
        if self._changes:
            raise Illegal("only what changed is told")
        if self._asked is not None and (self._offered is None or not message.whole):
            raise Illegal("the tree is being described already")
        self._asked = message
        self._offered = None
        self._mount_points = 0
        if self._unasked is not None:
            self._accept(self._unasked)

    def _accept(self, manifest: Manifest) -> bool:
        asked = self._asked
        if asked is None or asked.whole or asked.kept.both(self._preserved) != manifest.kept:
            return False
        self._offered = manifest.entries
        self._unasked = None
        return True

    def rule(self, message: Rules) -> None:
        """Filter rules come within the limits of a run."""
        if not message.rules:
            raise Illegal("there are no rules in it")
        self._rules += len(message.rules)
        self._rules_bytes += sum(map(rule_bytes, message.rules))
        if self._rules > FILTER_RULES or self._rules_bytes > FILTER_BYTES + 4 * FILTER_RULES:
            raise Illegal(f"{self._rules} filter rules of {self._rules_bytes} bytes are too many")

    def select(self, message: Selected, *, ahead: bool = False) -> None:
        """Paths are selected before anything is described, within the limits of a run. `ahead`: by the
        answerer, to whom D may have said Describe meanwhile."""
        if self.all_selected or self._started or (self._asked is not None and not ahead):
            raise Illegal("everything is selected, or the tree is being described already")
        self._selected += len(message.names)
        self._selected_bytes += len(message.origin) + sum(map(len, message.names))
        if self._selected > SELECTED_NAMES or self._selected_bytes > SELECTED_BYTES:
            raise Illegal(f"{self._selected} names of {self._selected_bytes} bytes are too many")
        self.all_selected = message.last

    def start(self, message: Start) -> None:
        """S starts its description, once. An S that did not dial needs a Describe first."""
        unasked = self._asked is None and not self.may_offer
        if unasked or self._started:
            raise Illegal("nobody asked for it" if unasked else "it came already")
        self._started = True
        self._preserved = message.kept

    def offer(self, manifest: Manifest) -> bool:
        """S sends a manifest that D asked for or that S may offer. True: the manifest is accepted."""
        if not self._started or self._offered is not None or self.directories:
            raise Illegal("its Start is missing, or the tree is being described already")
        if not self._accept(manifest):
            if not self.may_offer:
                raise Illegal("no such manifest was asked for")
            self._unasked = manifest
        self.may_offer = False
        self._top_due = True
        return self._unasked is None

    def top(self, _message: TopTier) -> None:
        """S sends the top tier of a manifest, once."""
        if not self._top_due:
            raise Illegal("there is no manifest that it is of")
        self._top_due = False

    def leave_out(self, message: MountPoints) -> None:
        """S names mount points after Start, at most MOUNT_POINTS."""
        self._mount_points += len(message.paths)
        if not self._started or self._mount_points > MOUNT_POINTS:
            raise Illegal("its Start is missing, or they are more than " + str(MOUNT_POINTS))

    def link(self, message: HardLinks) -> None:
        """S names hard links among the entries that come next in its listing. At most FILES_PER_MESSAGE more
        links than entries are accepted, so the number of entries bounds the memory for links."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        self._linked += len(message.files)
        if message.files[0] < max(self.entries, self._linked_to):
            raise Illegal(f"entry {message.files[0]} was listed, or told of, already")
        if self._linked > self.entries + FILES_PER_MESSAGE:
            raise Illegal(f"{self._linked} of them before more than {self.entries} entries were listed")
        self._linked_to = message.files[-1] + 1

    def attribute(self, message: EntryAttributes) -> None:
        """S names attributes of the root or of entries that come next, bounded as hard links are."""
        if self._asked is None or not self._asked.whole or not self._started:
            raise Illegal("no listing was asked for, or its Start is missing")
        self._attributed += len(message.entries)
        if message.entries[0] < max(self.entries + bool(self.directories), self._attributed_to):
            raise Illegal(f"entry {message.entries[0]} was listed, or told of, already")
        if self._attributed > self.entries + 1 + FILES_PER_MESSAGE:
            raise Illegal(f"{self._attributed} of them before more than {self.entries} entries were listed")
        self._attributed_to = message.entries[-1] + 1

    def own(self, message: Owners) -> None:
        """S names owners after Start, at most OWNERS of each kind in a description."""
        self._users += len(message.users)
        self._groups += len(message.groups)
        if not self._started or max(self._users, self._groups) > OWNERS:
            raise Illegal(f"its Start is missing, or they are more than {OWNERS}")

    def look(self) -> None:
        """D asks for a part of the manifest, which must have been offered."""
        if self._offered is None:
            raise Illegal("no manifest was offered")

    def add(self, part: ListingPart) -> None:
        """S sends the next part of a listing that D asked for."""
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
        self.bytes += part.listing.total_size
        self._unfinished = None if part.last else part

    def change(self, part: Changed | Renamed | TurnEnd) -> None:
        """S announces a change in a turn of changes. The entries of a Changed continue the numbering."""
        if not self._changes:
            raise Illegal("no turn that tells of changes has begun")
        if isinstance(part, Changed):
            if part.first != self.entries:
                raise Illegal(f"the first entry is {part.first}, expected {self.entries}")
            self.entries += len(part.listing)

    def end(self, totals: ListingEnd) -> None:
        """S ends its listing with totals, which must equal those counted."""
        if self._asked is None or not self._asked.whole or not self.directories:
            raise Illegal("the root was not listed")
        if self._unfinished is not None:
            raise Illegal(f"the listing of directory {self._unfinished.directory} is not complete")
        stated = (totals.directories, totals.entries, totals.files, totals.bytes)
        counted = (self.directories, self.entries, self.files, self.bytes)
        if stated != counted:
            raise Illegal(f"(directories, entries, files, bytes) stated {stated}, listed {counted}")
