"""The request for a session, and the answering side, which takes the role that the dialler asks for."""

from __future__ import annotations

import os

from rdc.catalog.catalog import user_catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.store import FactsAlone, NoCatalog
from rdc.errors import ExitCode, ProtocolError, RdcError, UsageError, printable
from rdc.lean.records import Record, replace
from rdc.limits import RULES_BYTES
from rdc.protocol.connection import DIALECT, READS_FRESH, SPECIALS, Connection, knows
from rdc.protocol.messages import Describe, Follow, Hello, Meet, Open, Opened, Role, Rules, Watch
from rdc.protocol.wire.options import UNITED_ACLS, UNITED_LINKS, UNITED_XATTRS, rule_bytes
from rdc.session.runtime.commands import Conversation, EventRelay, Receive, Send, entries_memory, pace_of
from rdc.session.trees.destination_root import asked_attributes, keeps, open_destination
from rdc.session.trees.sites import ANYWHERE, Site, announced
from rdc.tree import filter_list
from rdc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.catalog.store import SignatureStore
    from rdc.chunking import ChunkParams
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.model.options import KeepUndo
    from rdc.model.selection import DirectoryRules, FilterRule, SelectedPaths
    from rdc.model.sync import SyncOptions
    from rdc.session.trees.source_tree import SourceTree
    from rdc.tree.filters import FilterList


# How the dialler asks for a session: Open, and the filter rules that have no room in it.


def send_open(
    role: Role,
    path: bytes,
    secret: bytes,
    options: SyncOptions,
    *,
    selects: bool = False,
    needs: str | None = None,
) -> Conversation[None]:
    """Ask for a session. `role`: that the answerer takes. `selects`: Selected messages follow. `needs`: one
    more feature that the session cannot do without."""
    open_ = Open.asking(role, path, secret, options, selects=selects)
    if needs is not None:
        open_ = replace(open_, needs=" ".join(filter(None, (open_.needs, needs))))
    yield Send(open_, 0)
    if open_.rules_follow:
        parts = list(_parts(options.rules))
        for number, part in enumerate(parts):
            yield Send(Rules(part, number == len(parts) - 1), 0)


def _parts(
    rules: Sequence[FilterRule | DirectoryRules],
) -> Iterator[tuple[FilterRule | DirectoryRules, ...]]:
    first = size = 0
    for number, rule in enumerate(rules):
        more = rule_bytes(rule)
        if size + more > RULES_BYTES:
            yield tuple(rules[first:number])
            first, size = number, 0
        size += more
    yield tuple(rules[first:])


def receive_rules() -> Conversation[tuple[FilterRule | DirectoryRules, ...]]:
    """Return the rules that follow an Open. Raises ProtocolError for any other message."""
    rules: list[FilterRule | DirectoryRules] = []
    while True:
        received = yield Receive()
        if received is None or not isinstance(received.message, Rules):
            raise ProtocolError("expected Rules")
        rules += received.message.rules
        if received.message.last:
            return tuple(rules)


# The answering side of a session: takes the role that the dialler asks for.


class UniteRights(Record):
    """The rights of a dialler in a tree that it unites with its own."""

    replace: bool = True
    delete: bool = True
    undo: bool = True
    """Old versions are kept as the dialler asks."""


class Admitted(Record):
    """The rights that this side grants to an Open."""

    site: Site
    path: bytes
    """Relative to `site`."""
    options: SyncOptions
    destination: bytes | None = None
    """The path that the tree goes to, if that is in this process."""
    uses_content: bool = True
    """The permission to use content, as in Terms."""
    rights: UniteRights = UniteRights()
    opened: SourceTree | None = None
    """The tree that is sent, if this process has opened it already; the caller releases it."""


Admission: TypeAlias = "Callable[[Open], Admitted]"
"""Decides what an Open may have. It refuses with an RdcError, which goes to the remote side."""


def as_asked(
    open_: Open,
    destination: bytes | None = None,
    *,
    munge_links: bool = False,
    fake_super: bool = False,
    opened: SourceTree | None = None,
) -> Admitted:
    """Grant everything: a peer that can start this process may do what the process's user may.

    `destination`, `opened`: as in Admitted. `munge_links`, `fake_super`: of SyncOptions, which no Open
    carries.
    """
    options = replace(open_.asked, munge_links=munge_links, fake_super=fake_super)
    return Admitted(ANYWHERE, open_.path or b".", options, destination, opened=opened)


def greeting(params: ChunkParams) -> Hello:
    """Return the first message of each side."""
    return DIALECT.hello(f"rdc {__version__}", params.id)


class FollowedTree(Record):
    """The tree that a remote side asks to follow."""

    site: Site
    path: bytes
    """Relative to `site`."""
    name: str
    """The path as the remote side gave it, printable."""
    options: SyncOptions
    secret: bytes
    signer: FileSigner
    follow: Follow


class InvitedTree(Record):
    """The tree that a remote side asks to bring together with its own."""

    site: Site
    path: bytes
    """Relative to `site`."""
    secret: bytes
    signer: FileSigner
    keep_undo: KeepUndo | None
    """The data kept for an undo, whatever the remote side asks; None: as it asks."""
    rights: UniteRights
    meet: Meet
    round: int
    """The round of the answer to `meet`."""
    xattrs: bool = False
    """True if extended attributes take part."""
    acls: bool = False
    """True if ACLs take part."""
    hard_links: bool = False
    """True if hard links take part."""


Meeting: TypeAlias = "Callable[[InvitedTree], Conversation[None]]"
"""Continues a session whose remote side sent Meet."""

Following: TypeAlias = "Callable[[FollowedTree], Conversation[None]]"
"""Continues a session whose remote side sent Follow."""


def answer(
    signer: FileSigner,
    admit: Admission = as_asked,
    following: Following | None = None,
    clones: StagedClones | None = None,
    meeting: Meeting | None = None,
) -> Conversation[None]:
    """Hold the conversation of the side that was dialled; the dialler chooses its role.

    `following`: follows a tree; None if this platform cannot. `meeting`: brings trees together; None if this
    side does not. `clones`: takes clones of files for a destination in this process. Raises ProtocolError for
    an unexpected message.
    """
    open_, hello, round_ = yield from _receive_open()
    knows_nodes = knows(hello, SPECIALS)
    admitted = admit(open_)
    yield pace_of(admitted.options)
    if open_.rules_follow:
        rules = yield from receive_rules()
        admitted = replace(admitted, options=replace(admitted.options, rules=rules))
    filters = filter_list(admitted.options.filter_rules)
    selected: tuple[SelectedPaths, ...] | None = None
    if open_.selects:
        from rdc.session.selecting import receive_selected

        selected = yield from receive_selected()
    elif admitted.options.files_from is not None:
        from rdc.session.selecting import send_listed

        listed = admitted.options.files_from
        selected = yield from send_listed(listed, admitted.site, admitted.path, open_.role, round_)
    if READS_FRESH in (open_.needs or "").split(" "):
        signer, knows_nodes = FileSigner(signer.params, FactsAlone(signer.catalog)), False
    if not admitted.uses_content:
        # The signatures of the catalog would tell of content.
        signer = FileSigner(signer.params, FactsAlone(signer.catalog))
    if open_.role is Role.SOURCE:
        yield from _answer_as_source(
            admitted, open_, filters, signer, following, clones, selected, round_, knows_nodes, meeting
        )
    else:
        yield from _answer_as_destination(admitted, open_, filters, signer, selected, round_, knows_nodes)


def _receive_open() -> Conversation[tuple[Open, Hello | None, int]]:
    """Return the dialler's Open, its Hello, and the round of the answer."""
    received, hello = (yield Receive()), None
    if received is not None and isinstance(received.message, Hello):
        # Two halves in one process exchange no Hello.
        hello, received = received.message, (yield Receive())
    if received is None or not isinstance(received.message, Open):
        raise ProtocolError("expected Open")
    return received.message, hello, received.round + 1


def _answer_as_source(
    admitted: Admitted,
    open_: Open,
    filters: FilterList,
    signer: FileSigner,
    following: Following | None,
    clones: StagedClones | None,
    selected: Sequence[SelectedPaths] | None,
    round_: int,
    knows_nodes: bool,
    meeting: Meeting | None,
) -> Conversation[None]:
    """Send a tree of this machine, or follow it or bring it together with another one, if the dialler asks
    for that. `knows_nodes`: the remote side knows special files by their kinds."""
    from rdc.session.source.conversation import Source
    from rdc.session.trees.source_tree import SourceTree

    site, path, options = admitted.site, admitted.path, admitted.options
    if admitted.opened is not None:
        tree = admitted.opened
    elif selected is None:
        tree = SourceTree.open(path, site, options, destination=admitted.destination)
    else:
        from rdc.session.trees.selected_tree import open_selected

        tree = open_selected(selected, options, site, destination=admitted.destination)
    try:
        yield Send(Opened(), round_)
        received = yield Receive()
        if received is not None and isinstance(received.message, Meet):
            if meeting is None or selected is not None or tree.only is not None:
                raise RdcError("this side brings no directories together here", code=ExitCode.USAGE)
            needs = (open_.needs or "").split(" ")
            invited = InvitedTree(
                site,
                path,
                open_.secret,
                signer,
                options.keep_undo,
                admitted.rights,
                received.message,
                received.round + 1,
                UNITED_XATTRS in needs,
                UNITED_ACLS in needs,
                UNITED_LINKS in needs,
            )
            yield from meeting(invited)
            return
        if received is not None and not isinstance(received.message, Follow):
            if knows_nodes:
                tree = tree.showing(options.nodes)
            half = Source(
                tree,
                filters,
                open_.secret,
                signer,
                EventRelay(None, items=options.items),
                boundary=tree.boundary(options),
                hard_links=options.hard_links,
                kinds=asked_attributes(options),
                names_owners=options.maps_owners,
                clones=clones,
                removal=tree.removal(options),
            )
            yield from half.run(received)
            return
    finally:
        tree.release()
    if received is None or not isinstance(received.message, Follow):
        raise ProtocolError("expected Describe or Follow")
    if selected is not None:
        raise RdcError("a watch follows one directory, without a selection", code=ExitCode.USAGE)
    if following is None:
        raise RdcError("this side cannot follow a directory: that needs Linux's inotify", code=ExitCode.USAGE)
    name = printable(open_.path)
    yield from following(FollowedTree(site, path, name, options, open_.secret, signer, received.message))


def _answer_as_destination(
    admitted: Admitted,
    open_: Open,
    filters: FilterList,
    signer: FileSigner,
    selected: Sequence[SelectedPaths] | None,
    round_: int,
    knows_nodes: bool,
) -> Conversation[None]:
    """Bring a tree of this machine up to date, once or for as long as the dialler watches its source.
    `knows_nodes`: the remote side knows special files by their kinds."""
    site, path, options = admitted.site, admitted.path, admitted.options
    from rdc.session.transfer.destination import Destination, Terms, mapping_of

    selection = None
    if selected is not None:
        from rdc.session.trees.selected_tree import selection_of

        selection = selection_of(selected, options)
    terms = Terms(
        options,
        filters,
        open_.secret,
        signer,
        selection=selection,
        owners=mapping_of(options),
        uses_content=admitted.uses_content,
    )
    whole = terms.wants_listing(path, site)
    preserved = keeps(path, options, site, catalog=signer.catalog)
    yield Send(Opened(), round_)
    yield Send(Describe(whole, preserved), round_)
    received = yield Receive()
    if received is not None and isinstance(received.message, Watch):
        if selection is not None:
            raise RdcError("a watch follows one directory, without a selection", code=ExitCode.USAGE)
        if options.maps_owners:
            raise UsageError("rdc watch keeps owners by number; use rdc sync")
        if options.keep_undo is not None:
            raise UsageError("rdc watch keeps nothing to undo, and this directory asks for it: use rdc sync")
        from rdc.session.destination.change_turn import LiveDestination

        live = LiveDestination(path, site, terms, whole=whole, preserved=preserved)
        yield from live.run(received.message)
        return
    start, round_ = announced(received, None if selection is None else b"")
    from rdc.files.base.store_guard import check_opened
    from rdc.session.destination.conversation import WholeTurn

    destination_root = open_destination(
        path, start, options, preserved, site, has_top=terms.has_top(start), knows_nodes=knows_nodes
    )
    try:
        check_opened(destination_root.root.fileno(), start.only, path, options, start.store)
        events = EventRelay(None, items=options.items)
        context = Destination(terms, destination_root, start, events, preserved)
        half = WholeTurn(context, whole=whole, in_sync_store=terms.in_sync_store)
        yield from half.run(round_)
    finally:
        destination_root.release()


def serve_stdio(
    following: Following | None = None,
    admit: Admission | None = None,
    max_memory: int | None = None,
    meeting: Meeting | None = None,
) -> ExitCode:
    """Answer one session on stdin and stdout and return the process's exit code.

    `following`, `meeting`: as in `answer`.

    `admit`: decides for a confined peer, as in `answer`; None for a peer that may do all that this process
    may. A confined session has no catalog, because a catalog lies outside the served directory. `max_memory`:
    bytes for the entries that the remote side announces; None for a share of this machine's memory.
    """
    from rdc.session.runtime.driver import run
    from rdc.transport.pipes import StdioTransport

    catalog: SignatureStore = user_catalog(os.environ) if admit is None else NoCatalog()
    signer = FileSigner(catalog=catalog)
    transport = StdioTransport()
    try:
        connection = Connection(False, greeting(signer.params))
        connection.entries.limit = entries_memory(max_memory)
        run(answer(signer, admit or as_asked, following, meeting=meeting), connection, transport)
    except RdcError as error:
        # The remote side received the error and shows it to its user.
        return error.code
    except KeyboardInterrupt:
        # A Ctrl-C may reach both sides; the dialling side reports it.
        return ExitCode.INTERRUPTED
    finally:
        transport.close()
        signer.close()
        catalog.close()
    return ExitCode.OK
