"""The side that was dialled: it tells of its tree, does the steps that the dialler's plan has for it, and
keeps what both agree on.

It checks each step against its own listing, as the dialler does with its own. What it is about to do is in
its own journal, on disk, before the first of its steps. So a kill at either side leaves each side with what
its own next run has to know.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from contextlib import ExitStack

from rdc.errors import ExitCode, FileError, ProtocolError, RdcError, TrustError, printable
from rdc.files.base.store_guard import check_no_store
from rdc.files.own.record_log import RecordError
from rdc.lean.records import replace
from rdc.limits import PROBLEMS_WAITING
from rdc.model.options import KeepUndo
from rdc.model.sync import SyncOptions
from rdc.progress import Problem
from rdc.protocol.messages import Exchange, Meet, Met, Page, Role
from rdc.protocol.messages.uniting import Asked, Subject, Told
from rdc.protocol.wire.codec import encode as encode_message
from rdc.session.runtime.commands import Conversation, Idle, Send
from rdc.tree import filter_list
from rdc.uniting import exchanged
from rdc.uniting.ancestor_file import AgreedAttributes, DamagedError, Head, StoredAncestor
from rdc.uniting.columns import EMPTY, Common, SharedRow, parents, table_of, with_parents
from rdc.uniting.deciding import shared_row
from rdc.uniting.describe import (
    Listing,
    OwnContents,
    digest_of,
    drop_undone,
    encode_next,
    last_undo,
    text_of,
    was_undone,
)
from rdc.uniting.exchanged import (
    ADD,
    COPY,
    LINK,
    LINKS,
    MAKE,
    PART,
    REMOVE,
    RENAME,
    REPLACE,
    TIE,
    Action,
    Order,
    Outcome,
)
from rdc.uniting.file_systems import SideStorage, kept_of
from rdc.uniting.guards import room_of
from rdc.uniting.journal import OpenPlan
from rdc.uniting.merging import TEXT_BYTES, TEXTS_BYTES
from rdc.uniting.pages import FilesEnd, decode_page, do_late_steps, rest_of, send_page
from rdc.uniting.pair_rules import NO_RULES, KeptRules, decode_rules, encode_rules
from rdc.uniting.plan import Link, Part, Remove, SetAttributes, SetFields, Write
from rdc.uniting.renames import CopyHere, MakeDirectory, Rename
from rdc.uniting.rings import location_of, merged_edges, pack_edges, unpack_edges
from rdc.uniting.rows import (
    BARRED,
    DIRECTORY,
    ELSEWHERE,
    FILE,
    LEFT,
    NO_STAMP,
    RIGHT,
    Doubt,
    Node,
    Row,
    Stamp,
    stamp_after_failure,
)
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
from rdc.uniting.steps import Steps, writable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    from rdc.model.preserved import Preserved
    from rdc.session.serve import InvitedTree
    from rdc.uniting.attributes import AttributeSets
    from rdc.uniting.exchanged_sets import Given
    from rdc.uniting.plan import Intent, Step
    from rdc.uniting.rows import Ancestor

EMPTIED = "expected {}, as in the last run, found an empty directory; nothing was done: mount it, or use\
 --force-empty to go on with it as it is"


def answer_meeting(invited: InvitedTree) -> Conversation[None]:
    """Hold the answerer's side of a session that began with Meet, to the last of its meetings. Raises
    RdcError."""
    with ExitStack() as open_:
        watched: _Watched | None = None
        is_first = True
        while True:
            with ExitStack() as stack:
                side = _FarSide(stack, invited)
                ended = yield from side.run(is_first=is_first)
            is_first = False
            if ended is not None and ended[0] is Subject.WATCH:
                if watched is None:
                    watched = _Watched(invited, side.pair)
                    open_.callback(watched.close)
                ended = yield from watched.wait(ended[2])
            if ended is None:
                return
            subject, page, round_ = ended
            if subject is not Subject.MEET:
                raise ProtocolError(f"expected a page about MEET, found {subject.name}")
            invited = replace(invited, meet=decode_page(Meet, page), round=round_)


class _Watched:
    """This side's tree between two meetings."""

    def __init__(self, invited: InvitedTree, pair: bytes) -> None:
        """`pair`: the name of its state here."""
        try:
            from rdc.uniting.sentry import Sentry
        except ImportError as error:
            # watchdog cannot load without inotify.
            raise RdcError(
                f"the remote side cannot watch a directory, which needs Linux's inotify: {error}",
                code=ExitCode.USAGE,
            ) from error
        self._sentry = Sentry(lambda: invited.site.open(invited.path), pair)
        self._limit: str | None = None

    def wait(self, round_: int) -> Conversation[tuple[Subject, bytes, int] | None]:
        """Say once that the tree is other than the last run left it.

        Return the dialler's next page, which may come before that; None: it ended the session.
        """
        self._sentry.forget_settled()
        while not self._sentry.is_stirred():
            yield from self._tell_limit(round_)
            received = yield Idle(self._sentry.bell, self._sentry.due())
            if received is not None:
                return (yield from rest_of(received))
            self._sentry.quiet()
        yield from self._tell_limit(round_)
        yield from send_page(Subject.STIRRED, b"", round_)
        received = yield Idle()
        return None if received is None else (yield from rest_of(received))

    def _tell_limit(self, round_: int) -> Conversation[None]:
        """Say once that not all directories are watched, and why."""
        limit = self._sentry.limit
        if limit is not None and self._limit is None:
            self._limit = limit
            yield from send_page(Subject.STIRRED, limit.encode(), round_)

    def close(self) -> None:
        self._sentry.close()


class _FarSide:
    """One session."""

    def __init__(self, stack: ExitStack, invited: InvitedTree) -> None:
        self._stack = stack
        self._invited = invited
        self._meet = meet = invited.meet
        self._side = LEFT if meet.asked & Asked.LEFT else RIGHT
        self._dry = bool(meet.asked & Asked.DRY)
        try:
            self._root = invited.site.open(invited.path, writable=not self._dry)
        except FileError as error:
            # The run as a whole cannot go on, as with a directory of the dialler's machine.
            raise RdcError(str(error), code=ExitCode.FILE_IO) from error
        stack.callback(self._root.release)
        check_no_store(self._root.fileno(), invited.path.rstrip(b"/") or b"/")
        self._storage = SideStorage(self._root, invited.signer.catalog, self._hear, writes=not self._dry)
        self._keep = invited.keep_undo or (_kept(meet) if invited.rights.undo else None)
        self._problems: list[tuple[bytes, str]] = []
        self._listing: Listing | None = None
        """None: the rules were not those of this side."""
        self._ancestor: StoredAncestor | None = None
        self._plans: tuple[OpenPlan, ...] = ()
        self._common = Common((EMPTY, EMPTY))
        self._contents: OwnContents | None = None
        """None: no entry was described yet."""
        self._base: dict[bytes, Ancestor] = {}
        self._loaded: set[bytes] = set()
        """The directories of which the entries were described."""
        self._dropped: list[bytes] = []
        self._view = Node(b"", None)
        self._order: Order | None = None
        self._steps: Steps | None = None
        self._files: FilesEnd | None = None
        self._late: list[Action] = []
        self._has_begun = False
        self._edges: frozenset[bytes] | None = None
        """The other pairs that either side knows, if the dialler asked."""
        self._sets: AttributeSets | None = None
        """The extended attributes of both sides; None: they take no part."""
        self._own_sets: dict[bytes, bytes] = {}
        """The digests of the sets of this side's entries, by path."""
        self._told_keeps: Preserved | None = None
        """The attributes that this side keeps, in a run with attributes."""
        self._copied: dict[bytes, Row] = {}
        """The files that steps copied in place of a rename, by new path."""
        self._given: tuple[Given, ...] | None = None
        """The sets that this side gives to entries."""
        self._have: bytes | None = None
        """The page that says which sets both sides have."""
        self._ties: dict[bytes, int] | None = None
        """This side's names that share a file; None: hard links take no part."""
        self._tied: dict[bytes, int] | None = None
        """The names that share a file at both sides."""

    def _hear(self, event: object, /) -> None:
        if not isinstance(event, Problem) or event.code is ExitCode.OK:
            return
        if len(self._problems) < PROBLEMS_WAITING:
            self._problems.append((event.path_bytes, event.message))

    @property
    def _listed(self) -> Listing:
        if self._listing is None:
            raise ProtocolError("the two sides go by different rules")
        return self._listing

    @property
    def _has_acls(self) -> bool:
        """Return whether ACLs take part."""
        return self._sets is not None and self._sets.has_acls

    # The meeting

    @property
    def pair(self) -> bytes:
        """The name of the pair's state."""
        ids = self._state.id, self._meet.root
        if not all(ids):
            raise ProtocolError("nothing is watched before both directories have an id")
        return pair_name(id_ for id_ in ids if id_)

    def run(self, *, is_first: bool) -> Conversation[tuple[Subject, bytes, int] | None]:
        """Meet, and answer until the dialler goes on with something else, which is returned, or ends the
        session: None. `is_first`: the session begins with this meeting."""
        met, round_ = self._met(), self._invited.round
        if is_first:
            yield Send(met, round_)
        else:
            yield from send_page(Subject.MET, encode_message(met), round_)
        if met.told & Told.ROWS:
            yield from self._tell(round_)
        while (received := (yield Idle())) is not None:
            if isinstance(received.message, Page):
                subject, page, round_ = yield from rest_of(received)
                if subject in (Subject.MEET, Subject.WATCH):
                    return subject, page, round_
                yield from self._answer(subject, page, round_)
            elif isinstance(received.message, Exchange):
                yield from self._turn(received.message.role, received.round + 1)
            else:
                raise ProtocolError(f"expected a page or a turn, found {received.message.name}")
        return None

    def _met(self) -> Met:
        meet = self._meet
        force = bool(meet.asked & Asked.FORCE_EMPTY)
        if meet.known and not force and self._invited.site.is_bare(self._invited.path):
            raise self._emptied(meet.known)
        self._state = RootState(self._root, write=not self._dry, learn=self._storage.learn)
        self._stack.callback(self._state.close)
        if self._state.id is not None and self._state.id == meet.root:
            self._state.renew()
        self._pair = self._opened_pair()
        self._memory = self._remembered()
        others = self._others_rules()
        told, tree, entries = (0, b"", 0) if others else self._list()
        known = self._memory.known
        told |= 0 if known.is_whole else Told.LOST_JOURNAL
        told |= Told.DAMAGED if known.wrong else 0
        told |= Told.KEEPS_INODES if self._root.stable.inode else 0
        told |= 0 if self._invited.rights.delete else Told.NO_DELETIONS
        told |= 0 if self._invited.rights.replace else Told.NO_CHANGES
        room = room_of(self._root)
        return Met(
            self._state.id or b"",
            tuple(generation + digest for generation, digest in known.marks),
            known.plans,
            told,
            tree,
            entries,
            self._known_entries(),
            room.bytes,
            room.entries,
            location_of(self._root),
            others,
            self._keeps(),
        )

    def _keeps(self) -> Preserved:
        if self._told_keeps is not None:
            return self._told_keeps
        return self._storage.facts.keeps

    def _find_attributes(self, listing: Listing) -> None:
        """Find out which extended attributes take part, and read those of this side."""
        from rdc.uniting.attributes import AttributeSets, asked_kinds, keeps_of, read_sets, told_kinds

        self._told_keeps = keeps_of(self._root)
        asked = asked_kinds(xattrs=self._invited.xattrs, acls=self._invited.acls)
        kinds = told_kinds(asked, self._told_keeps, self._meet.keeps)
        self._sets = AttributeSets(kinds) if kinds else None
        if self._sets is not None:
            self._own_sets = read_sets(listing, self._sets)

    def _attributes_are_as(self, ancestor: StoredAncestor) -> bool:
        if self._sets is None:
            return True
        from rdc.uniting.attributes import are_as

        return are_as(ancestor, self._sets, self._own_sets)

    def _opened_pair(self) -> PairDirectory | None:
        ids = self._state.id, self._meet.root
        if not all(ids):
            return None
        pair = PairDirectory.open(self._state, pair_name(id_ for id_ in ids if id_), make=not self._dry)
        if pair is not None:
            self._stack.callback(pair.close)
        return pair

    def _others_rules(self) -> bytes:
        """Set the rules of this session, and return those that replace the dialler's because they are later;
        b"" for none."""
        kept = self._pair.rules() if self._pair is not None else None
        try:
            given = decode_rules(self._meet.rules) if self._meet.rules else KeptRules(NO_RULES, 0)
        except RecordError as error:
            raise ProtocolError(f"the rules of a pair: expected {error}") from error
        self._kept_rules, self._rules = kept, given
        self._filters = filter_list(given.rules.filters)
        if self._meet.asked & Asked.RULES or kept is None or kept.rules == given.rules:
            return b""
        later = (kept.seconds, encode_rules(kept)) > (given.seconds, encode_rules(given))
        return encode_rules(kept) if later else b""

    def _remembered(self, *, rows: bool = False) -> OwnMemory:
        ids = self._state.id, self._meet.root
        return OwnMemory(self._pair, ids, self._state.inode, rows=rows, damage=self._state.damage)

    def _related(self) -> Related:
        """Return what both sides have in common, as far as either knows."""
        meet = self._meet
        far = Known(
            tuple((mark[:-MARK_DIGEST_BYTES], mark[-MARK_DIGEST_BYTES:]) for mark in meet.marks),
            meet.plans,
            not meet.asked & Asked.LOST_JOURNAL,
            "damaged" if meet.asked & Asked.DAMAGED else "",
        )
        if not meet.root or (meet.other and meet.other != self._state.id):
            far = Known((), (), True, "")
        known = self._memory.known
        return relate(*((known, far) if self._side == LEFT else (far, known)))

    def _list(self) -> tuple[int, bytes, int]:
        """List the tree, and find what both had in common."""
        related = self._related()
        ancestor = self._memory.only(related, self._side)
        self._listing = Listing(self._root, self._filters, self._hear, self._state.clock)
        if not kept_of(self._meet.keeps, self._storage.facts.keeps).links:
            self._listing.leave_links()
        if self._invited.xattrs or self._invited.acls:
            self._find_attributes(self._listing)
        if self._invited.hard_links:
            from rdc.uniting.hard_links import can_have_links

            self._ties = self._listing.ties() if can_have_links(self._root) else None
        if ancestor is not None:
            try:
                _ = ancestor.table
            except DamagedError:
                self._memory = self._remembered(rows=True)
                related = self._related()
                ancestor = self._memory.only(related, self._side)
        if ancestor is None:
            return 0, exchanged.tree_digest(self._listed), self._listed.count
        self._ancestor, table = ancestor, ancestor.table
        generation = ancestor.head.generation
        self._plans = self._memory.counting(generation)
        agreed = self._ancestor.attributes(self._sets.kinds) if self._sets is not None else None
        self._common = Common((table, table), agreed)
        doubts = bool(self._plans or generation in self._meet.plans or related.notice)
        # A file system without hard links has to be told of, too.
        as_before = not self._invited.hard_links or self._ties == self._ancestor.ties
        as_before = as_before and self._attributes_are_as(self._ancestor)
        if not doubts and self._listed.is_as(self._ancestor) and as_before:
            return Told.UNCHANGED, b"", self._ancestor.count
        listed = self._ancestor.listed()
        if doubts or listed is None or self._sets is not None:
            self._describe_all()
        else:
            self._describe(self._listed.in_doubt(listed, self._listed.digests))
        return Told.ROWS, b"", self._listed.count

    def _describe_all(self) -> None:
        self._describe(self._listed.directories.keys() | self._common.directories())

    def _describe(self, directories: Iterable[bytes], *, first_view: bool = True) -> None:
        """Give each entry of these directories, and of those above them, its content, as the ancestor and its
        own stamps tell it. Those that come after others are unchanged.

        `first_view`: the tree is as it was listed, and gets them.
        """
        new = with_parents(directories) - self._loaded
        if self._contents is not None:
            self._loaded |= new
            self._base.update(self._common.load(new))
            found = self._listed.load(new)
            self._contents.settle_by_path(found)
            for path in found if first_view else ():
                self._view.make(path, self._listed.rows[path])
            return
        if self._ancestor is None:
            new |= with_parents(self._listed.changing() | self._listed.in_doubt((), {}))
        self._loaded |= new
        listing, base = self._listed, self._common.load(new)
        self._base = base
        listing.load(new)
        if self._sets is not None:
            from rdc.uniting.attributes import give_rows

            give_rows(listing, self._own_sets, base)
        listing.settle_recent()
        listing.bar_hidden(base, self._filters)
        if was_undone(self._root, self._ancestor):
            before = list(base)
            drop_undone(base, listing, self._side)
            self._dropped = [path for path in before if path not in base]
        checksum = bool(self._meet.asked & Asked.CHECKSUM) or self._ancestor is not None
        retied: frozenset[bytes] = frozenset()
        if self._ties is not None and self._ancestor is not None:
            from rdc.uniting import ties

            retied = ties.retied(self._ancestor.ties, self._ties)
        self._contents = OwnContents(base, listing, self._side, checksum=checksum, retied=retied)
        self._contents.settle()
        self._view = listing.node()

    def _tell(self, round_: int) -> Conversation[None]:
        numbers = [self._common.number(path) for path in self._listed.linked()]
        told = exchanged.tell(
            self._listed.rows,
            self._listed.barred,
            self._plans,
            self._common,
            self._dropped,
            self._side,
            [number for number in numbers if number is not None],
        )
        yield from send_page(Subject.ROWS, exchanged.pack_told(told), round_)
        if self._sets is not None:
            from rdc.uniting.exchanged_sets import pack_sets

            rows = exchanged.taking_part(self._listed.rows, self._listed.barred)
            found = {path: row.attributes for path, row in rows.items() if row.attributes}
            yield from send_page(Subject.SETS, pack_sets(found, self._sets), round_)
        if self._invited.hard_links:
            from rdc.uniting.exchanged_sets import pack_ties

            yield from send_page(Subject.LINKS, pack_ties(self._ties), round_)

    def _known_entries(self) -> int:
        """Return how many entries this side remembers of a directory at the dialler's place."""
        return self._state.known_at(self._meet.location)

    def _emptied(self, had: int) -> RdcError:
        entries = "1 entry" if had == 1 else f"{had:,} entries"
        shown = printable(self._root.label)
        return RdcError(f"{shown}: {EMPTIED.format(entries)}", code=ExitCode.FILE_IO)

    # Pages

    def _answer(self, subject: Subject, page: bytes, round_: int) -> Conversation[None]:
        if subject is Subject.TELL:
            self._describe_all()
            yield from self._tell(round_)
        elif subject is Subject.CONTENTS:
            paths = exchanged.checked("files to read", exchanged.unpack_paths, page)
            self._describe(parents(paths))
            digests = [self._digest(path) for path in paths]
            yield from send_page(Subject.DIGESTS, exchanged.pack_digests(digests), round_)
        elif subject is Subject.READ:
            paths = exchanged.checked("texts to read", exchanged.unpack_paths, page)
            texts = self._texts(paths)
            yield from send_page(Subject.TEXTS, exchanged.pack_texts(texts), round_)
        elif subject is Subject.TRY:
            yield from send_page(Subject.TRIED, bytes([self._state.can_rename()]), round_)
        elif subject is Subject.EDGES:
            edges = self._state.edges(self._meet.location, self._meet.location)
            told = exchanged.checked("pairs of the other side", unpack_edges, page)
            if self._state.id is not None:
                self._edges = merged_edges(self._state.id, edges, self._meet.root, told)
            yield from send_page(Subject.KNOWN, pack_edges(edges), round_)
        elif self._dry:
            raise ProtocolError(f"{subject.name} in a dry run")
        elif subject is Subject.GIVE:
            self._take_given(page)
        elif subject is Subject.HAVE:
            if self._sets is None:
                raise ProtocolError("attributes of both sides where none take part")
            self._have = page
        elif subject is Subject.TIED:
            self._take_tied(page)
        elif subject is Subject.STEPS:
            self._begin(exchanged.checked("steps", exchanged.unpack_order, page))
        elif subject is Subject.AGREE:
            self._agree(exchanged.checked("what is agreed", exchanged.unpack_agreed, page))
            yield from send_page(Subject.AGREED, b"", round_)
        else:
            self._keep_rules()
            if self._pair is not None:
                self._pair.end()

    def _take_given(self, page: bytes) -> None:
        """Note the sets that this side is to give to entries."""
        if self._sets is None or self._given is not None or self._order is not None:
            raise ProtocolError("attributes to set where none take part, or too late")
        from rdc.uniting.exchanged_sets import unpack_given

        sets = self._sets
        given = exchanged.checked("attributes to set", lambda data: unpack_given(data, sets), page)
        if not self._invited.rights.replace and not all(each.is_new for each in given):
            raise TrustError("nothing may be changed there")
        self._given = given

    def _take_tied(self, page: bytes) -> None:
        """Note which names share a file at both sides."""
        if self._ties is None:
            raise ProtocolError("hard links of both sides where none take part")
        from rdc.uniting.exchanged_sets import unpack_ties

        self._tied = exchanged.checked("hard links of both sides", unpack_ties, page)

    def _settings(
        self, given: Iterable[Given], written: Mapping[bytes, Row]
    ) -> list[tuple[int, SetAttributes]]:
        """Return the steps that give sets to entries. `written`: the entries that late steps put in their
        places."""
        found: list[tuple[int, SetAttributes]] = []
        for each in given:
            copied = self._copied.get(each.path)
            row = written.get(each.path, copied) if each.is_new else self._row(each.path)
            if row is None:
                raise ProtocolError(f"attributes of '{printable(each.path)}', which no step makes")
            if row.kind not in (FILE, DIRECTORY):
                raise ProtocolError(f"attributes of '{printable(each.path)}', which can have none")
            before = None if each.is_new else row.attributes
            old = self._view.find(each.path)
            had = old is not None and bool(getattr(old.row, "attributes", b""))
            replaces = each.is_new and (row is copied or had)
            mode = each.mode if self._has_acls else row.mode
            step = SetAttributes(each.path, row, before, each.wanted, mode, False, replaces)
            found.append((self._side, step))
        return found

    def _agreed_sets(self, paths: Sequence[bytes]) -> AgreedAttributes | None:
        if self._sets is None:
            return None
        from rdc.uniting.exchanged_sets import unpack_agreed_sets

        have = self._have or b""
        digests = exchanged.checked(
            "attributes of both sides", lambda data: unpack_agreed_sets(data, paths), have
        )
        return AgreedAttributes(self._sets.kinds, digests)

    def _below(self, tops: Iterable[bytes]) -> set[bytes]:
        """Return directories of this side and of the ancestor, and all directories below them."""
        known = sorted(self._listed.directories.keys() | self._common.directories())
        found: set[bytes] = set()
        for top in tops:
            found.add(top)
            found.update(known[bisect_left(known, top + b"/") : bisect_left(known, top + b"0")])
        return found

    def _digest(self, path: bytes) -> bytes | None:
        row = self._listed.rows.get(path)
        if row is None or row.kind != FILE:
            raise ProtocolError(f"'{printable(path)}' is no file of this side")
        return digest_of(self._listed, path, row)

    def _texts(self, paths: Sequence[bytes]) -> list[bytes | None]:
        """Return the contents of files that were listed, as far as they are short enough."""
        texts: list[bytes | None] = []
        left = TEXTS_BYTES
        for path in paths:
            row = self._row(path)
            if row.kind != FILE:
                raise ProtocolError(f"'{printable(path)}' is no file of this side")
            text = text_of(self._root, path, min(TEXT_BYTES, left))
            left -= len(text or b"")
            texts.append(text)
        return texts

    # Steps

    def _begin(self, order: Order) -> None:
        """Note what is about to happen, and do what precedes all contents."""
        if self._order is not None:
            raise ProtocolError("steps came already")
        named = [name for action in order.actions for name in (action.path, action.new) if name]
        named += [each.path for each in self._given or ()]
        moved = [action.path for action in order.actions if (action.what, action.kind) == (RENAME, DIRECTORY)]
        self._describe(
            parents((*named, *order.intents, *order.wanted)) | (self._below(moved) if moved else set())
        )
        base = self._ancestor.head.generation if self._ancestor is not None else bytes(8)
        if order.generation != base or self._pair is None:
            raise ProtocolError("steps that begin with another ancestor")
        self._check_rights(order)
        if self._ties is not None:
            self._describe(parents(self._ties))
        elif any(action.what in (PART, *LINKS) for action in order.actions):
            raise ProtocolError("hard links where none take part")
        self._order = order
        self._problems.clear()
        first: list[Step] = []
        actions = list(order.actions)
        while actions and (
            actions[0].what == MAKE
            or (actions[0].what == RENAME and (actions[0].path, actions[0].new) in order.renames)
        ):
            first.append(self._step(actions.pop(0)))
        if self._ancestor is not None:
            intents = {path: self._intent(path, *sides) for path, sides in order.intents.items()}
            self._pair.begin(OpenPlan(order.generation, intents, order.renames, True))
            self._has_begun = True
        while actions and actions[0].what in (RENAME, COPY):
            first.append(self._step(actions.pop(0)))
        self._late = actions
        self._storage.learn()
        self._storage.agree(self._meet.keeps)
        root = writable(self._root, self._keep, fsync=self._fsync, sheds_acls=self._has_acls)
        self._steps = Steps((root, root), self._hear, None, fsync=self._fsync, sets=self._sets)
        self._stack.callback(self._steps.close)
        self._stack.enter_context(self._steps)
        self._listed.sweep(
            parents(
                action.path
                for action in order.actions
                if action.what in (ADD, REPLACE) and action.kind == FILE
            )
        )
        options = SyncOptions(owner=False, group=False, fsync=self._fsync)
        self._files = FilesEnd(
            self._steps.root(self._side), self._invited.secret, self._invited.signer, options
        )
        made = {step.path for step in first if isinstance(step, MakeDirectory)}
        self._copied.update((step.new, step.row) for step in first if isinstance(step, CopyHere))
        some = [each for each in self._given or () if each.path in made or each.path in self._copied]
        self._steps.expect(self._settings(some, {}))
        self._steps.do([(self._side, step) for step in first])

    @property
    def _fsync(self) -> bool:
        return not self._meet.asked & Asked.NO_FSYNC

    def _check_rights(self, order: Order) -> None:
        what = {action.what for action in order.actions}
        if not self._invited.rights.delete and REMOVE in what:
            raise TrustError("nothing may be deleted there")
        if not self._invited.rights.replace and what - {MAKE, ADD, LINK}:
            raise TrustError("nothing may be replaced there")

    def _intent(self, path: bytes, own: bool, other: bool) -> Intent:
        node = self._view.find(path)
        row = node.row if node is not None else None
        stamp = row.stamp if isinstance(row, Row) and row.kind != BARRED else NO_STAMP
        return stamp if own else None, ELSEWHERE if other else None

    def _row(self, path: bytes) -> Row:
        node = self._view.find(path)
        if node is None or not isinstance(node.row, Row) or node.row.kind == BARRED:
            raise ProtocolError(f"a step at '{printable(path)}', where nothing was listed")
        return node.row

    def _step(self, action: Action) -> Step:
        """Return the step of an action, which has to fit this side's tree, and apply it to that tree."""
        path = action.path
        match action.what:
            case exchanged.MAKE:
                row = self._new_row(action)
                self._put(path, row)
                return MakeDirectory(path, row)
            case exchanged.RENAME:
                row = self._row(path)
                self._need_free(action.new)
                node = self._view.find(path)
                if node is not None:
                    node.detach()
                    node.attach(self._view, action.new)
                return Rename(path, action.new, row)
            case exchanged.COPY:
                row = self._row(path)._replace(mode=action.mode)
                self._put(action.new, row)
                return CopyHere(path, action.new, row)
            case exchanged.SET:
                return SetFields(path, self._row(path), action.mode, action.mtime_ns)
            case exchanged.REMOVE:
                row = self._row(path)
                return Remove(path, row)
            case exchanged.PART:
                return Part(path, self._new_row(action), self._file_row(path))
        replaced = self._row(path) if action.what == REPLACE else None
        return Write(path, self._new_row(action), replaced, returns=False)

    def _file_row(self, path: bytes) -> Row:
        row = self._row(path)
        if row.kind != FILE:
            raise ProtocolError(f"a hard link of '{printable(path)}', which is no file")
        return row

    def _link(self, action: Action, made: Set[bytes]) -> Link:
        """Return the step of an action that makes a hard link. `made`: files that other steps make."""
        path, source, is_new = action.path, action.new, action.what == LINK
        origin = None if source in made else self._file_row(source)
        replaced = None if is_new else self._file_row(path)
        return Link(path, source, origin, self._new_row(action), replaced, action.what != TIE)

    def _new_row(self, action: Action) -> Row:
        stamp = Stamp(action.size, action.mode, action.listed_mtime_ns, 0, 0)
        return Row(
            action.kind, action.target, action.mode, action.mtime_ns, 0, None, stamp, Doubt.NONE, False, b""
        )

    def _put(self, path: bytes, row: Row) -> None:
        self._need_free(path)
        self._view.make(path, row)

    def _need_free(self, path: bytes) -> None:
        if self._view.find(path) is not None:
            raise ProtocolError(f"a step that needs '{printable(path)}' free, where something was listed")

    # Turns of files

    def _turn(self, role: Role, round_: int) -> Conversation[None]:
        steps, order, files = self._steps, self._order, self._files
        if steps is None or order is None or files is None:
            raise ProtocolError("a turn without steps")
        if role is Role.SOURCE:
            rows: dict[bytes, Row] = {}
            for path in order.wanted:
                node = self._view.find(path)
                if node is not None and isinstance(node.row, Row) and node.row.kind == FILE:
                    rows[path] = node.row
            others = yield from files.serve(rows, round_)
            steps.served(self._side, rows, others)
            return
        late = [self._step(action) for action in self._late if action.what not in LINKS]
        written = {step.path: step.row for step in late if isinstance(step, (Write, Part))}
        links = [self._link(action, written.keys()) for action in self._late if action.what in LINKS]
        settings = self._settings(self._given or (), written)
        steps.expect(settings)
        round_ = yield from do_late_steps(
            steps, self._side, late, files, self._listed.temporaries, self._hear, round_, turn=True
        )
        self._late = []
        steps.set_attributes(settings)
        if self._ties is not None:
            from rdc.uniting.hard_links import files_in_play

            done = [*late, *(step for _, step in settings), *links]
            steps.link(self._side, links, files_in_play(done, self._ties, self._view))
        steps.finish()
        self._storage.finish()
        outcome = Outcome(tuple(sorted(steps.failed[self._side])), tuple(self._problems), steps.digests)
        yield from send_page(Subject.OUTCOME, exchanged.pack_outcome(outcome), round_)
        if self._given is not None:
            from rdc.uniting.exchanged_sets import pack_unset

            yield from send_page(Subject.UNSET, pack_unset(steps.unset), round_)

    # The end

    def _agree(self, agreed: exchanged.Agreed) -> None:
        """Keep what both sides have in common. Raises ProtocolError, RdcError."""
        self._describe_agreed(agreed)
        if self._order is None:
            self._listed.sweep()
        if self._steps is not None:
            self._steps.close()
        pair = self._pair
        if pair is None or self._state.id is None:
            raise ProtocolError("nothing can be agreed without two directories")
        base = None
        if self._ancestor is not None:
            base = {path: shared_row(row) for path, row in self._common.rows.items()}
        rows = exchanged.expected_rows(base, agreed.moves, self._listed.rows)
        for path in agreed.gone:
            rows.pop(path, None)
        rows.update(agreed.rows)
        paths = sorted(rows)
        for path in paths:
            parent = path.rpartition(b"/")[0]
            if parent and (parent not in rows or rows[parent].kind != DIRECTORY):
                raise ProtocolError("what is agreed has an entry without its directory")
        if any(path not in rows or rows[path].kind != FILE for path in self._tied or ()):
            raise ProtocolError("what is agreed has a hard link of something that is no file")
        torn, kept = frozenset(agreed.torn), frozenset(agreed.kept)
        before = exchanged.relabelled(self._common.rows, agreed.moves) if torn or kept else {}
        stamps = [
            self._stamp(path, rows[path], before.get(path, path), is_kept=path in kept, is_torn=path in torn)
            for path in paths
        ]
        head = Head(
            agreed.generation,
            self._state.id,
            self._meet.root,
            self._state.inode,
            int(time.time()),
            self._meet.location,
            last_undo(self._root, self._keep),
            location=self._meet.location,
        )
        added = table_of(paths, [rows[path] for path in paths], stamps)
        numbers, sets, side = self._common.numbers, self._agreed_sets(paths), self._listed
        encoded = encode_next(head, added, self._loaded, self._ancestor, numbers, side, sets, self._tied)
        if encoded.shared[:MARK_DIGEST_BYTES] != agreed.shared:
            raise ProtocolError("the two sides would remember different things")
        if not self._has_begun and self._ancestor is not None:
            # A kill between the two ends is then known for what it is.
            pair.begin(OpenPlan(self._ancestor.head.generation, {}, frozenset(), True))
            self._has_begun = True
        pair.prepare(encoded)
        if self._edges is not None:
            self._state.note_edges(self._edges)
        pair.commit()
        self._keep_rules()
        pair.note_conflicts(agreed.conflicts, self._side)

    def _describe_agreed(self, agreed: exchanged.Agreed) -> None:
        """Describe the entries that what is agreed is about, by the names that they had."""
        old_names = {new: old for old, new in agreed.moves}
        named = {*agreed.gone, *agreed.rows, *agreed.kept, *agreed.torn, *old_names, *old_names.values()}
        named.update(self._tied or ())
        before = set()
        for path in named:
            above, below = path, b""
            while above and above not in old_names:
                above, slash, name = above.rpartition(b"/")
                below = slash + name + below
            before.add(old_names[above] + below if above else path)
        moved = self._below(old_names.values()) if old_names else set()
        self._describe(parents(named | before) | moved, first_view=False)

    def _stamp(self, path: bytes, shared: SharedRow, old: bytes, *, is_kept: bool, is_torn: bool) -> Stamp:
        """Return the stamp of this side's entry. `old`: where the ancestor has it."""
        before = self._common.rows.get(old)
        found = self._steps.stamps[self._side].get(path) if self._steps is not None else None
        if is_kept and before is not None:
            listed = self._listed.rows.get(old)
            return stamp_after_failure(before.stamps[self._side], listed.stamp if listed else NO_STAMP, found)
        node = self._view.find(path)
        if found is None:
            row = node.row if node is not None else self._listed.rows.get(path)
            found = row.stamp if isinstance(row, Row) else NO_STAMP
        if shared.kind == DIRECTORY:
            found = Stamp(0, found.mode, 0, found.inode, 0)
        if is_torn:
            # Both modes have to be changes in the next run, too.
            found = found._replace(mode=shared.mode, ctime_ns=0)
        return found

    def _keep_rules(self) -> None:
        if self._pair is None or self._rules == self._kept_rules:
            return
        if self._kept_rules is None and self._rules.rules == NO_RULES:
            return
        self._pair.keep_rules(self._rules)
        self._kept_rules = self._rules


def _kept(meet: Meet) -> KeepUndo | None:
    if meet.keep_bytes is not None:
        return KeepUndo(size=max(1, meet.keep_bytes))
    return KeepUndo(days=meet.keep_days) if meet.keep_days is not None else None
