"""One session of a sync, as the dialling side holds it, and its run with the other end.

That end is in this process, behind a remote shell, or in a daemon.
"""

from __future__ import annotations

import contextlib
import os
from functools import partial

from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, ProtocolError, StreamError, TrustError
from rdc.lean.records import replace
from rdc.limits import DAEMON_TIMEOUT_SECONDS
from rdc.model.location import Location, RemoteShell, is_web
from rdc.model.runs import MessageCost, SyncReport
from rdc.model.selection import SelectedPaths
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import SPECIALS, Connection, knows
from rdc.protocol.messages import Describe, Hello, Opened, Role, Selected
from rdc.session.runtime.commands import (
    Conversation,
    EventRelay,
    Receive,
    Send,
    entries_memory,
    pace_of,
)
from rdc.session.serve import answer, as_asked, greeting, send_open
from rdc.session.trees.destination_root import (
    asked_attributes,
    asked_metadata,
    keeps,
    keeps_owner,
    open_destination,
    wants_listing,
)
from rdc.session.trees.sites import ANYWHERE, announced, entry_of
from rdc.tree import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.progress import Reporter, StopSignal
    from rdc.protocol.messages import Done
    from rdc.session.far.far_host import FarHost, Wire
    from rdc.session.runtime.in_process import InProcessLink
    from rdc.session.transfer.destination import Terms
    from rdc.session.trees.source_tree import SourceTree


# One session of a sync, as the dialling side holds it. rdc.session.sync_run connects the other side.

SECRET_BYTES = 16
# Exit code 23 (not copied) outweighs 24 (vanished), as in rsync.
PRECEDENCE = (ExitCode.PARTIAL, ExitCode.VANISHED, ExitCode.MAX_DELETE)


def new_secret() -> bytes:
    """Return a random key for one session's short digests and fingerprints."""
    return os.urandom(SECRET_BYTES)


class SyncRun:
    """One sync, seen from the dialling side.

    `fetch` and `send` are its conversations; one of them runs. Checks and listings replace some steps.
    """

    def __init__(
        self,
        source: Location,
        destination: Location,
        options: SyncOptions,
        reporter: Reporter,
        catalog: SignatureStore,
        stop: StopSignal | None = None,
        selected: Sequence[SelectedPaths] | None = None,
    ) -> None:
        """Take `selected`: the paths of the source that are synced; `source` then only says where they
        are."""
        self.source = source
        self._selected = selected
        self.stop = stop
        self.destination = destination
        self.options = options
        self.events = EventRelay(reporter)
        self._secret = new_secret()
        self._filters = filter_list(options.filter_rules)
        self.signer = FileSigner(catalog=catalog)
        self.reads_here = False
        """The source is a tree in this process. A snapshot of a store counts as far away: it knows what has
        changed, and reads only that for a delta."""
        self.pack = options.compress is not False
        """Contents that this side asks for come compressed."""
        self.files = 0
        """Regular files of the source, once the run has ended."""
        self.total_bytes = 0
        self.entries = 0
        """Entries of all kinds at the source, once the run has ended."""
        self._late_tree: SourceTree | None = None
        """The tree of a source on this machine, if the remote side has the list of what is selected."""

    def close(self) -> None:
        self.signer.close()
        if self._late_tree is not None:
            self._late_tree.release()

    def checked_source(self) -> SourceTree | None:
        """Return the tree of a source on this machine; None if the remote side has the list of what is
        selected there. Raises FileError if nothing is there."""
        if self.options.files_from is None:
            return self.source_tree()
        ANYWHERE.open(self.source.path).release()
        return None

    @property
    def selects(self) -> bool:
        """Return whether some paths of the source take part, and not all that it means."""
        return self._selected is not None

    def source_tree(self) -> SourceTree:
        """Return the tree of a source on this machine."""
        if self._selected is not None:
            from rdc.session.trees.selected_tree import open_selected

            return open_selected(self._selected, self.options, ANYWHERE)
        from rdc.session.trees.source_tree import SourceTree

        return self.published_tree() or SourceTree.open(self.source.path, options=self.options)

    def published_tree(self) -> SourceTree | None:
        """Return the tree of a source in a published store, or in a file that `rdc store pack` wrote; None
        for another one."""
        if b"/@" not in self.source.path and not is_web(self.source.path):
            return None
        from rdc.session.trees.source_tree import open_published_tree

        local = self.destination.host is None
        return open_published_tree(
            self.source.path,
            self.options,
            destination=self.destination.path if local else None,
            notes=self.signer.catalog.directory,
            report=self.events.report,
        )

    def staged_clones(self) -> StagedClones | None:
        """Return where the two ends share files by clones; None: they do not."""
        from rdc.files.replace.staged_clones import StagedClones

        return StagedClones()

    def check_nesting(self) -> None:
        """Raise RdcError if one tree contains the other and a sync would never end, or delete its source."""
        from rdc.files.base.store_guard import check_local
        from rdc.session.trees.source_tree import check_overlap, check_selected

        options = self.options
        check_local(self.source.path, self.destination.path)
        if self._selected is not None:
            check_selected(self._selected, self.destination.path, self._filters, options)
            return
        check_overlap(
            self.source.path,
            self.destination.path,
            self._filters,
            delete=options.delete,
            delete_excluded=options.delete_excluded,
            one_file_system=options.one_file_system,
        )

    def fetch(self, clones: StagedClones | None = None) -> Conversation[Done]:
        """Return the conversation if the remote side is the source. `clones`: of its files, if it is in this
        process."""
        # The source can start with these two messages, without another round trip.
        path, options = self.destination.path, self.options
        preserved = keeps(path, options, catalog=self.signer.catalog)
        whole = wants_listing(path, options)
        yield from self.opening(Role.SOURCE)
        yield Send(Describe(whole, preserved), 0)
        knows_nodes = knows((yield from self._opened()), SPECIALS)
        asked = entry_of(self.source.inner) if self._selected is None else b""
        start, round_ = announced((yield Receive()), asked)
        # Imported here: a run needs only one of the two halves.
        from rdc.session.destination.conversation import WholeTurn
        from rdc.session.transfer.destination import Destination

        terms = self._terms(clones)
        destination_root = open_destination(
            self.destination.path,
            start,
            options,
            preserved,
            has_top=terms.has_top(start),
            knows_nodes=knows_nodes,
            munges=options.munge_links and self.source.host is not None,
        )
        if clones is not None:
            clones.stage_at(destination_root.root)
        try:
            if self.source.host is not None or start.store is not None:
                from rdc.files.base.store_guard import check_opened

                shown = self.destination.path
                check_opened(destination_root.root.fileno(), start.only, shown, options, start.store)
            context = Destination(terms, destination_root, start, self.events, preserved)
            half = WholeTurn(context, whole=whole, in_sync_store=self.signer.catalog)
            done = yield from half.run(round_)
        finally:
            destination_root.release()
        self.files, self.total_bytes = half.source_files, half.source_bytes
        self.entries = half.source_entries
        return done

    def _terms(self, clones: StagedClones | None) -> Terms:
        from rdc.session.transfer.destination import Terms, mapping_of

        selection = None
        if self._selected is not None:
            from rdc.session.trees.selected_tree import selection_of

            selection = selection_of(self._selected, self.options)
        return Terms(
            self.options,
            self._filters,
            self._secret,
            self.signer,
            self.pack,
            clones,
            selection,
            mapping_of(self.options),
            here=self.reads_here,
        )

    @property
    def _owner_there(self) -> bool:
        """A guess: True if the remote side, as the destination, preserves owners.

        A remote side behind a shell usually runs as root if this side does. A module of a daemon preserves
        owners only if it is configured so.
        """
        if self.destination.port is not None:
            return bool(self.options.owner)
        return keeps_owner(self.options)

    def send(self, tree: SourceTree | None) -> Conversation[Done]:
        """Return the conversation if the remote side is the destination. `tree`: as `checked_source` returns
        it."""
        yield from self.opening(Role.DESTINATION)
        shown = self.options.nodes
        if tree is None:
            tree, knows_nodes = yield from self._listed_tree()
            shown = shown if knows_nodes else frozenset()
        tree = tree.showing(shown)
        from rdc.session.source.conversation import Source

        # The destination wants a listing to look at each entry, and otherwise perhaps a manifest.
        guess = replace(asked_metadata(self.options), owner=self._owner_there)
        offer = None if self.options.visits_all else guess
        half = Source(
            tree,
            self._filters,
            self._secret,
            self.signer,
            self.events,
            offer=offer,
            pack=self.options.compress is not False,
            boundary=tree.boundary(self.options),
            hard_links=self.options.hard_links,
            kinds=asked_attributes(self.options),
            names_owners=self.options.maps_owners,
            removal=tree.removal(self.options),
        )
        done = yield from half.run()
        self.files, self.total_bytes, self.entries = half.files, half.total_bytes, half.entries
        return done

    def opening(self, role: Role) -> Conversation[None]:
        """Set the limits and ask the remote side, in its role, to open its path."""
        path = (self.source if role is Role.SOURCE else self.destination).path
        yield pace_of(self.options)
        selects = self._selected is not None
        yield from send_open(role, path, self._secret, self.options, selects=selects)
        if self._selected is not None:
            from rdc.session.selecting import send_selected

            yield from send_selected(role, self._selected)

    def _opened(self) -> Conversation[Hello | None]:
        """Wait for Opened, and take what a list of the remote side selects. Returns the remote side's
        Hello; None in one process."""
        hello = None
        listed: list[Selected] = []
        while True:
            received = yield Receive()
            message = None if received is None else received.message
            if isinstance(message, Opened):
                if self.options.files_from is not None:
                    self._selected = tuple(SelectedPaths(each.origin, each.names) for each in listed)
                return hello
            if isinstance(message, Selected):
                listed.append(message)
            elif isinstance(message, Hello):
                hello = message
            else:
                raise ProtocolError("expected Hello and Opened")

    def _listed_tree(self) -> Conversation[tuple[SourceTree, bool]]:
        """Return the tree of which the remote side's list selects some, and whether that side knows special
        files."""
        from rdc.session.trees.selected_tree import open_listed

        hello = yield from self._opened()
        tree = self._late_tree = open_listed(self.source.path, self._selected or (), self.options)
        return tree, knows(hello, SPECIALS)

    def totals(self, done: Done, connection: Connection | InProcessLink[Done]) -> SyncReport:
        """Return the report of a run that ended with `done`."""
        report = self.outcome(done, connection.max_round, connection.costs)
        return replace(report, bytes_sent=connection.bytes_sent, bytes_received=connection.bytes_received)

    def outcome(self, done: Done, rounds: int, costs: tuple[MessageCost, ...]) -> SyncReport:
        """Return the report of a run that ended with `done`, without the bytes on connections. `rounds`: the
        highest round of a message."""
        codes = self.events.codes
        code = next((c for c in PRECEDENCE if c in codes), next(iter(codes), ExitCode.OK))
        # A directory that is synced as a whole is an entry, too, and no listing counts it.
        is_whole = not (self.selects or entry_of(self.source.inner))
        return SyncReport(
            files=self.files,
            total_bytes=self.total_bytes,
            changed=done.changed,
            deleted=done.deleted,
            moved=done.moved,
            bytes_sent=0,
            bytes_received=0,
            literal_bytes=done.literal_bytes,
            reused_bytes=done.reused_bytes,
            round_trips=(rounds + 1) // 2,
            errors=self.events.errors,
            exit=code,
            by_kind=costs,
            created=done.created or 0,
            entries=self.entries + is_whole,
        )


# Runs a session with its other end: in this process, behind a remote shell, or in a daemon.


def run_session(
    run: SyncRun,
    far: Location,
    shell: RemoteShell,
    keys: str | os.PathLike[str] | None,
    wire: Wire | None = None,
) -> SyncReport:
    """Run the session of `run` with an rdc at the host of `far`.

    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own directory. `wire`: what
    `dial_early` returned; the caller closes it. Raises RdcError if the run as a whole cannot go on.
    """
    if far.host is None:
        return _here(run)
    from rdc.session.far.far_host import far_host

    if far.port is not None:
        run.options = replace(run.options, timeout=run.options.timeout or DAEMON_TIMEOUT_SECONDS)
    return _there(run, far_host(far, shell, keys, run.events.report), wire)


def _here(run: SyncRun) -> SyncReport:
    """Run both ends in this process. The source has its own thread: both sides read and hash at the same
    time."""
    from rdc.session.runtime.in_process import InProcessLink

    # Report a mistake in SRC as an error of this side, not of the remote side.
    tree = run.source_tree()
    run.reads_here = tree.root.given is None
    # A snapshot is opened once: the table of its store's chunks may take most of the memory of a run.
    opens_again = run.reads_here or run.selects or run.options.follows is not None
    opened = tree if tree.published or not opens_again else None
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as unsent:
        unsent.callback(tree.release)
        run.check_nesting()
        run.pack = run.options.compress is True
        clones = run.staged_clones()
        if clones is not None:
            stack.enter_context(contextlib.closing(clones))
        signer = stack.enter_context(contextlib.closing(FileSigner(catalog=run.signer.catalog)))
        admit = partial(
            as_asked,
            destination=run.destination.path,
            munge_links=run.options.munge_links,
            fake_super=run.options.fake_super,
            opened=opened,
        )
        link = InProcessLink(run.fetch(clones), answer(signer, admit, clones=clones), run.stop)
        if opened is None:
            unsent.close()
        else:
            unsent.pop_all()  # `answer` releases the tree
        return run.totals(link.run(), link)


def _there(run: SyncRun, host: FarHost, wire: Wire | None) -> SyncReport:
    """Run this side against a remote side at `host`."""
    from rdc.session.runtime import driver

    with contextlib.ExitStack() as stack:
        if run.source.host is None:
            # Check SRC before dialling: a mistyped path should not ask for a password first.
            tree = run.checked_source()
            if tree is not None:
                stack.callback(tree.release)
            conversation = run.send(tree)
        else:
            conversation = run.fetch()
        if wire is None:
            wire = host.dial()
            stack.callback(wire.close)
        compress = run.options.compress is not False
        connection = Connection(True, greeting(run.signer.params), compress=compress)
        connection.entries.limit = entries_memory(run.options.max_memory)
        run.events.line = lambda: connection.bytes_sent + connection.bytes_received
        try:
            done = driver.run(conversation, connection, wire, stop=run.stop)
        except (StreamError, TrustError) as error:
            from rdc.session.far.far_host import resumable

            shown = host.explained(error, wire)
            raise resumable(shown, dry_run=run.options.dry_run) from error
        report = run.totals(done, connection)
    # The end of a connection takes bytes, too.
    traffic = host.traffic(connection, wire)
    return replace(report, bytes_sent=traffic.sent, bytes_received=traffic.received)
