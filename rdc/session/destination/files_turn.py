"""A turn that brings files which a plan names, and does nothing else: rdc.uniting decides all other changes.

The source announces the files as changes (Changed, TurnEnd). Each is fetched and committed as in every sync;
what it replaces is what this side listed when the plan was made. A file that changed at the source since then
comes as it is now: the source still finds it changed in the next run.
"""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, ProtocolError, RdcError, printable
from rdc.lean.records import Record, replace
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Decision, Difference
from rdc.progress import Problem
from rdc.protocol.messages import Changed, TurnEnd
from rdc.session.destination.conversation import DestinationTurn
from rdc.session.runtime.commands import Conversation, Receive, Send
from rdc.session.transfer.destination import PartialFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Set

    from rdc.model.entries import Identity, Metadata
    from rdc.session.transfer.destination import Destination
    from rdc.session.transfer.renames import RemovedFiles


class WantedFile(Record):
    """One file that the plan names."""

    metadata: Metadata
    """The metadata that it gets."""
    listed: Identity | None
    """The entry that it replaces; None: nothing is there."""


class FilesTurn(DestinationTurn):
    """One turn. `landed` has the files that arrived, each with what it is now."""

    def __init__(
        self,
        context: Destination,
        wanted: Mapping[bytes, WantedFile],
        leftovers: Iterable[tuple[bytes, list[bytes]]],
        report: Callable[[Problem], None],
        *,
        declined: Set[bytes] = frozenset(),
    ) -> None:
        """`leftovers`: temporaries of earlier runs, by directory. `report`: hears which files do not come.
        `declined`: files that the plan names, too, and that nobody takes, since they have no place here."""
        super().__init__(context)
        self._wanted = dict(wanted)
        self._declined = declined
        self._report = report
        self._partial_files = PartialFiles(self._root)
        self.landed: dict[bytes, Identity] = {}
        self.build(self._partial_files, seeks=False, live=True, on_identity=self.landed.__setitem__)
        for directory, names in leftovers:
            self._partial_files.note(directory, names)
        self.directories.expect_nothing()
        self._round = 0

    def run(self, round_: int) -> Conversation[int]:
        """Receive the announcements, fetch the files, and end the turn. Return the round to go on with."""
        self._round = round_
        try:
            yield from self._gather()
            self.transfers.plan_known(_nothing_removed, rename=False)
            self._round = yield from self.fetch_known(self._round)
            self._partial_files.sweep()
        except BaseException:
            self.wind_down()
            raise
        self.finish_turn()
        done = self.account(ExitCode.OK)
        yield Send(done, self._round)
        return self._round

    def _gather(self) -> Conversation[None]:
        while True:
            received = yield Receive()
            if received is None:
                continue
            self._round = max(self._round, received.round + 1)
            message = received.message
            if isinstance(message, TurnEnd):
                break
            if isinstance(message, Changed):
                self._announced(message)
            elif not self._events.take(message):
                raise ProtocolError(f"expected files of the plan, found {message.name}")
        for path in sorted(self._wanted):
            self._skip(path, "expected a file that the other side listed, found nothing there")
        self._wanted.clear()

    def _announced(self, change: Changed) -> None:
        """Start the files of one directory. Raises ProtocolError for what the plan does not name."""
        directory, listing = change.path, change.listing
        if change.gone or change.doubtful:
            raise ProtocolError(f"expected files of '{printable(directory)}' alone, found other changes")
        if self.manifest.number(directory) is not None and self.manifest.directories[-1] != directory:
            raise ProtocolError(f"two listings of '{printable(directory)}'")
        prefix = directory + b"/" if directory else b""
        files: list[WantedFile | None] = []
        for name, kind in zip(listing.names, listing.kinds, strict=True):
            wanted = self._wanted.pop(prefix + name, None)
            if (wanted is None and prefix + name not in self._declined) or kind != Kind.FILE:
                raise ProtocolError(f"'{printable(prefix + name)}' is not a file that the plan names")
            files.append(wanted)
        first = len(self.manifest)
        made = replace(
            listing,
            modes=array("H", [0 if wanted is None else wanted.metadata.mode for wanted in files]),
            mtimes=array("q", [0 if wanted is None else wanted.metadata.mtime_ns for wanted in files]),
        )
        self.manifest.extend(directory, made.packed())
        for row, (name, wanted) in enumerate(zip(listing.names, files, strict=True)):
            if wanted is not None:
                self._start(first + row, prefix + name, listing.sizes[row], wanted)

    def _start(self, file: int, path: bytes, size: int, wanted: WantedFile) -> None:
        if wanted.listed is None:
            self.landing.decide(file, Decision(Change.CREATE, file, -1, Difference.NONE))
            self.transfers.create(file, path, size)
            return
        difference = Difference.CHECKSUM | Difference.TIME
        if wanted.listed.size != size:
            difference |= Difference.SIZE
        self.landing.listed.note_one(file, wanted.listed)
        self.landing.decide(file, Decision(Change.CONTENT, file, 0, difference))
        self.transfers.update(file, size)

    def _skip(self, path: bytes, why: str) -> None:
        text = f"{printable(self._root.shown(path))}: cannot copy it: {why}; run again"
        self._report(Problem(ExitCode.PARTIAL, path, text))


def _nothing_removed() -> RemovedFiles:
    raise RdcError("a turn of files removes nothing, so no removed file has content")
