"""One session that lists a source, for `rdc sync --list-only`. Nothing is read but the listing, and nothing
is written."""

from __future__ import annotations

from rdc.catalog.store import NoCatalog
from rdc.errors import ExitCode, ProtocolError, printable
from rdc.files.base.paths import join
from rdc.lean.records import Record, replace
from rdc.model.entries import Kind, Metadata
from rdc.model.location import Location, RemoteShell
from rdc.model.preserved import EVERYTHING
from rdc.progress import stopping
from rdc.protocol.messages import Describe, Done, ListingEnd, ListingPart, Role
from rdc.protocol.wire.fields import increasing
from rdc.session.runtime.commands import Conversation, Receive, Send
from rdc.session.sync_run import SyncRun, run_session
from rdc.session.trees.sites import announced, check_announced, check_included, entry_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from rdc.files.replace.staged_clones import StagedClones
    from rdc.model.runs import SyncReport
    from rdc.model.selection import SelectedPaths
    from rdc.model.sync import SyncOptions
    from rdc.progress import Reporter, StopSignal


class ListedEntry(Record):
    """One entry of a source."""

    path: bytes
    """Relative to SRC; "." is SRC itself."""
    kind: Kind
    size: int
    """Bytes; 0 except for regular files."""
    metadata: Metadata
    link: bytes | None
    """The target of a symlink; None for other entries."""


def list_source(
    source: Location,
    selected: Sequence[SelectedPaths] | None,
    options: SyncOptions,
    on_entry: Callable[[ListedEntry], None],
    *,
    shell: RemoteShell,
    reporter: Reporter,
    keys: str | os.PathLike[str] | None,
    stop: StopSignal | None = None,
) -> SyncReport:
    """List `source` by directories: each with its entries that are no directories, then those below it.

    `source`, `selected`: as `rdc.library.trees.selected_of` returns them. Problems go to
    `reporter` and into the report's exit code. Raises RdcError as rdc.sync does.
    """
    if options.files_from is not None:
        options = replace(options, files_from=replace(options.files_from, relative=options.relative))
    run = _ListRun(source, options, on_entry, stopping(reporter, stop), stop, selected)
    try:
        return run_session(run, source, shell, keys)
    finally:
        run.close()


class _ListRun(SyncRun):
    """A session with this side as a destination that asks for the listing alone."""

    def __init__(
        self,
        source: Location,
        options: SyncOptions,
        on_entry: Callable[[ListedEntry], None],
        reporter: Reporter,
        stop: StopSignal | None,
        selected: Sequence[SelectedPaths] | None = None,
    ) -> None:
        self._on_entry = on_entry
        self._waiting: dict[bytes, ListedEntry] = {}
        """Announced directories that have not been listed."""
        self._directories = 0
        """Directories that were listed whole."""
        self._begun = False
        """True if a part of the next one came."""
        self._has_top = True
        """True if SRC itself takes part."""
        plain = replace(options, dry_run=True, items=False, delete=False, force=False, backup=None)
        super().__init__(source, Location(None, b"."), plain, reporter, NoCatalog(), stop, selected)

    def staged_clones(self) -> None:
        """Make no clones: nothing is written."""

    def check_nesting(self) -> None:
        """Accept any place: nothing is changed, so all may be listed."""

    def fetch(self, clones: StagedClones | None = None) -> Conversation[Done]:
        yield from self.opening(Role.SOURCE)
        yield Send(Describe(True, EVERYTHING), 0)
        yield from self._opened()
        asked = entry_of(self.source.inner) if self._selected is None else b""
        start, round_ = announced((yield Receive()), asked)
        if self._selected is not None:
            from rdc.session.trees.selected_tree import selection_of

            self._has_top = selection_of(self._selected, self.options).top_counts
        top = ListedEntry(b".", Kind.DIRECTORY, 0, start.metadata, None)
        self._waiting[b""] = top
        while True:
            received = yield Receive()
            if received is None:
                continue
            round_, message = max(round_, received.round + 1), received.message
            if isinstance(message, ListingPart):
                self._take(message, start.only)
            elif isinstance(message, ListingEnd):
                break
            elif not self.events.take(message):
                pass  # hard links and the like, which a listing does not show
        for entry in self._waiting.values():
            self._on_entry(entry)  # a directory that could not be read
        self.files, self.total_bytes = message.files, message.bytes
        done = Done(0, 0, 0, 0, 0, self.events.errors, ExitCode.OK)
        yield Send(done, round_)
        return done

    def _take(self, part: ListingPart, only: bytes) -> None:
        """Tell of a directory and of its entries. Raises ProtocolError for what was not announced."""
        listing, path = part.listing, part.path
        if part.directory != self._directories or path not in self._waiting:
            raise ProtocolError(f"a listing of '{printable(path)}', which was not announced")
        if not increasing(listing.names):
            raise ProtocolError(f"names in '{printable(path)}' are not strictly increasing")
        if not path:
            check_announced(listing.names, only)
        check_included(path, listing, self._filters)
        if not self._begun and (path or (not only and self._has_top)):
            self._on_entry(self._waiting[path])
        self._begun = not part.last
        if part.last:
            del self._waiting[path]
            self._directories += 1
        links = listing.links()
        for row, name in enumerate(listing.names):
            kind, below = Kind(listing.kinds[row]), join(path, name)
            entry = ListedEntry(below, kind, listing.sizes[row], listing.metadata(row), links.get(row))
            if kind is Kind.DIRECTORY:
                self._waiting[below] = entry
            else:
                self._on_entry(entry)
