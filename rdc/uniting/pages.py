"""Pages on the wire, and files that come or go: what both ends of a session of `rdc unite` do alike."""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.lean.records import replace
from rdc.lean.typed import TypeVar
from rdc.limits import UNITE_PAGE_BYTES, UNITE_TOLD_BYTES
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.preserved import EVERYTHING
from rdc.progress import ItemChanged, Problem, Progressed
from rdc.protocol.messages import Page, Start
from rdc.protocol.messages.uniting import Subject
from rdc.protocol.wire.codec import Message, decode
from rdc.session.runtime.commands import Conversation, EventRelay, Idle, Send
from rdc.tree import filter_list
from rdc.uniting.plan import Write
from rdc.uniting.rows import FILE, Row
from rdc.uniting.steps import items_of, settable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set

    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity
    from rdc.model.sync import SyncOptions
    from rdc.progress import Event
    from rdc.protocol.connection import Received
    from rdc.session.destination.files_turn import WantedFile
    from rdc.uniting.plan import Step
    from rdc.uniting.steps import Steps, StepsProgress

T = TypeVar("T", bound=Message)

TOP = Metadata(0o755, 0, 0, 0)
"""The metadata of directories in a turn of files: nobody asks for them."""


def send_page(subject: Subject, page: bytes, round_: int) -> Conversation[None]:
    """Send a page in parts."""
    for at in range(0, len(page) or 1, UNITE_PAGE_BYTES):
        part = page[at : at + UNITE_PAGE_BYTES]
        yield Send(Page(subject, part, at + UNITE_PAGE_BYTES >= len(page)), round_)


def rest_of(received: Received) -> Conversation[tuple[Subject, bytes, int]]:
    """Receive the rest of a page, and return its subject, all of it, and the round of an answer. Raises
    ProtocolError."""
    parts: list[bytes] = []
    size, subject = 0, None
    while True:
        message = received.message
        if not isinstance(message, Page) or subject not in (None, message.subject):
            raise ProtocolError(f"expected the rest of a page, found {message.name}")
        subject = message.subject
        size += len(message.part)
        if size > UNITE_TOLD_BYTES:
            raise ProtocolError(f"a page of more than {UNITE_TOLD_BYTES} bytes")
        parts.append(message.part)
        if message.last:
            return subject, b"".join(parts), received.round + 1
        received = yield from next_message()


def next_message() -> Conversation[Received]:
    """Return the next message between two turns. Raises RdcError if the other side has gone."""
    received = yield Idle()
    if received is None:
        raise RdcError("the remote side ended the session early", code=ExitCode.STREAM)
    return received


def receive_page(subject: Subject) -> Conversation[tuple[bytes, int]]:
    """Receive a page about `subject`. Raises ProtocolError for another one."""
    found, page, round_ = yield from rest_of((yield from next_message()))
    if found is not subject:
        raise ProtocolError(f"expected a page about {subject.name}, found {found.name}")
    return page, round_


def decode_page(kind: type[T], page: bytes) -> T:
    """Return the message that is a page of its own in a session that stays open. Raises ProtocolError."""
    message = decode(kind.kind, page)
    if not isinstance(message, kind):
        raise ProtocolError(f"expected {kind.name}, found {message.name}")
    return message


# Files


class FilesEnd:
    """One side as it takes part in turns of files."""

    def __init__(self, root: Root, secret: bytes, signer: FileSigner, options: SyncOptions) -> None:
        """`root`: as `writable` returns it. `options`: of the session."""
        self._root = root
        self._secret = secret
        self._signer = signer
        self._options = options

    def bring(
        self,
        wanted: Mapping[bytes, WantedFile],
        leftovers: Iterable[tuple[bytes, list[bytes]]],
        report: Callable[[Problem], None],
        round_: int,
        progress: StepsProgress | None = None,
        *,
        declined: Set[bytes] = frozenset(),
    ) -> Conversation[tuple[dict[bytes, Identity | None], int]]:
        """Take files in a turn that the other side begins as the source.

        Return those that arrived, each with what it is now if that is known, and the round to go on with.
        `declined`: further files that the other side sends and this side does not take. `report` hears why
        others did not.
        """
        from rdc.session.destination.files_turn import FilesTurn
        from rdc.session.transfer.destination import Destination, Terms
        from rdc.session.trees.destination_root import DestinationRoot, asked_metadata

        arrived: set[bytes] = set()
        before = 0 if progress is None else progress.arrived

        def hear(event: Event, /) -> None:
            if isinstance(event, ItemChanged):
                arrived.add(event.path_bytes)
            elif isinstance(event, Progressed):
                if progress is not None and event.phase == "transfer":
                    progress.arrive(before + event.done)
            elif isinstance(event, Problem):
                report(event)

        start = Start(b"", Kind.DIRECTORY, TOP, EVERYTHING)
        terms = Terms(self._options, filter_list(()), self._secret, self._signer)
        kept = asked_metadata(self._options).also(self._root.storage.facts.keeps)
        place = DestinationRoot(self._root, None, new=False)
        context = Destination(terms, place, start, EventRelay(hear), kept)
        turn = FilesTurn(context, wanted, leftovers, report, declined=declined)
        round_ = yield from turn.run(round_)
        return {path: turn.landed.get(path) for path in arrived if path in wanted}, round_

    def serve(self, files: Mapping[bytes, Row], round_: int) -> Conversation[Set[bytes]]:
        """Announce files in a turn that has begun, and answer requests about them until the other side has
        what it takes. Files come as they are then.

        Return those that were others then than those listed."""
        from rdc.session.source.turns import Changes, DirectoryChange, TurnSource
        from rdc.session.trees.source_tree import SourceTree

        inside: dict[bytes, dict[bytes, Row]] = {}
        for path, row in files.items():
            parent, _, name = path.rpartition(b"/")
            inside.setdefault(parent, {})[name] = row
        changes = Changes(
            (),
            [DirectoryChange(path, TOP, _listing(inside[path]), ()) for path in sorted(inside)],
            len(files),
            len(files),
            0,
        )
        others: set[bytes] = set()

        def opened(path: bytes, identity: Identity) -> None:
            row = files.get(path)
            if row is None or row.listed is None or not self._root.check.is_still(row.listed, identity):
                others.add(path)

        root = self._root.having(reads=replace(self._root.reads, opened=opened))
        source = TurnSource(
            SourceTree(root, None), filter_list(()), self._secret, self._signer, EventRelay(_nobody)
        )
        yield from source.announce(changes, round_)
        return others


def do_late_steps(
    steps: Steps,
    side: int,
    late: Sequence[Step],
    files: FilesEnd,
    leftovers: Iterable[tuple[bytes, list[bytes]]],
    report: Callable[[Problem], None],
    round_: int,
    *,
    turn: bool,
) -> Conversation[int]:
    """Do the steps of one side that follow its renames: writes, then removals, then metadata.

    `turn`: a turn of files has begun, in which this side takes them. Return the round to go on with.
    """
    from rdc.session.destination.files_turn import WantedFile

    late = [settable(step) for step in late]
    writes = next((at for at in range(len(late), 0, -1) if isinstance(late[at - 1], Write)), 0)
    wanted: dict[bytes, Write] = {}
    planned = {step.path for step in late[:writes] if isinstance(step, Write) and step.row.kind == FILE}
    for step in late[:writes]:
        if isinstance(step, Write) and step.row.kind == FILE:
            if steps.needs_failed(side, step):
                steps.fail(side, step)
            else:
                wanted[step.path] = step
        else:
            steps.do([(side, step)])
    for path, step in list(wanted.items()):
        if steps.needs_failed(side, step):
            steps.fail(side, wanted.pop(path))

    def heard(problem: Problem) -> None:
        step = wanted.get(problem.path_bytes)
        if step is not None:
            problem = replace(problem, message=steps.reason(side, step, problem.message))
        report(problem)

    if turn:
        asked = {
            path: WantedFile(
                Metadata(step.row.mode, step.row.mtime_ns, 0, 0),
                step.replaced.listed if step.replaced is not None else None,
            )
            for path, step in wanted.items()
        }
        before = 0 if steps.progress is None else steps.progress.arrived
        arrived, round_ = yield from files.bring(
            asked, leftovers, heard, round_, steps.progress, declined=planned - asked.keys()
        )
        if steps.progress is not None:
            steps.progress.arrive(before + sum(items_of(wanted[path], side).copied for path in arrived))
        for path, step in wanted.items():
            if path in arrived:
                steps.landed(side, step, path, arrived[path])
                steps.know(side, path, arrived[path])
            else:
                steps.fail(side, step)
    steps.do((side, step) for step in late[writes:])
    return round_


def _nobody(_event: Event, /) -> None:
    """Ignore what a destination reports: the outcome tells it."""


def _listing(rows: Mapping[bytes, Row]) -> Listing:
    names = sorted(rows)
    stamps = [rows[name].stamp for name in names]
    none = array("I", [0] * len(names))
    return Listing(
        tuple(names),
        bytes([FILE]) * len(names),
        array("H", [stamp.mode for stamp in stamps]),
        array("Q", [stamp.size for stamp in stamps]),
        array("q", [stamp.mtime_ns for stamp in stamps]),
        none,
        none,
        (),
    )
