"""`sync`: one run from a source to a destination, in this process or with an rdc on another host."""

from __future__ import annotations

import contextlib
import os
import time

from rdc.catalog.location import USER_CATALOG, UserCatalog, opened_catalog
from rdc.catalog.signer import FileSigner
from rdc.errors import (
    CommandMissingError,
    ExitCode,
    ProtocolError,
    RdcError,
    StreamError,
    TrustError,
    UsageError,
)
from rdc.limits import DAEMON_TIMEOUT_SECONDS, EXPIRY_NOTICE_DAYS
from rdc.model.location import DEFAULT_PORT, Location, RemoteShell, parse_location
from rdc.model.sync import SyncOptions, SyncReport
from rdc.progress import Problem, silent
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Describe, Hello, Open, Opened, Role
from rdc.records import replace
from rdc.session.announcement import announced, entry_of
from rdc.session.commands import Pace, Receive, Send
from rdc.session.news import News
from rdc.session.place import asked_attributes, keeps, keeps_owner, open_destination, wants_listing
from rdc.session.serve import answer, greeting
from rdc.tree.filters import FilterList
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.progress import Reporter
    from rdc.protocol.messages import Done
    from rdc.session.commands import Conversation
    from rdc.session.local import LocalLink
    from rdc.session.source_tree import SourceTree
    from rdc.transport.base import Transport
    from rdc.transport.stdio import ChildTransport
    from rdc.transport.tls import TlsTransport

__all__ = ["explained_end", "sync"]

W = TypeVar("W", bound="Transport")

SECRET_BYTES = 16
# rsync's order of precedence: what could not be copied outweighs what went away by itself.
PRECEDENCE = (ExitCode.PARTIAL, ExitCode.VANISHED, ExitCode.MAX_DELETE)


def sync(
    source: Location | str | os.PathLike[str],
    destination: Location | str | os.PathLike[str],
    options: SyncOptions | None = None,
    *,
    shell: RemoteShell | None = None,
    reporter: Reporter = silent,
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    keys: str | os.PathLike[str] | None = None,
) -> SyncReport:
    """Brings `destination` up to `source`, as `rdc sync` does.

    Strings are read as on the command line, where "src/" is what the directory src has and "src" the
    directory itself. A pathlib.Path is a path of this machine and never ends with a slash.

    Problems with single files go to `reporter` and into the report's exit code. Raises RdcError when the run
    as a whole cannot go on; every path at the destination is then as it was, or as it was to become.
    `catalog`: where signatures of local files are remembered: by default where RDC_CATALOG says or in the
    user's cache directory; None for nowhere. One that is passed in is flushed and stays open.
    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own.
    """
    source, destination = _location(source), _location(destination)
    if source.host is not None and destination.host is not None:
        raise UsageError("one of source and destination must be on this machine")
    options = options or SyncOptions()
    with opened_catalog(catalog, reporter) as store:
        run_ = _Run(source, destination, options, reporter, store)
        far = destination if source.host is None else source
        try:
            if far.host is None:
                return run_.here()
            if far.port is None:
                return run_.by_shell(far.host, shell or RemoteShell())
            return run_.by_daemon(far.host, far.port, keys)
        finally:
            run_.close()


def _location(place: Location | str | os.PathLike[str]) -> Location:
    if isinstance(place, Location):
        return place
    if isinstance(place, str):
        return parse_location(place)
    path = os.fsencode(place)
    if b"\0" in path:
        raise UsageError(f"{place}: a path cannot contain a NUL character")
    return Location(None, path)


def new_secret() -> bytes:
    """Key of one session's short references and fingerprints."""
    return os.urandom(SECRET_BYTES)


class _Run:
    """One sync as its dialling side sees it."""

    def __init__(
        self,
        source: Location,
        destination: Location,
        options: SyncOptions,
        reporter: Reporter,
        catalog: SignatureStore,
    ) -> None:
        self._source = source
        self._destination = destination
        self._options = options
        self._news = News(reporter)
        self._secret = new_secret()
        self._filters = FilterList(options.rules)
        self._signer = FileSigner(catalog=catalog)
        self._pack = self._options.compress is not False
        self._files = 0
        self._bytes = 0

    def close(self) -> None:
        self._signer.close()

    def here(self) -> SyncReport:
        """Both ends in this process: the source answers from a thread of its own, so that both sides read
        and hash at the same time."""
        from rdc.session.local import LocalLink
        from rdc.session.overlap import check_overlap
        from rdc.session.source_tree import SourceTree

        # A mistake in SRC is this side's to tell, not the far side's.
        SourceTree.open(self._source.path).root.close()
        check_overlap(
            self._source.path,
            self._destination.path,
            self._filters,
            delete=self._options.delete,
            delete_excluded=self._options.delete_excluded,
            one_file_system=self._options.one_file_system,
        )
        self._pack = self._options.compress is True
        with contextlib.closing(FileSigner(catalog=self._signer.catalog)) as signer:
            link = LocalLink(self._fetch(), answer(signer))
            return self._report(link.run(), link)

    def by_shell(self, host: str, shell: RemoteShell) -> SyncReport:
        """The other end is a child process: a remote shell that starts rdc there."""
        from rdc.transport.remote import remote_argv
        from rdc.transport.stdio import ChildTransport

        argv = remote_argv(host, shell)

        def explained(error: RdcError, transport: ChildTransport) -> RdcError:
            if not isinstance(error, StreamError):
                return error
            # Of a far side that never spoke the exit status says why; nothing else is worth a wait.
            transport.close_write()
            return explained_end(error, host, shell, transport.wait() if error.before_hello else None)

        return self._remote(lambda: ChildTransport(argv), explained)

    def by_daemon(self, host: str, port: int, keys: str | os.PathLike[str] | None) -> SyncReport:
        """The other end is a daemon. What is counted are all bytes of the TCP connection's content."""
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
                self._news.report(Problem(ExitCode.OK, b"", line))
            return transports[0]

        def explained(error: RdcError, _: TlsTransport) -> RdcError:
            return TrustError(f"{host}: {error}") if isinstance(error, TrustError) else error

        report = self._remote(dial, explained)
        (used,) = transports
        return replace(report, bytes_sent=used.bytes_sent, bytes_received=used.bytes_received)

    def _remote(self, dial: Callable[[], W], explained: Callable[[RdcError, W], RdcError]) -> SyncReport:
        from rdc.session.driver import run

        with contextlib.ExitStack() as stack:
            if self._source.host is None:
                from rdc.session.source_tree import SourceTree

                # Before anything is started: a typing error should not ask for a password.
                tree = SourceTree.open(self._source.path)
                stack.callback(tree.root.release)
                conversation = self._send(tree)
            else:
                conversation = self._fetch()
            transport = dial()
            stack.callback(transport.close)
            compress = self._options.compress is not False
            connection = Connection(True, greeting(self._signer.params), compress=compress)
            try:
                done = run(conversation, connection, transport)
            except (StreamError, TrustError) as error:
                raise explained(error, transport) from error
            return self._report(done, connection)

    def _fetch(self) -> Conversation[Done]:
        """The far side is the source."""
        # The source starts on this without waiting for anything more.
        path, options = self._destination.path, self._options
        kept, whole = keeps(path, options), wants_listing(path, options)
        yield from self._open(Role.SOURCE, self._source.path)
        yield Send(Describe(whole, kept), 0)
        yield from self._opened()
        start, round_ = announced((yield Receive()), entry_of(self._source.inner))
        # Each of the two halves is half of what there is to load.
        from rdc.session.destination import Destination

        place = open_destination(self._destination.path, start, self._options)
        try:
            half = Destination(
                place,
                start,
                self._options,
                self._filters,
                self._secret,
                self._signer,
                self._news,
                whole=whole,
                kept=kept,
                settlements=self._signer.catalog,
                pack=self._pack,
            )
            done = yield from half.run(round_)
        finally:
            place.root.release()
        self._files, self._bytes = half.source_files, half.source_bytes
        return done

    @property
    def _owner_there(self) -> bool:
        """Whether the far side, as the destination, keeps owners: a guess. One that is started for this run
        is root where this one is, as a rule; modules of a daemon keep owners where they say so."""
        if self._destination.port is not None:
            return bool(self._options.owner)
        return keeps_owner(self._options)

    def _send(self, tree: SourceTree) -> Conversation[Done]:
        """The far side is the destination."""
        yield from self._open(Role.DESTINATION, self._destination.path)
        from rdc.session.source import Source

        # Contents are compared by listing; anything else the destination may want by manifest.
        offer = None if self._options.checksum else self._owner_there
        half = Source(
            tree,
            self._filters,
            self._secret,
            self._signer,
            self._news,
            offer=offer,
            pack=self._options.compress is not False,
            boundary=tree.boundary(self._options),
            hard_links=self._options.hard_links,
            kinds=asked_attributes(self._options),
        )
        done = yield from half.run()
        self._files, self._bytes = half.files, half.total_bytes
        return done

    def _open(self, role: Role, path: bytes) -> Conversation[None]:
        yield Pace(self._options.bandwidth, self._options.timeout)
        yield Send(Open(role, path, self._secret, self._options), 0)

    def _opened(self) -> Conversation[None]:
        while True:
            received = yield Receive()
            if received is not None and isinstance(received.message, Opened):
                return
            if received is None or not isinstance(received.message, Hello):
                raise ProtocolError("expected Hello and Opened")

    def _report(self, done: Done, connection: Connection | LocalLink[Done]) -> SyncReport:
        codes = self._news.codes
        code = next((c for c in PRECEDENCE if c in codes), next(iter(codes), ExitCode.OK))
        return SyncReport(
            files=self._files,
            total_bytes=self._bytes,
            changed=done.changed,
            deleted=done.deleted,
            bytes_sent=connection.bytes_sent,
            bytes_received=connection.bytes_received,
            literal_bytes=done.literal_bytes,
            reused_bytes=done.reused_bytes,
            round_trips=(connection.max_round + 1) // 2,
            errors=self._news.errors,
            exit=code,
            by_kind=connection.costs,
        )


def explained_end(error: StreamError, host: str, shell: RemoteShell, status: int | None) -> RdcError:
    """What an end of the stream means, given how the remote shell ended."""
    if error.before_hello and status in {126, 127}:
        return CommandMissingError(
            f"no {shell.program} on {host}: install rdc there as here (in a clone: python3 -m pip install .)"
            " or name its path with --remote-path"
        )
    if error.before_hello and status:
        return StreamError(
            f"{shell.command[0]} {host} ended with status {status} before rdc answered; its message is above"
        )
    return error
