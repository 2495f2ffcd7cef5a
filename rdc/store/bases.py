"""BaseChooser: which chunks of old versions a new run of chunks is made against.

Deltas skip: one of generation g is made against generation `older(g)` or before, in which the lowest digit of
g in base 4 that is not 0 has become 0. So a chain of a thousand versions is five frames deep. In a published
store, only each tenth generation skips, by digits in base 10: eleven frames.

Of the chunks there that lie around the new ones, those are taken that share pieces with them: a prefix of
1 MiB that has the right chunks is worth more than one of 4 MiB around a guess, to writer and reader.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from itertools import islice
from operator import itemgetter
from struct import Struct

from rdc.errors import FileError
from rdc.kernel import cut_many
from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.records import Record
from rdc.store.directory import BASES_MOST, KEY_BYTES, split_keys
from rdc.store.frames import FRAME_BYTES, PREFIX_BYTES
from rdc.store.reader import CLOSURE_BASES, DECODED_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rdc.store.reader import FrameFacts, StoreReader

DEPTH_MADE = 12
"""No delta is written against a base of this depth. A reader takes DEPTH_MOST, which is more."""

NEEDED_BYTES = 16 * FRAME_BYTES
"""Most bytes that a reader decodes for the bases of one delta, in a store whose deltas skip generations. Half
of the deltas of the database of bench.store need 3 MB or less, and none more than 10 MB."""

SEARCHED_BASES = 4096
"""Most chunks that are looked at for the bases of one delta."""

CANDIDATE_BYTES = 2 * PREFIX_BYTES
"""Most bytes of chunks that are compared with the content of one delta."""

SKIPPING = 4
"""The base of the digits of a generation where deltas skip. With 4 instead of 2, a restore of any of 20 days
of a database decodes 4.5 times its bytes, not 6.8 times, and the 20 days take a tenth more bytes."""

STEPPING = 10
"""The base of these digits in a published store, where only each tenth generation skips: whoever follows it
fetches what lies below that one, which cannot be avoided for ever as no chain is longer than DEPTH_MOST."""

_WHOLE_SHARE, _WHOLE_BYTES = 1.25, 32 << 10
"""Candidates with at most this share of the content's bytes and that many more are all taken. Most files have
no others."""

_PIECE_LEAST, _PIECE_MOST = 128, 512
"""Bytes of a piece: a row of a table, or some lines."""

_NAMES = Struct(f"8s{NAME_BYTES - 8}x")
"""Digests, of which 8 bytes name a piece. If two pieces have the same, a base is chosen for nothing."""

_PIECES_KEPT = 1 << 16
"""Pieces of chunks that stay in memory, since the next run has nearly the same candidates."""

_WORTH = 50
"""A base has at least one in this many of its pieces that the content has and no other base."""

_FRAMES_KEPT = 256
"""Frames whose needs stay in memory."""


def older(generation: int, *, skips: bool = True) -> int:
    """Return the newest generation that a delta of `generation`, 1 or more, may be made against.

    `skips`: as in BaseChooser.
    """
    digit, base = 1, SKIPPING if skips else STEPPING
    while not generation % (digit * base):
        digit *= base
    if digit == 1 and not skips:
        return generation - 1
    return generation - generation % (digit * base)


def most_depth(generation: int, *, skips: bool = True) -> int:
    """Return the highest depth of a delta of `generation`: how often `older` leads to another one."""
    found = 0
    while generation:
        generation, found = older(generation, skips=skips), found + 1
    return found


class Bases(Record):
    """The bases of one delta."""

    keys: tuple[bytes, ...]
    generation: int
    """The generation of the delta."""
    depth: int
    """The depth of the delta: how many others it needs, one after another."""


class _Candidate(Record):
    """A chunk that may become a base."""

    key: bytes
    length: int
    frame: FrameFacts


class _Needed:
    """The frames that a reader decodes for the bases of one delta: at most `most` bytes, and half of the
    bases that it looks up."""

    def __init__(self, most: int) -> None:
        self._frames = set[int]()
        self._bytes_left, self._bases_left = most, CLOSURE_BASES // 2

    def add(self, frames: Sequence[FrameFacts]) -> bool:
        """Add frames if they keep the bounds, and return whether they do."""
        more = [one for one in frames if one.number not in self._frames]
        size = self._bytes_left - sum([one.size for one in more])
        bases = self._bases_left - sum([len(one.bases) for one in more]) // KEY_BYTES
        if size < 0 or bases < 0:
            return False
        self._bytes_left, self._bases_left = size, bases
        self._frames.update([one.number for one in more])
        return True


class BaseChooser:
    """Chooses bases among the chunks of a store."""

    def __init__(self, reader: StoreReader, *, skips: bool) -> None:
        """`skips`: whether deltas skip generations. In a published store most do not: a reader has the one
        before, and older ones lie in frames that it would have to fetch."""
        self._reader = reader
        self._skips = skips
        self._pieces: OrderedDict[bytes, frozenset[bytes]] = OrderedDict()
        self._pieces_kept = 0
        self._needed_most = NEEDED_BYTES if skips else DECODED_BYTES // 2
        self._needs: OrderedDict[int, tuple[FrameFacts, ...]] = OrderedDict()
        """By frame: what a reader decodes for it."""

    def choose(self, content: bytes, old: Sequence[bytes]) -> Bases | None:
        """Return the bases for `content`; None if there are none. Raises FileError.

        `old`: keys of the chunks of the version before that lie where `content` does, and around, in their
        order. The depth of the delta is at most `most_depth` of its generation. If deltas skip, what a reader
        decodes for its bases is at most NEEDED_BYTES.
        """
        known = [key for key in old if key in self._reader]
        generation = 1 + max([self._reader.facts(key).generation for key in known], default=0)
        found = _nearest(self._candidates(known, generation), CANDIDATE_BYTES)
        if not found:
            return None
        chosen: list[int] | None = None
        if sum([one.length for one in found]) > _WHOLE_SHARE * len(content) + _WHOLE_BYTES:
            chosen = self._sharing(content, found)
        if chosen is None:
            chosen = self._taken(found, _from_the_middle(found), 3 * len(content) + _WHOLE_BYTES)
        if not chosen:
            return None
        return Bases(
            tuple([found[number].key for number in sorted(chosen)]),
            generation,
            1 + max([found[number].frame.depth for number in chosen]),
        )

    def _candidates(self, known: Sequence[bytes], generation: int) -> list[_Candidate]:
        """Return the chunks that lie in old versions where the known ones do, in this order.

        One whose generation or depth is too high is replaced by the bases of its frame, if a reader needs
        their frames anyway. If it follows a published store, it does not: bytes without a base cost it less.
        """
        reader = self._reader
        newest = older(generation, skips=self._skips)
        depth = min(DEPTH_MADE, most_depth(generation, skips=self._skips))
        replaces = newest < generation - 1 or self._skips
        todo, seen, replaced = list(reversed(known)), set[bytes](), set[int]()
        found: list[tuple[bytes, FrameFacts]] = []
        while todo and len(seen) < SEARCHED_BASES:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            frame = reader.facts(key)
            if frame.generation <= newest and frame.depth < depth:
                found.append((key, frame))
            elif replaces and frame.number not in replaced:
                replaced.add(frame.number)
                todo += reversed(split_keys(frame.bases))
        lengths = reader.lengths(b"".join([key for key, _ in found]))
        return [_Candidate(key, length, frame) for (key, frame), length in zip(found, lengths, strict=True)]

    def _sharing(self, content: bytes, found: Sequence[_Candidate]) -> list[int] | None:
        """Return the numbers of the candidates that share pieces with `content`, the ones with most first.
        None if they share less than half of it: what resembles it does not do so piece by piece."""
        (own,) = _pieces([content])
        left, pieces = set(own), self._pieces_of([one.key for one in found])
        shared = [len(left & one) for one in pieces]
        ranked = sorted(range(len(found)), key=lambda number: (-shared[number], number))
        total = len(left)
        chosen = self._taken(found, ranked, PREFIX_BYTES, left, pieces)
        return chosen if 2 * len(left) <= total else None

    def _taken(
        self,
        found: Sequence[_Candidate],
        ranked: Iterable[int],
        room: int,
        left: set[bytes] | None = None,
        pieces: Sequence[frozenset[bytes]] = (),
    ) -> list[int]:
        """Return the numbers of the candidates that have room, as ranked.

        `left`: pieces of the content. A candidate that shares few of them is not taken; those of the others
        are removed. `pieces`: of each candidate.
        """
        chosen, needed = list[int](), _Needed(self._needed_most)
        room = min(room, PREFIX_BYTES)
        for number in ranked:
            one = found[number]
            if one.length > room or len(chosen) == BASES_MOST:
                continue
            own = set[bytes]()
            if left is not None:
                own = left & pieces[number]
                if not own or len(own) * _WORTH < len(pieces[number]):
                    continue
            if not needed.add(self._needs_of(one.frame.number)):
                continue
            if left is not None:
                left -= own
            room -= one.length
            chosen.append(number)
        return chosen

    def _needs_of(self, frame: int) -> tuple[FrameFacts, ...]:
        known = self._needs.get(frame)
        if known is not None:
            self._needs.move_to_end(frame)
            return known
        found = self._needs[frame] = tuple(self._reader.needed(frame))
        if len(self._needs) > _FRAMES_KEPT:
            self._needs.popitem(last=False)
        return found

    def _pieces_of(self, keys: Sequence[bytes]) -> list[frozenset[bytes]]:
        """Return the pieces of each of these chunks."""
        known = self._pieces
        new = [key for key in keys if key not in known]
        found = dict(zip(new, _pieces(self._chunks(new)), strict=True))
        pieces = [found[key] if key in found else known[key] for key in keys]
        for key, one in zip(keys, pieces, strict=True):
            if key in found:
                self._pieces_kept += len(one)
            known[key] = one
            known.move_to_end(key)
        while self._pieces_kept > _PIECES_KEPT and len(known) > 1:
            self._pieces_kept -= len(known.popitem(last=False)[1])
        return pieces

    def _chunks(self, keys: Sequence[bytes]) -> Sequence[bytes | memoryview]:
        """Return chunks; none of the bytes of a damaged one, which resembles nothing."""
        try:
            return self._reader.read_many(b"".join(keys))
        except FileError:
            return list(map(self._sound_chunk, keys))

    def _sound_chunk(self, key: bytes) -> bytes:
        try:
            return self._reader.chunk(key)
        except FileError:
            return b""


def _pieces(contents: Sequence[bytes | memoryview]) -> Iterator[frozenset[bytes]]:
    """Yield the names of the parts of each content, which is cut at places that its bytes decide."""
    joined = b"".join(contents)
    counts, lengths, _ = cut_many(joined, array("Q", map(len, contents)), _PIECE_LEAST, _PIECE_MOST, True)
    names = map(itemgetter(0), _NAMES.iter_unpack(name_parts(joined, array("Q", lengths))))
    for count in array("I", counts):
        yield frozenset(islice(names, count))


def _nearest(found: Sequence[_Candidate], room: int) -> list[_Candidate]:
    """Return those around the middle of a list that take at most `room` bytes, in their order."""
    chosen: list[int] = []
    for number in _from_the_middle(found):
        room -= found[number].length
        if room < 0:
            break
        chosen.append(number)
    return [found[number] for number in sorted(chosen)]


def _from_the_middle(found: Sequence[object]) -> list[int]:
    """Return the numbers of a list, that of its middle first."""
    return sorted(range(len(found)), key=lambda number: abs(2 * number + 1 - len(found)))


class Gaps:
    """The chunks of an old version that lie where new ones do: between the same neighbours."""

    def __init__(self, keys: Sequence[bytes], old: Sequence[bytes]) -> None:
        self._old = old
        places = {key: place for place, key in reversed(list(enumerate(old)))}
        self._before: list[tuple[int, int]] = []
        """For each chunk: how many chunks up to the last one that the old version has, and how many there."""
        self._after: list[tuple[int, int]] = []
        """For each chunk: the number of the next one that the old version has, and its number there."""
        if not old:
            return
        last = (0, 0)
        for number, key in enumerate(keys):
            self._before.append(last)
            if (place := places.get(key)) is not None:
                last = (number + 1, place + 1)
        following = (len(keys), len(old))
        for number in range(len(keys) - 1, -1, -1):
            if (place := places.get(keys[number])) is not None:
                following = (number, place)
            self._after.append(following)
        self._after.reverse()

    def bases(self, first: int, stop: int) -> Sequence[bytes]:
        """Return the keys of the old chunks to which the new ones [first, stop) correspond, and as many again
        around them, half of them on each side."""
        if not self._old:
            return ()
        begin, low = self._before[first]
        end, high = self._after[stop - 1]
        if high <= low:
            # Nothing was there, or chunks changed places: what is next to it resembles it most.
            low = max(0, min(low, len(self._old)) - 1)
            high = min(len(self._old), low + 2)
        # A new chunk that the old version has is one that cannot be read any more.
        new, old = max(end - begin, stop - first), high - low
        around = (stop - first) // 2 + 1
        start = low + max(0, (first - begin) * old // new - around)
        ending = low + min(old, -(-(stop - begin) * old // new) + around)
        return self._old[start:ending]
