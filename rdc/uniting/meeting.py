"""The meeting of two directories of different machines, as the side that dials holds it.

It ends with what each side is, what both had in common, and the rules of this run. If it showed that this
side has to say something else, it is held once more: another id of the other directory, or other rules.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, ProtocolError, RdcError, printable
from rdc.files.own.record_log import RecordError
from rdc.lean.records import Record, replace
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import knows
from rdc.protocol.messages import Hello, Meet, Met, Opened, Role
from rdc.protocol.messages.uniting import FEATURE, Asked, Subject, Told
from rdc.protocol.wire.codec import encode as encode_message
from rdc.protocol.wire.options import UNITED_ACLS, UNITED_LINKS, UNITED_XATTRS
from rdc.session.runtime.commands import Conversation, Flush, Pace, Receive, Send
from rdc.session.serve import send_open
from rdc.tree import filter_list
from rdc.uniting.deciding import Deciding
from rdc.uniting.describe import (
    Listing,
)
from rdc.uniting.file_systems import SideStorage, kept_of, opened_here
from rdc.uniting.pages import (
    decode_page,
    next_message,
    rest_of,
    send_page,
)
from rdc.uniting.pair_rules import NO_RULES, KeptRules, chosen_rules, decode_rules, encode_rules
from rdc.uniting.records import UniteOptions
from rdc.uniting.rings import location_here, same_place
from rdc.uniting.rows import LEFT, RIGHT
from rdc.uniting.run import is_bare
from rdc.uniting.state import (
    MARK_DIGEST_BYTES,
    Known,
    OwnMemory,
    PairDirectory,
    Related,
    RootState,
    pair_name,
    relate,
)
from rdc.uniting.steps import SIDES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.model.location import Location
    from rdc.model.preserved import Preserved
    from rdc.progress import StopSignal
    from rdc.uniting.conflicts import Merged
    from rdc.uniting.records import UniteReporter


MEETINGS = 6
"""Sessions of one run: each but the last one showed what this side had to say otherwise."""


class Again(Record):
    """The meeting showed what this side has to say otherwise: it dials once more."""

    other: bytes = b""
    """The id of the other directory."""
    rules: KeptRules | None = None
    """The rules that the other side keeps."""
    probed: bool = False
    """The other side remembers nothing of this empty directory."""
    damaged: bool = False
    """True if this side's state of the pair has rows that rdc does not write."""


class Ends(Record):
    """The two directories that are united."""

    shown: tuple[bytes, bytes]
    """Both as the user wrote them."""
    near: int
    """The side that is on this machine."""
    path: bytes
    """The path of the tree at that side."""
    far: bytes
    """The path of the other side, on its machine."""
    own_place: bytes
    """The path that the other side shows for this one."""


class Meeting(Record):
    """The result of the meeting."""

    state: RootState
    pair: PairDirectory | None
    memory: OwnMemory
    met: Met
    related: Related


class NearMeeting(Deciding):
    """The side that dials, up to the plan of one run."""

    def __init__(
        self,
        stack: ExitStack,
        ends: Ends,
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
        signer: FileSigner,
        said: Again,
        *,
        timeout: int = 0,
        round_: int | None = None,
        merged: Mapping[bytes, Merged] | None = None,
    ) -> None:
        """`said`: what an earlier meeting of this run showed. `timeout`: seconds of silence that end the
        session; 0 for no limit. `round_`: of an open session, where the meeting goes on; None: it begins."""
        super().__init__(ends.shown, options, reporter, stop, merged or {})
        self.texts: dict[bytes, bytes | None] = {}
        """The other side's versions of conflicts that may be merged."""
        self._stack = stack
        self._ends = ends
        self._near, self._far = ends.near, 1 - ends.near
        self._signer = signer
        self._said = said
        self._opened = round_
        self.round = 0
        """The round in which the session goes on after this meeting."""
        self.pair = b""
        """The name of the pair's state at both sides, once both have met."""
        self._told_keeps: Preserved | None = None
        """With attributes: what the other side was told that this one keeps."""
        self._own_sets: dict[bytes, bytes] = {}
        """The digests of the sets of this side's entries, by path."""
        self._own_ties: dict[bytes, int] | None = None
        """This side's names that share a file; None: hard links take no part."""
        self._far_ties: dict[bytes, int] | None = None
        """The other side's names that share a file; None: it can have none, or has not told them."""
        self._secret = os.urandom(16)
        self._has_begun = False
        self._edges: frozenset[bytes] | None = None
        """The other pairs that either side knows, in a first meeting."""
        self._root = opened_here(ends.path)
        stack.callback(self._root.release)
        bare = not options.force_empty and not said.probed and is_bare(ends.path)
        self._probes = bare
        """Nothing is written into an empty directory before the other side says that it knows of none."""
        self._writes = not (options.dry_run or bare)
        self._storage = SideStorage(self._root, signer.catalog, self._report, writes=self._writes)
        self._options_sent = SyncOptions(owner=False, group=False, fsync=options.fsync, timeout=timeout)

    def meet(self) -> Conversation[Meeting | Again]:
        """Hold this side of the meeting. `round` is then the one in which this side goes on. Raises
        RdcError."""
        state = RootState(self._root, write=self._writes, learn=self._storage.learn)
        self._stack.callback(state.close)
        other, is_there = (self._said.other, True) if self._said.other else self._likely_other(state)
        memory = self._memory(state, other, has_rules=is_there)
        are_of_guess = self._kept_rules is not None and not self._said.other
        yield from self._ask(state, other, memory)
        self._listing = Listing(self._root, filter_list(self._rules_now.filters), self._report, state.clock)
        met, round_ = yield from self._met()
        self.round = round_
        self._kept = kept_of(self._storage.facts.keeps, met.keeps)
        if not self._kept.links:
            self._listing.leave_links()
        if met.rules:
            return replace(self._said, other=met.root or (other if is_there else b""), rules=_rules_in(met))
        if self._probes:
            if met.known:
                raise self._emptied(self._near, met.known)
            return replace(self._said, other=met.root, probed=True)
        if state.id is not None and met.root == state.id:
            raise RdcError(f"{printable(self._shown[self._far])}: expected another directory, found this one")
        if other != met.root:
            found = self._memory(state, met.root)
            if (found.ancestors or (are_of_guess and met.root)) and met.root != self._said.other:
                return replace(self._said, other=met.root)
            memory = self._memory(state, b"")
        elif not is_there:
            memory = self._memory(state, other)
            if self._kept_rules is not None:
                return replace(self._said, other=other)
        pair = self._opened_pair(state, met.root)
        if state.id is not None:
            self.pair = pair_name((state.id, met.root))
        related = self._related(memory, met, other)
        return Meeting(state, pair, memory, met, related)

    # The meeting

    def _likely_other(self, state: RootState) -> tuple[bytes, bool]:
        """Return the id of the other directory, as this side remembers it, and whether that is from its
        place: otherwise it is a guess, whose rules are no business of another directory. b"" for none."""
        latest, found = -1, b""
        for pair in state.pairs():
            try:
                ancestor = pair.latest()
            finally:
                pair.close()
            if ancestor is not None:
                here = same_place(ancestor.head.place, self._shown[self._far])
                seconds = ancestor.head.seconds + (here << 40)
                if seconds > latest:
                    latest, found = seconds, ancestor.head.other
        return found, latest >= 1 << 40

    def _opened_pair(self, state: RootState, other: bytes) -> PairDirectory | None:
        if state.id is None or not other:
            return None
        pair = PairDirectory.open(state, pair_name((state.id, other)), make=self._writes)
        if pair is not None:
            self._stack.callback(pair.close)
        return pair

    def _memory(self, state: RootState, other: bytes, *, has_rules: bool = True) -> OwnMemory:
        """Return what this side remembers of another directory, and choose the rules of the run. `has_rules`:
        those of the pair are among them."""
        pair = None
        if state.id is not None and other:
            pair = PairDirectory.open(state, pair_name((state.id, other)))
        try:
            kept = pair.rules() if pair is not None and has_rules else None
            rules, before = chosen_rules(self._options, (kept, self._said.rules))
            self._rules_now, self._rules_before, self._kept_rules = rules, before, kept
            ids, rows = (state.id, other), self._said.damaged
            return OwnMemory(pair, ids, state.inode, rows=rows, damage=state.damage)
        finally:
            if pair is not None:
                pair.close()

    def _rules_line(self) -> KeptRules:
        """Return the rules of this run, and when they were given."""
        for known in (self._kept_rules, self._said.rules):
            if known is not None and known.rules == self._rules_now:
                return known
        return KeptRules(self._rules_now, int(time.time()) if self._rules_now != NO_RULES else 0)

    def _ask(self, state: RootState, other: bytes, memory: OwnMemory) -> Conversation[None]:
        """Ask for the session, and say what this side is."""
        options, known = self._options, memory.known
        self._line = self._rules_line()
        asked = Asked.DRY if not self._writes else 0
        asked |= Asked.CHECKSUM if options.checksum else 0
        asked |= 0 if options.fsync else Asked.NO_FSYNC
        asked |= Asked.FORCE_EMPTY if options.force_empty else 0
        given = options.rules is not None or options.units is not None or self._said.rules is not None
        asked |= Asked.RULES if given else 0
        asked |= Asked.LEFT if self._far == LEFT else 0
        asked |= 0 if known.is_whole else Asked.LOST_JOURNAL
        asked |= Asked.DAMAGED if known.wrong else 0
        keep = options.keep_undo
        line = encode_rules(self._line) if self._rules_now != NO_RULES or self._line.seconds else b""
        path = self._ends.far.rstrip(b"/") + b"/"
        meet = Meet(
            state.id or b"",
            other,
            tuple(generation + digest for generation, digest in known.marks),
            known.plans,
            asked,
            keep.size if keep is not None else None,
            keep.days if keep is not None else None,
            state.known_at(self._shown[self._far]),
            self._ends.own_place,
            line,
            self._keeps(),
        )
        if self._opened is None:
            yield Pace(0, self._options_sent.timeout)
            needs = FEATURE
            needs += f" {UNITED_XATTRS}" if options.xattrs else ""
            needs += f" {UNITED_ACLS}" if options.acls else ""
            needs += f" {UNITED_LINKS}" if options.hard_links else ""
            yield from send_open(Role.SOURCE, path, self._secret, self._options_sent, needs=needs)
            yield Send(meet, 0)
        else:
            yield from send_page(Subject.MEET, encode_message(meet), self._opened)
        yield Flush()

    def _keeps(self) -> Preserved:
        """Return what this side's file system keeps; where attributes take part, no kind of them that it
        does not."""
        if self._options.xattrs or self._options.acls:
            from rdc.uniting.attributes import keeps_of

            self._told_keeps = keeps_of(self._root)
            return self._told_keeps
        return self._storage.facts.keeps

    def _find_attributes(self, met: Met) -> None:
        """Find out which extended attributes take part, and read those of this side."""
        if self._told_keeps is None:
            return
        from rdc.uniting.attributes import AttributeSets, asked_kinds, lost_notice, read_sets, told_kinds

        asked = asked_kinds(xattrs=self._options.xattrs, acls=self._options.acls)
        kinds = told_kinds(asked, self._told_keeps, met.keeps)
        if asked & ~kinds:
            self._report(lost_notice(asked & ~kinds))
        self._sets = AttributeSets(kinds) if kinds else None
        if self._sets is not None:
            self._own_sets = read_sets(self._listing, self._sets)

    def _find_links(self) -> None:
        """Find out whether hard links can take part at this side, and which it has."""
        if not self._options.hard_links:
            return
        from rdc.uniting.hard_links import can_have_links, no_links_notice

        if can_have_links(self._root):
            self._own_ties = self._listing.ties()
        else:
            self._report(no_links_notice())

    def _met(self) -> Conversation[tuple[Met, int]]:
        """Wait for the other side's Met. Raises RdcError."""
        while self._opened is not None:
            subject, page, round_ = yield from rest_of((yield from next_message()))
            if subject is Subject.MET:
                return decode_page(Met, page), round_
            if subject is not Subject.STIRRED:
                raise ProtocolError(f"expected a page about MET, found {subject.name}")
        while True:
            received = yield Receive()
            if received is None:
                continue
            message = received.message
            if isinstance(message, Hello):
                if not knows(message, FEATURE):
                    raise RdcError(
                        f"{printable(self._shown[self._far])}: the rdc there cannot unite directories with"
                        " other machines yet; update it",
                        code=ExitCode.INCOMPATIBLE,
                    )
            elif isinstance(message, Met):
                return message, received.round + 1
            elif not isinstance(message, Opened):
                raise ProtocolError(f"expected Met, found {message.name}")

    def _related(self, memory: OwnMemory, met: Met, other: bytes) -> Related:
        far = Known(
            tuple((mark[:-MARK_DIGEST_BYTES], mark[-MARK_DIGEST_BYTES:]) for mark in met.marks),
            met.plans,
            not met.told & Told.LOST_JOURNAL,
            f"{printable(self._shown[self._far])}: what it kept of the pair is damaged"
            if met.told & Told.DAMAGED
            else "",
        )
        near = memory.known if other == met.root else Known((), (), True, "")
        return relate(*((near, far) if self._near == LEFT else (far, near)))


def _rules_in(met: Met) -> KeptRules:
    try:
        return decode_rules(met.rules)
    except RecordError as error:
        raise ProtocolError(f"the rules of a pair: expected {error}") from error


def ends_of(left: Location, right: Location) -> Ends:
    """Return both ends, one of which has a host. Raises RdcError if this machine's directory is missing."""
    near, far = (LEFT, right) if left.host is None else (RIGHT, left)
    here = left if near == LEFT else right
    if not os.path.isdir(here.path):
        raise RdcError(
            f"{printable(here.path)}: cannot unite it: expected a directory at the {SIDES[near]}, found none;"
            " nothing was done: mount or make it, then run again",
            code=ExitCode.FILE_IO,
        )
    own_place = location_here(os.path.realpath(here.path))
    shown = os.fsencode(str(left)), os.fsencode(str(right))
    return Ends(shown, near, here.path, far.path, own_place)
