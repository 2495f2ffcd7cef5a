"""Choose the way in which a changed file arrives soonest: whole, packed or not, or by delta.

A pure function of what is known of the line and of the sizes of the files. `whole_up_to` returns the size in
bytes up to which files come whole. Above it a delta ends sooner: it reads both versions and takes more round
trips, but it sends little. A way never decides what is verified: every rebuilt file has its announced digest.

The figures are those of one machine. They only have to be right within a factor of two: the ways then differ
by less. If the rate is wrong by a factor of 1.5, what is chosen takes at most 1.5 times as long as the best.
"""

from __future__ import annotations

from rdc.lean.enums import IntEnum
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.sync import SyncOptions


WHOLE_BYTES = 1024
"""Files whose size has changed to at most this, in bytes, come whole on any line. Compressed they are hardly
longer than a root and fingerprints, and they save round trips."""


class Line(Record):
    """The line between the two sides, as far as it is known."""

    rate: float
    """Bytes a second; 0: unknown; infinite: both sides are in one process."""
    round_trip: float = 0.0
    """Seconds."""


NO_LINE = Line(float("inf"))
UNKNOWN = Line(0.0)


def line_of(options: SyncOptions, *, here: bool) -> Line | None:
    """Return the line that the options tell; None: they leave no choice of ways. `here`: both sides are in
    this process."""
    if options.fewest_bytes or options.whole_file or options.dry_run or options.append:
        return None
    rates = [rate for rate in (options.line, options.bandwidth) if rate]
    if rates:
        return Line(float(min(rates)))
    return NO_LINE if here else UNKNOWN


class Packing(IntEnum):
    """The effort of compressing whole files. The numbers are those of FileRequest."""

    AS_EVER = 0
    """The source chooses the level by the rate at which it sends."""
    QUICK = 1
    NONE = 2


class Effort(Record):
    """The cost of one way to compress, and what it saves, on the files of a release."""

    packing: Packing
    seconds: float
    """For a byte of content, beside its transfer."""
    share: float
    """Bytes sent for a byte of content."""


EFFORTS = (
    Effort(Packing.AS_EVER, 10e-9, 0.20),
    Effort(Packing.AS_EVER, 3.3e-9, 0.22),
    Effort(Packing.QUICK, 2.1e-9, 0.27),
    Effort(Packing.NONE, 1.7e-9, 1.0),
)
"""Measured on what changed from one release to the next of Django, TypeScript, numpy and pyarrow: levels 6, 3
and 1, and none, where reading, hashing and writing bound the rate. The source chooses between the first two
by the rate at which it sends."""

NOT_BESIDE = 0.1
"""The share of a transfer that does not overlap with reading and writing."""

DELTA_BYTE = 4e-9
"""Seconds for a byte of a new version by delta: both sides read, cut and hash their versions at the same
time, then unmatched chunks are searched, and the file is rebuilt."""

DELTA_FILE = 350e-6
"""Seconds that one more file by delta takes beyond its bytes, in a bundle, and beyond those of a whole
file."""

DELTA_SHARE = 0.02
"""Bytes sent for a byte of a new version by delta. Most releases need less, rebuilt libraries 0.07."""

DELTA_TRIPS = 2
"""Round trips that a session takes more if any file comes by delta."""

STAY = 1.25
"""A whole file must cost this many times the other way before a session turns from one to the other: a rate
that is measured again and again differs each time."""


def _packing_byte(packing: Packing) -> float:
    """Return the seconds that the quickest effort of this packing takes for a byte of content."""
    return min([effort.seconds for effort in EFFORTS if effort.packing is packing])


def best_packing(rate: float) -> Packing:
    """Return how whole files come soonest at `rate` bytes a second."""
    return min(EFFORTS, key=lambda effort: _whole_byte(effort, rate)).packing


def whole_byte(rate: float) -> float:
    """Return the seconds for a byte of a whole file."""
    return min(_whole_byte(effort, rate) for effort in EFFORTS)


def _whole_byte(effort: Effort, rate: float) -> float:
    sending = effort.share / rate
    return max(sending, effort.seconds) + NOT_BESIDE * sending


def delta_byte(rate: float) -> float:
    """Return the seconds for a byte of a new version by delta, without those of the file and of round
    trips."""
    return DELTA_BYTE + DELTA_SHARE / rate


def prefers_whole(line: Line) -> bool:
    """Return whether files of any size come whole."""
    return line.rate > 0 and whole_byte(line.rate) <= delta_byte(line.rate)


def whole_up_to(sizes: Sequence[int], line: Line, *, whole: bool = False) -> float:
    """Return the size in bytes up to which files come whole; infinite: all of them.

    `sizes`: of the new versions that wait, in bytes. `whole`: files came whole until now. At an unknown rate
    it is WHOLE_BYTES. It never falls while the rate grows."""
    rate = line.rate
    if rate <= 0:
        return WHOLE_BYTES
    more = whole_byte(rate) / (STAY if whole else 1.0) - delta_byte(rate)
    if more <= 0:
        return float("inf")
    most = max(WHOLE_BYTES, DELTA_FILE / more)
    # Round trips are paid once, for the first file that needs them.
    saved = sum([size * more - DELTA_FILE for size in sizes if size > most])
    return float("inf") if saved <= DELTA_TRIPS * line.round_trip else most


def seconds_of(sizes: Sequence[int], line: Line, most: float) -> float:
    """Return the seconds that files of these sizes take if those up to `most` bytes come whole."""
    whole = sum([size for size in sizes if size <= most])
    by_delta = [size for size in sizes if size > most]
    seconds = whole * whole_byte(line.rate) + sum(by_delta) * delta_byte(line.rate)
    return seconds + (DELTA_FILE * len(by_delta) + DELTA_TRIPS * line.round_trip if by_delta else 0.0)


# How a rate that nobody knows is found out: whole files are asked for in windows, each a few times as large
# as all before it. What a wrong choice costs is bounded by what was sent before it.

NEAR_SECONDS = 0.005
"""Round trip below which a line may be fast enough for whole files. Hosts farther away get deltas, whose
bytes matter there, and no windows: each waits for the one before."""

FIRST_WINDOW = 256 << 10
"""Bytes of content of the first window. A line of 10 Mbit/s takes 0.05 s for it, compressed."""

WINDOW_GROWTH = 4
"""The content of the next window, as a multiple of all content before it."""

MEASURED_BYTES = 64 << 10
"""Bytes of content from which the time of a window tells the rate."""

WINDOW_SECONDS = 0.001
"""The time of a window beside its bytes and their packing: both sides wake up, and the source opens files. On
a fast line that is most of the time of a short window."""

NET_LEAST = 1 / 3
"""The share of a window's time that counts as that of the line at least, whatever is taken off."""

FAST_RATE = 12e6
"""Bytes a second from which a line may be as fast as the compressor: a short window takes as long to read and
to pack as it takes on a line of 500 Mbit/s. A line of this rate carries FIRST_WINDOW in 0.02 s."""


def _stays_whole(rate: float) -> bool:
    """Return whether files of any size go on to come whole at `rate`."""
    return whole_byte(rate) <= STAY * delta_byte(rate)


class Windows:
    """The windows of a session: how the next one comes, and what the last ones told of the line.

    A window may have stalled, so the faster one of the last two counts. If the last one was the first that is
    too slow for whole files, the next one is short and decides."""

    def __init__(self) -> None:
        self._taken = 0
        """Bytes of content of all windows so far."""
        self._rates = (0.0, 0.0)
        """Bytes a second of the last window and of the one before; 0: not measured."""
        self._content_rates: dict[Packing, float] = {}
        """Bytes of content a second, by how it was packed."""

    @property
    def rate(self) -> float:
        """Bytes a second that the line carries at least; 0: not measured."""
        return max(self._rates)

    @property
    def is_doubtful(self) -> bool:
        """Return whether only the last window was too slow for whole files."""
        last, before = self._rates
        return last > 0 and not _stays_whole(last) and (not before or _stays_whole(before))

    @property
    def is_strict(self) -> bool:
        """Return whether no file may make the next window longer than its room: the line may be slow."""
        return self.is_doubtful or not self.rate

    @property
    def tries_plain(self) -> bool:
        """Return whether the next window comes uncompressed to find out if that is faster."""
        return self.rate >= FAST_RATE and Packing.NONE not in self._content_rates

    @property
    def room(self) -> int:
        """Bytes of content that the next window may have."""
        if self.tries_plain:
            return max(FIRST_WINDOW, self._taken)
        return FIRST_WINDOW if self.is_doubtful else max(FIRST_WINDOW, self._taken * WINDOW_GROWTH)

    @property
    def packing(self) -> Packing:
        """Return how the next window comes: after a trial without compression, whichever brought more content
        a second."""
        if self.tries_plain:
            return Packing.NONE
        plain = self._content_rates.get(Packing.NONE)
        if plain is None:
            return Packing.AS_EVER
        packed = [rate for packing, rate in self._content_rates.items() if packing is not Packing.NONE]
        return Packing.NONE if plain >= max(packed, default=0.0) else best_packing(self.rate)

    def whole_up_to(self, sizes: Sequence[int], round_trip: float) -> float:
        """Return the size up to which the files that are left come whole, as far as the windows tell."""
        if self.tries_plain or self.is_strict:
            return float("inf")
        return whole_up_to(sizes, Line(self.rate, round_trip), whole=True)

    def ended(self, content: int, carried: int, seconds: float, packing: Packing) -> None:
        """Note that a window came: `content` bytes, for which the line carried `carried` in `seconds`. One
        that is too short to tell anything only counts, and so does one that took no time."""
        self._taken += content
        if content >= MEASURED_BYTES and carried > 0 and seconds > 0:
            own = WINDOW_SECONDS + content * _packing_byte(packing)
            self._rates = carried / max(seconds - own, NET_LEAST * seconds), self._rates[0]
            self._content_rates[packing] = content / max(seconds - WINDOW_SECONDS, NET_LEAST * seconds)
