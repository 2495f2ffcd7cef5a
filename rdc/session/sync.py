"""One run from a source to a destination: in this process, or with an rdc on another host."""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial

from rdc.catalog.arguments import check_far, check_job, location_of
from rdc.catalog.location import USER_CATALOG, UserCatalog, opened_catalog
from rdc.catalog.signer import FileSigner
from rdc.checks import check_argument
from rdc.errors import (
    ExitCode,
    ProtocolError,
    RdcError,
    StreamError,
    TrustError,
    UsageError,
)
from rdc.limits.daemon import DAEMON_TIMEOUT_SECONDS, EXPIRY_NOTICE_DAYS
from rdc.model.filter_rules import has_rule_files
from rdc.model.location import DEFAULT_PORT, Location, RemoteShell
from rdc.model.sync import SyncOptions
from rdc.model.sync_report import SyncReport
from rdc.progress import Problem, silent, stopping
from rdc.protocol.messages.registry import Describe, Hello, Open, Opened, Role
from rdc.protocol.rules.connection import Connection
from rdc.protocol.rules.dialect import SPECIALS, knows
from rdc.records import replace
from rdc.session.runtime.commands import Pace, Receive, Send
from rdc.session.runtime.entries_memory import entries_memory
from rdc.session.runtime.event_relay import EventRelay
from rdc.session.serve import answer, as_asked, greeting
from rdc.session.sources import selected_of, sources_of
from rdc.session.trees.announced_entries import announced, entry_of
from rdc.session.trees.destination_root import (
    ANYWHERE,
    asked_attributes,
    keeps,
    keeps_owner,
    make_nodes,
    open_destination,
    wants_listing,
)
from rdc.tree.filter_list import filter_list
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.model.selection import SelectedPaths
    from rdc.progress import Reporter, StopSignal
    from rdc.protocol.messages.registry import Done
    from rdc.session.destination.context import SessionTerms
    from rdc.session.runtime.commands import Conversation
    from rdc.session.runtime.in_process import InProcessLink
    from rdc.session.trees.source_tree import SourceTree
    from rdc.transport.base import Transport
    from rdc.transport.stdio import ChildTransport
    from rdc.transport.tls import TlsTransport

__all__ = ["SyncRun", "sync"]

W = TypeVar("W", bound="Transport")

SECRET_BYTES = 16
# As in rsync: exit code 23 (not copied) outweighs 24 (vanished).
PRECEDENCE = (ExitCode.PARTIAL, ExitCode.VANISHED, ExitCode.MAX_DELETE)


def sync(
    source: Location | str | os.PathLike[str] | Sequence[Location | str | os.PathLike[str]],
    destination: Location | str | os.PathLike[str],
    options: SyncOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = silent,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    keys: str | os.PathLike[str] | None = None,
    stop: StopSignal | None = None,
) -> SyncReport:
    """Makes `destination` equal to `source`, as `rdc sync` does.

    A string is read as on the command line: "src/" means the contents of the directory src, "src" the
    directory itself. A pathlib.Path is a local path and never ends with a slash.

    Several sources are a list or tuple of them, all on one host. Where they have the same names, the first
    file counts, and directories become one.

    Problems with single files go to `reporter` and into the report's exit code. Raises RdcError if the run
    as a whole cannot go on; every path of the destination is then either old or new.

    `catalog`: stores signatures of local files. The default is the path in RDC_CATALOG or else the user's
    cache directory; None stores nothing. A catalog that the caller passes is flushed and stays open.
    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own directory.
    `stop`: once another thread sets it, the run ends with StoppedError. The next run resumes.

        >>> import os, rdc
        >>> os.mkdir("src")
        >>> with open("src/file", "w") as file:
        ...     _ = file.write("data")
        >>> rdc.sync("src/", "backup/", rdc.SyncOptions(delete=True), catalog=None).files
        1
    """
    sources = sources_of("sync", source)
    destination = location_of("sync", "destination", destination)
    check_argument("sync", "options", options, SyncOptions, None)
    check_job("sync", reporter, catalog, stop)
    check_far("sync", shell, keys)
    options = options or SyncOptions()
    source, selected = selected_of(sources, options)
    if source.host is not None and destination.host is not None:
        raise UsageError("one of source and destination must be on this machine")
    with opened_catalog(catalog, reporter) as store:
        run_ = SyncRun(source, destination, options, stopping(reporter, stop), store, stop, selected)
        far = destination if source.host is None else source
        try:
            if far.host is None:
                return run_.here()
            if far.port is None:
                return run_.by_shell(far.host, shell or RemoteShell())
            return run_.by_daemon(far.host, far.port, keys)
        finally:
            run_.close()


def new_secret() -> bytes:
    """A random key for one session's short digests and fingerprints."""
    return os.urandom(SECRET_BYTES)


class SyncRun:
    """One sync, seen from the dialling side."""

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
        """`selected`: what of the source takes part; `source` then only says where they are."""
        self._source = source
        self._selected = selected
        self._stop = stop
        self._destination = destination
        self._options = options
        self._events = EventRelay(reporter)
        self._secret = new_secret()
        self._filters = filter_list(options.rules)
        if options.ignore_errors and has_rule_files(options.rules):
            raise UsageError(
                "--ignore-errors goes with no rules from files of the tree: what a file with a mistake hides"
                " would be deleted"
            )
        self._signer = FileSigner(catalog=catalog)
        self._pack = self._options.compress is not False
        self._files = 0
        self._bytes = 0

    def close(self) -> None:
        self._signer.close()

    def here(self) -> SyncReport:
        """Runs both ends in this process. The source has its own thread, so both sides read and hash at the
        same time."""
        from rdc.session.runtime.in_process import InProcessLink

        # Report a mistake in SRC as an error of this side, not of the far side.
        self._source_tree().release()
        self._check_nesting()
        self._pack = self._options.compress is True
        clones = self._staged_clones()
        with (
            contextlib.closing(FileSigner(catalog=self._signer.catalog)) as signer,
            contextlib.nullcontext() if clones is None else contextlib.closing(clones),
        ):
            admit = partial(
                as_asked, destination=self._destination.path, munge_links=self._options.munge_links
            )
            link = InProcessLink(self._fetch(clones), answer(signer, admit, clones=clones), self._stop)
            return self._report(link.run(), link)

    def _source_tree(self) -> SourceTree:
        """The tree of a source on this machine."""
        if self._selected is not None:
            from rdc.session.trees.selected_tree import open_selected

            return open_selected(self._selected, self._options, ANYWHERE)
        from rdc.session.trees.source_tree import SourceTree

        return SourceTree.open(self._source.path, options=self._options)

    def _staged_clones(self) -> StagedClones | None:
        """Where the two ends share files by clones; None: they do not."""
        from rdc.files.replace.staged_clones import StagedClones

        return StagedClones()

    def _check_nesting(self) -> None:
        """Raises RdcError if one tree contains the other and a sync would never end, or delete its source."""
        from rdc.session.trees.nested_trees import check_overlap, check_selected

        options = self._options
        if self._selected is not None:
            check_selected(self._selected, self._destination.path, self._filters, options)
            return
        check_overlap(
            self._source.path,
            self._destination.path,
            self._filters,
            delete=options.delete,
            delete_excluded=options.delete_excluded,
            one_file_system=options.one_file_system,
        )

    def by_shell(self, host: str, shell: RemoteShell) -> SyncReport:
        """Runs the other end through a remote shell, which starts rdc there."""
        from rdc.transport.remote import remote_argv
        from rdc.transport.stdio import ChildTransport

        argv = remote_argv(host, shell)

        def explained(error: RdcError, transport: ChildTransport) -> RdcError:
            if not isinstance(error, StreamError):
                return error
            # Only if the far side never answered does the exit status explain why; else do not wait for it.
            from rdc.session.far_errors import explained_end

            transport.close_write()
            return explained_end(error, host, shell, transport.wait() if error.before_hello else None)

        return self._remote(lambda: ChildTransport(argv), explained)

    def by_daemon(self, host: str, port: int, keys: str | os.PathLike[str] | None) -> SyncReport:
        """Runs the other end in a daemon. The report counts all bytes of the TCP stream, TLS included."""
        from pathlib import Path

        from rdc.transport.keys import KeyRing, key_directory
        from rdc.transport.tls_dial import connect
        from rdc.transport.tls_trust import days_until

        ring = KeyRing.read(key_directory(os.environ) if keys is None else Path(keys))
        peers = ring.peers(host, port, default_port=DEFAULT_PORT)
        self._options = replace(self._options, timeout=self._options.timeout or DAEMON_TIMEOUT_SECONDS)
        transports: list[TlsTransport] = []

        def dial() -> TlsTransport:
            transports.append(connect(host, port, ring, peers))
            days = days_until(transports[0].peer_expires, time.time())
            if days is not None and days < EXPIRY_NOTICE_DAYS:
                line = f"{host}: its certificate expires in {days} days; it needs a new one, trusted here"
                self._events.report(Problem(ExitCode.OK, b"", line))
            return transports[0]

        def explained(error: RdcError, _: TlsTransport) -> RdcError:
            return TrustError(f"{host}: {error}") if isinstance(error, TrustError) else error

        report = self._remote(dial, explained)
        (used,) = transports
        return replace(report, bytes_sent=used.bytes_sent, bytes_received=used.bytes_received)

    def _remote(self, dial: Callable[[], W], explained: Callable[[RdcError, W], RdcError]) -> SyncReport:
        """Runs this side against a far side that `dial` connects. `explained` improves connection errors."""
        from rdc.session.runtime.driver import run

        with contextlib.ExitStack() as stack:
            if self._source.host is None:
                # Check SRC before dialling: a mistyped path should not ask for a password first.
                tree = self._source_tree()
                stack.callback(tree.release)
                conversation = self._send(tree)
            else:
                conversation = self._fetch()
            transport = dial()
            stack.callback(transport.close)
            compress = self._options.compress is not False
            connection = Connection(True, greeting(self._signer.params), compress=compress)
            connection.entries.limit = entries_memory(self._options.max_memory)
            try:
                done = run(conversation, connection, transport, stop=self._stop)
            except (StreamError, TrustError) as error:
                from rdc.session.far_errors import resumable

                shown = explained(error, transport)
                raise resumable(shown, dry_run=self._options.dry_run) from error
            return self._report(done, connection)

    def _fetch(self, clones: StagedClones | None = None) -> Conversation[Done]:
        """The conversation if the far side is the source. `clones`: of its files, if it is in this
        process."""
        # The source can start with these two messages, without another round trip.
        path, options = self._destination.path, self._options
        preserved, whole = keeps(path, options), wants_listing(path, options)
        yield from self._open(Role.SOURCE, self._source.path)
        yield Send(Describe(whole, preserved), 0)
        knows_nodes = knows((yield from self._opened()), SPECIALS)
        asked = entry_of(self._source.inner) if self._selected is None else b""
        start, round_ = announced((yield Receive()), asked)
        # Imported here: a run needs only one of the two halves.
        from rdc.session.destination.context import destination_context
        from rdc.session.destination.conversation import Destination

        terms = self._terms(clones)
        destination_root = open_destination(
            self._destination.path, start, self._options, has_top=terms.has_top(start)
        )
        if knows_nodes:
            make_nodes(destination_root.root, options)
        if options.munge_links and self._source.host is not None:
            from rdc.files.root.listing_view import make_munged

            make_munged(destination_root.root)
        if clones is not None:
            clones.stage_at(destination_root.root)
        try:
            context = destination_context(terms, destination_root, start, self._events, preserved)
            half = Destination(context, whole=whole, in_sync_store=self._signer.catalog)
            done = yield from half.run(round_)
        finally:
            destination_root.release()
        self._files, self._bytes = half.source_files, half.source_bytes
        return done

    def _terms(self, clones: StagedClones | None) -> SessionTerms:
        from rdc.session.destination.context import SessionTerms, mapping_of

        selection = None
        if self._selected is not None:
            from rdc.session.trees.selected_tree import selection_of

            selection = selection_of(self._selected, self._options)
        return SessionTerms(
            self._options,
            self._filters,
            self._secret,
            self._signer,
            self._pack,
            clones,
            selection,
            mapping_of(self._options),
        )

    @property
    def _owner_there(self) -> bool:
        """A guess whether the far side, as the destination, preserves owners.

        A far side behind a shell usually runs as root if this side does. A module of a daemon preserves
        owners only if it is configured so.
        """
        if self._destination.port is not None:
            return bool(self._options.owner)
        return keeps_owner(self._options)

    def _send(self, tree: SourceTree) -> Conversation[Done]:
        """The conversation if the far side is the destination."""
        yield from self._open(Role.DESTINATION, self._destination.path)
        tree.root.shown_nodes = self._options.nodes
        from rdc.session.source.conversation import Source

        # The destination wants a listing to look at each entry, and otherwise perhaps a manifest.
        offer = None if self._options.visits_all else self._owner_there
        half = Source(
            tree,
            self._filters,
            self._secret,
            self._signer,
            self._events,
            offer=offer,
            pack=self._options.compress is not False,
            boundary=tree.boundary(self._options),
            hard_links=self._options.hard_links,
            kinds=asked_attributes(self._options),
            names_owners=self._options.maps_owners,
        )
        done = yield from half.run()
        self._files, self._bytes = half.files, half.total_bytes
        return done

    def _open(self, role: Role, path: bytes) -> Conversation[None]:
        """Sets the limits and asks the far side to open `path`."""
        yield Pace(self._options.bandwidth, self._options.timeout)
        selects = self._selected is not None
        yield Send(Open.asking(role, path, self._secret, self._options, selects=selects), 0)
        if self._selected is not None:
            from rdc.session.selecting import send_selected

            yield from send_selected(role, self._selected)

    def _opened(self) -> Conversation[Hello | None]:
        """Waits for Opened. Returns the far side's Hello; None in one process."""
        hello = None
        while True:
            received = yield Receive()
            if received is not None and isinstance(received.message, Opened):
                return hello
            if received is None or not isinstance(received.message, Hello):
                raise ProtocolError("expected Hello and Opened")
            hello = received.message

    def _report(self, done: Done, connection: Connection | InProcessLink[Done]) -> SyncReport:
        codes = self._events.codes
        code = next((c for c in PRECEDENCE if c in codes), next(iter(codes), ExitCode.OK))
        return SyncReport(
            files=self._files,
            total_bytes=self._bytes,
            changed=done.changed,
            deleted=done.deleted,
            moved=done.moved,
            bytes_sent=connection.bytes_sent,
            bytes_received=connection.bytes_received,
            literal_bytes=done.literal_bytes,
            reused_bytes=done.reused_bytes,
            round_trips=(connection.max_round + 1) // 2,
            errors=self._events.errors,
            exit=code,
            by_kind=connection.costs,
        )
