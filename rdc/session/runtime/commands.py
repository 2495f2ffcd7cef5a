"""The commands that a conversation yields, and the compression level that a connection can afford."""

from __future__ import annotations

import os
import time
from collections.abc import Generator

from rdc.errors import ExitCode, one_line
from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.lean.typed import TypeVar
from rdc.limits import (
    ENTRIES_MEMORY_DEFAULT,
    ENTRIES_MEMORY_SHARE,
    ITEMS_BYTES,
    ITEMS_PER_MESSAGE,
    MESSAGE_BYTES,
    PROBLEMS_WAITING,
    SHORT_PATH,
)
from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed, Reporter
from rdc.protocol.connection import Received
from rdc.protocol.messages import Items, Notice, Plan, Progress
from rdc.protocol.wire.stream import HARD, PLAIN, QUICK, QUICKEST, RAW, CompressionLevel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Message
    from rdc.session.runtime.packing_trials import PackingTrials


# Chooses the compression level. Text and the first bytes of code always get the high level; more code and new
# files get it only on a slow link.

HARD_FIRST = 512 << 10
"""Bytes of code per session that get the high level on any link. Measured: that saves some 10 KB in 4 ms; the
next 1.5 MiB would save 12 to 50 KB in 14 ms."""

SLOW = 4 << 20
"""Bytes per second below which a link is slow. Measured on 25 MB of literals of libraries: the high level
saves 0.5 MB and takes 0.17 s more, as long as a link of 3 MB/s needs for 0.5 MB."""


FAST = 32 << 20
"""Bytes per second above which a link is fast. Measured on the literals of three rebuilt packages: the lowest
level adds 0.6 MB and saves 0.03 s on both sides, as long as a link of 20 MB/s needs for 0.6 MB."""


TRIED = 16 << 20
"""Bytes per second below which a link does not carry new files without compression to try that: level 3 takes
a tenth of the time that a line of 100 Mbit/s needs for the bytes that it saves."""

TRIED_WAITING = 1 << 20
"""Bytes that may wait for the link when that begins."""

KNOWN_BYTES = 4 << 20
"""Bytes that have left before that is tried at all. Pipes, the remote shell and sockets take some at once."""


class Content(Enum):
    """The kinds of content that a session sends."""

    NEW = "files of which nothing is there"
    TEXT = "what no base has of a file that is no code"
    """The high level shrinks text by a tenth or more and code by a twentieth. For text it pays on every
    link."""
    CODE = "what no base has of machine code"
    QUICK = "whole files on a line that is about as fast as compression"
    BARE = "whole files on a line that is faster"


class CompressionPolicy:
    """The compression policy for one direction of a session."""

    __slots__ = (
        "_carried",
        "_code",
        "_limit",
        "_new",
        "_packs",
        "_seconds",
        "_taken",
        "_trials",
        "_tries",
        "_waited",
        "clock",
        "is_trying",
        "left",
        "waiting",
    )

    def __init__(self) -> None:
        self._packs = False
        self._code = 0
        self._limit = 0
        self._carried = 0
        self._seconds = 0.0
        self._taken = 0
        self._waited = 0.0
        self._new = PLAIN
        """The level of the new files that are being sent, unless they go without compression."""
        self._tries = False
        self._trials: PackingTrials | None = None
        self.clock: Callable[[], float] | None = None
        """Tells when content was sent; None: there is no line."""
        self.left = 0
        """Bytes that the link has taken."""
        self.waiting = 0
        """Bytes that wait for the link."""
        self.is_trying = False
        """New files are sent in both ways, to compare. Few bytes may wait then, or nothing could be measured:
        what waits has cost no time yet."""

    def limit(self, bandwidth: int, *, tries: bool = False, packs: bool = False) -> None:
        """Send at most this many bytes a second from now on; 0: as many as the link takes. `tries`: the user
        wants new files soon rather than in few bytes. `packs`: the user wants everything compressed."""
        self._limit = bandwidth
        self._packs = packs
        self._tries = tries and not packs

    def note_delay(self, carried: int, seconds: float, *, by_link: bool = True) -> None:
        """Note the time during which there was more to send than the link took, and the bytes that it took.
        `by_link`: because of the link, and not of a remote side that is busy."""
        self._taken += carried
        self._waited += seconds
        if by_link:
            self._carried += carried
            self._seconds += seconds

    @property
    def slow(self) -> bool:
        """Return whether the link, as measured so far, is slow enough for the high level to pay."""
        return 0 < self._limit < SLOW or self._carried < SLOW * self._seconds

    @property
    def fast(self) -> bool:
        """Return whether the link, as measured so far, is so fast that compression hardly pays."""
        return not 0 < self._limit < FAST and self._carried >= FAST * self._seconds

    def compression(self, content: Content, size: int = 0) -> CompressionLevel:
        """Return the level for the next content. `size`: its bytes, if it is code or a part of new files."""
        if content is Content.NEW:
            return self._level_of_part(size) if size else self._level_of_new()
        if content is Content.TEXT:
            return HARD
        if content is Content.QUICK or content is Content.BARE:
            # The destination measured the line. What this side has measured outweighs that.
            self._tries = self.is_trying = False
            return HARD if self.slow else QUICKEST if content is Content.QUICK or self._packs else RAW
        self._code += size
        if self._code <= HARD_FIRST or self.slow:
            return HARD
        return QUICKEST if self.fast else QUICK

    def _level_of_new(self) -> CompressionLevel:
        self._new = HARD if self.slow else PLAIN
        return self._new

    def _level_of_part(self, size: int) -> CompressionLevel:
        """Return the level for the next `size` bytes of new files. It is not chosen again for each: a change
        begins a new window, in which zstd knows nothing of what came before."""
        self.is_trying = (
            self._tries and self.clock is not None and self._new is not HARD and self.left >= KNOWN_BYTES
        )
        if not self.is_trying or self.clock is None:
            return self._new
        if self._trials is None:
            if self.waiting > TRIED_WAITING:
                return self._new
            from rdc.session.runtime.packing_trials import PackingTrials  # few sessions send as much

            self._trials = PackingTrials()
        is_fast = not 0 < self._limit < TRIED and self._taken >= TRIED * self._waited
        self._trials.count(size, self.clock(), fast=is_fast)
        return RAW if self._trials.plain else self._new


# The commands that a conversation yields: send, receive, flush, wait, set limits, set compression.
#
# A conversation is a generator that yields commands and returns a value. It never touches a transport. It can
# therefore run over ssh, between two threads, or against a script in a test.

T = TypeVar("T")


class Send(Record):
    """Queues a message; the answer is None. The message leaves at the next Receive(wait=True) at the
    latest."""

    message: Message
    round: int


class Receive(Record):
    """Asks for the next message; the answer is a Received.

    With wait=False the answer is None if no message is there yet, and queued messages stay queued until they
    fill a block.
    """

    wait: bool = True


class Flush(Record):
    """Hands queued messages to the transport, as far as it takes them; the answer is None.

    A conversation flushes before long work without messages.
    """


class Pace(Record):
    """Sets the connection's limits; 0 is no limit. The answer is None."""

    bandwidth: int
    """Bytes per second that this side may write."""
    timeout: int
    """Seconds without a byte in either direction after which the session ends."""
    tries: bool = False
    """True if new files may go without compression if they end sooner."""
    packs: bool = False
    """True if everything is compressed, as the user wants it."""


def pace_of(options: SyncOptions) -> Pace:
    """Return the limits that the options of a sync ask either side to keep."""
    packs = options.compress is True
    return Pace(options.bandwidth, options.timeout, not (options.fewest_bytes or packs), packs)


class Idle(Record):
    """Asks for the next message between two turns of an open session. It may take days.

    The answer None means that the remote side ended the stream. With a `bell` it means that the bell rang or
    `seconds` passed; the end of the stream then raises StreamError. Under a time limit both sides send signs
    of life; a side that receives none for that long ends the session.
    """

    bell: int | None = None
    """A file descriptor that rings by becoming readable."""
    seconds: float | None = None


class SetCompression(Record):
    """Announces the content of the next messages, which decides their compression level; the answer is
    None."""

    content: Content
    size: int = 0
    """Bytes of the content, if it is code or a part of new files."""


class AskAgreement(Record, frozen=False):
    """Asks for what both sides speak, after the remote side's Hello; the answer is None, and `features` is
    set."""

    features: frozenset[str] = frozenset()


class AskArrival(Record, frozen=False):
    """Asks when the last message came, and how much came until then; the answer is None, and these are
    set."""

    now: float | None = None
    """Seconds of a clock that never goes back; None: there is no line whose rate could be measured."""
    received: int = 0
    """Bytes on the connection so far."""


Command: TypeAlias = Send | Receive | Flush | Pace | SetCompression | AskAgreement | AskArrival | Idle
Conversation: TypeAlias = Generator[Command, Received | None, T]


def agreed_features() -> Conversation[frozenset[str]]:
    """Return the features that both sides have."""
    question = AskAgreement()
    yield question
    return question.features


class LineMeter:
    """The shortest round trip that this side has seen.

    Only an answer to a request counts: what was under way before is none. A clock that jumps spoils one
    interval: a negative one is ignored, and a long one only means that the other side may be far away."""

    __slots__ = ("_asked", "round_trip")

    def __init__(self) -> None:
        self.round_trip = float("inf")
        """Seconds, at most; infinite: not measured."""
        self._asked: float | None = None

    def asked(self) -> Conversation[None]:
        """Note that a request was sent that the other side answers at once."""
        arrival = AskArrival()
        yield arrival
        self._asked = arrival.now

    def answered(self) -> Conversation[None]:
        """Note that its first answer came. Does nothing if there was no request."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        arrival = AskArrival()
        yield arrival
        if arrival.now is not None and arrival.now > asked:
            self.round_trip = min(self.round_trip, arrival.now - asked)


# Brings events to the user, who is at the dialling side: reports them there, or sends them there.
#
# `EventRelay` passes events on. `TransferProgress` counts bytes of content and makes events of them.

PROGRESS_BYTES = 1 << 20
"""Content bytes between two progress events. A fast disk gives some tens of events per second."""


class TransferProgress:
    """Counts bytes of content and reports progress once per PROGRESS_BYTES at most. Who brings content adds
    it to the bytes that came, were reused, or are to be compared."""

    def __init__(self, events: EventRelay) -> None:
        self._events = events
        self.literal_bytes = 0
        """Bytes of content that came from the source."""
        self.reused_bytes = 0
        """Bytes of content that the destination had."""
        self.total_bytes = 0
        """Bytes of all files to be fetched."""
        self.compare_bytes = 0
        """Bytes to compare with local files, counted by the sizes of the new versions."""
        self._done = 0
        self._shown = 0
        self._compared = 0
        self._compare_shown = 0
        self._compare_total: int | None = None

    def count_total(self, size: int, *, compared: bool) -> None:
        """Count a file to be fetched. `compared`: it is compared with a local file first."""
        self.total_bytes += size
        if compared:
            self.compare_bytes += size

    def plan_known(self) -> None:
        """Report how much there is to compare. All files were counted."""
        if self.compare_bytes:
            self._compare_total = self.compare_bytes
            self._events.report(Progressed("compare", self._compared, self._compare_total))

    def comparing(self, done: int, *, ends: bool = False) -> None:
        """Report that `done` bytes of the current file were compared. `ends`: that is all of it."""
        done += self._compared
        if ends:
            self._compared = done
        if done - self._compare_shown >= PROGRESS_BYTES or done == self._compare_total:
            self._compare_shown = done
            self._events.report(Progressed("compare", done, self._compare_total))

    def arriving(self, done: int, *, ends: bool = False) -> None:
        """Report that `done` bytes of the current file have arrived. `ends`: that is all of it."""
        done += self._done
        if ends:
            self._done = done
        if done - self._shown >= PROGRESS_BYTES:
            self._shown = done
            self._events.report(Progressed("transfer", min(done, self.total_bytes), self.total_bytes))


PROGRESS_SECONDS = 0.25
"""Shortest time between two progress messages of one phase. Each takes some 20 bytes."""


class _LongItem(Record):
    """An ItemChanged with a long path that waits to be sent."""

    change: str
    directory: bytes
    """The directory's path with its slash; consecutive items share it."""
    name: bytes
    target_bytes: bytes | None

    @property
    def path_bytes(self) -> bytes:
        return self.directory + self.name


EVENT_MESSAGES = (Items, Progress, Plan, Notice)
"""The messages that tell of the remote side's events: `EventRelay.take` reports them."""

_Waiting: TypeAlias = "ItemChanged | _LongItem | Progressed | PlanKnown | Problem"


class EventRelay:
    """Takes a conversation's events and counts problems.

    On the user's side, events go to the reporter at once. On the other side they wait for `send_waiting`.
    Progress events are thinned out for slow lines.
    """

    def __init__(
        self,
        reporter: Reporter | None,
        clock: Callable[[], float] = time.monotonic,
        *,
        items: bool = True,
    ) -> None:
        """Take `reporter`: None on the side without the user. `clock`: seconds that never go back. `items`:
        the remote side wants events about changed entries."""
        self._reporter = reporter
        self._items = items
        self._clock = clock
        self._shown: dict[str, float] = {}
        self.waiting: list[_Waiting] = []
        """The messages that the next `send_waiting` sends."""
        self._directory = b""
        """Directory of the last waiting item with a long path, with its slash."""
        self._problems = 0
        """Number of waiting problems."""
        self._untold: dict[ExitCode, int] = {}
        """Number of problems beyond PROBLEMS_WAITING, by exit code."""
        self.codes: set[ExitCode] = set()
        self.errors = 0
        self._heed: Callable[[Problem], None] | None = None
        self._troubled: set[bytes] | None = None
        """Paths with problems; None: nobody asks for them."""
        self._made: set[bytes] | None = None
        """Paths of new entries; None: nobody asks for them."""
        self.line: Callable[[], int] | None = None
        """Returns the bytes on the connection so far, both ways; None: there is no connection to the user."""

    def report(self, event: Event, *, far: bool = False) -> None:
        """Report one event, now or at the next `send_waiting`. `far`: the remote side sent it, so it is not
        heeded."""
        if isinstance(event, Problem):
            if self._heed is not None and not far:
                self._heed(event)
            if event.code is not ExitCode.OK:
                self.codes.add(event.code)
                self.errors += 1
                if self._troubled is not None and event.code is not ExitCode.MAX_DELETE:
                    self._troubled.add(event.path_bytes)
        elif self._made is not None and isinstance(event, ItemChanged) and event.change.endswith("+++"):
            self._made.add(event.path_bytes)
        if self._reporter is not None:
            if self.line is not None and isinstance(event, Progressed):
                event = Progressed(event.phase, event.done, event.total, self.line())
            self._reporter(event)
        elif isinstance(event, ItemChanged) and not self._items:
            pass
        elif not (isinstance(event, Progressed) and self._too_soon(event)):
            self._wait(event)

    def heed(self, hear: Callable[[Problem], None]) -> None:
        """Call `hear` with each problem of this side from now on."""
        self._heed = hear

    def note_paths(self, *, made: bool) -> None:
        """Remember the paths of problems from now on, and with `made` those of new entries."""
        self._troubled = set()
        self._made = set() if made else None

    def is_uncertain(self, path: bytes) -> bool:
        """Return whether there was a problem with `path`, or it is not new and only new entries count.

        b"" stands for a problem with no path in particular."""
        if self._troubled is None or path in self._troubled:
            return True
        return self._made is not None and path not in self._made and path != b""

    def _wait(self, event: Event) -> None:
        """Store an event until `send_waiting`.

        A peer with many changed entries below one long path cannot fill this side's memory: they share it.
        """
        if isinstance(event, ItemChanged):
            self.waiting.append(event if len(event.path_bytes) <= SHORT_PATH else self._long_item(event))
        elif not isinstance(event, Problem):
            self.waiting.append(event)
        elif self._problems < PROBLEMS_WAITING:
            # A long path counts as several problems, so that the bound in bytes stays.
            self._problems += 1 + len(event.path_bytes) // MESSAGE_BYTES
            self.waiting.append(Problem(event.code, event.path_bytes, event.message[:MESSAGE_BYTES]))
        else:
            self._untold[event.code] = self._untold.get(event.code, 0) + 1

    def _long_item(self, event: ItemChanged) -> _LongItem:
        at = event.path_bytes.rstrip(b"/").rfind(b"/") + 1
        directory = event.path_bytes[:at]
        if directory != self._directory:
            self._directory = directory
        return _LongItem(event.change, self._directory, event.path_bytes[at:], event.target_bytes)

    @property
    def shown(self) -> bool:
        """Return whether this is the user's side."""
        return self._reporter is not None

    @property
    def lists_items(self) -> bool:
        """Return whether either side wants events about changed entries."""
        return self._items or self.shown

    def send_waiting(self, round_: int) -> Conversation[None]:
        """Send the waiting events."""
        if self.waiting:
            for code, count in self._untold.items():
                text = f"{count} more problems like this: too many at a time to tell of each"
                self.waiting.append(Problem(code, b"", text))
            self._untold = {}
            waiting, self.waiting, self._problems = self.waiting, [], 0
            for message in _messages(waiting):
                yield Send(message, round_)

    def _too_soon(self, event: Progressed) -> bool:
        """Return whether a progress event comes too soon after the last one of its phase."""
        now = self._clock()
        last = self._shown.get(event.phase)
        if last is not None and now - last < PROGRESS_SECONDS and event.done != event.total:
            return True
        self._shown[event.phase] = now
        return False

    def take(self, message: Message) -> bool:
        """Report an event that the remote side sent; False if the message is not an event."""
        if not isinstance(message, EVENT_MESSAGES):
            return False
        if isinstance(message, Items):
            targets = message.targets or (b"",) * len(message.paths)
            for change, path, target in zip(message.codes, message.paths, targets, strict=True):
                # The remote side received the file, so this side sent it: rsync's '<'.
                shown = "<" + change[1:] if change[0] == ">" else change
                self.report(ItemChanged(shown, path, target or None), far=True)
        elif isinstance(message, Progress):
            self.report(Progressed(message.phase, message.done, message.total), far=True)
        elif isinstance(message, Plan):
            self.report(PlanKnown(message.files, message.bytes, message.deletes), far=True)
        else:
            self.report(Problem(ExitCode(message.code), message.path, one_line(message.message)), far=True)
        return True


def _messages(events: list[_Waiting]) -> Iterator[Message]:
    """Yield the messages for these events, in order. Consecutive items share messages."""
    items: list[ItemChanged | _LongItem] = []
    size = 0
    for event in events:
        if isinstance(event, (ItemChanged, _LongItem)):
            length = len(event.path_bytes) + len(event.target_bytes or b"") + 2
            if items and (len(items) == ITEMS_PER_MESSAGE or size + length > ITEMS_BYTES):
                yield _joined(items)
                items, size = [], 0
            items.append(event)
            size += length
            continue
        if items:
            yield _joined(items)
            items, size = [], 0
        if isinstance(event, Progressed):
            yield Progress(event.phase, event.done, event.total)
        elif isinstance(event, PlanKnown):
            yield Plan(event.files, event.bytes, event.deletes)
        else:
            yield Notice(event.code, event.path_bytes, event.message)
    if items:
        yield _joined(items)


def _joined(items: list[ItemChanged | _LongItem]) -> Items:
    linked = any(item.target_bytes for item in items)
    return Items(
        "".join([item.change for item in items]),
        tuple([item.path_bytes for item in items]),
        tuple([item.target_bytes or b"" for item in items]) if linked else (),
    )


def entries_memory(asked: int | None) -> int:
    """Return the limit in bytes: --max-memory, all of this machine's memory for 0, or a share of it for
    None."""
    if asked:
        return asked
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return ENTRIES_MEMORY_DEFAULT
    if physical <= 0:
        return ENTRIES_MEMORY_DEFAULT
    return physical if asked == 0 else physical // ENTRIES_MEMORY_SHARE
