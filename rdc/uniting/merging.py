"""Three-way merge of texts by lines, only where nothing is left to choose.

A line of the base is *kept* by a version if every longest common subsequence of both matches it with the same
line. What lies between two kept lines may have been changed, whichever shortest difference a tool would show.
The merge is clean if a line that both versions keep lies between any change of one and any of the other, or
if both changed the same lines into the same. So it is never clean where a tool that compares by some shortest
difference would find a conflict.
"""

from __future__ import annotations

from array import array
from collections import Counter

from rdc.lean.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT_BYTES = 1 << 20
"""Bytes of the longest text that is merged."""

TEXTS_BYTES = 16 << 20
"""Bytes of all texts that are merged in one run. The others stay conflicts until the next one."""

CELLS = 1 << 20
"""The most pairs of lines that are compared, between the first and the last change of a version. It takes
some 0.6 s. With more, all of that counts as changed."""


class _Change(NamedTuple):
    """Lines of the base from `start` to `end` that a version has as others."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def is_text(data: bytes) -> bool:
    """Return whether a file's content is merged as a text: valid UTF-8 without NUL, and not too long."""
    if len(data) > TEXT_BYTES or b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def merge(base: bytes, left: bytes, right: bytes) -> bytes | None:
    """Return the text with the changes of both versions; None: they are not apart.

    Lines end with LF and keep what they have before it; the last one may lack it.

    >>> merge(b"1\\n2\\n3\\n", b"0\\n1\\n2\\n3\\n", b"1\\n2\\n3\\n4\\n")
    b'0\\n1\\n2\\n3\\n4\\n'
    """
    if right in (left, base):
        return left
    if base == left:
        return right
    lines = _lines(base)
    ours, theirs = _changes(lines, _lines(left)), _changes(lines, _lines(right))
    same = set(ours).intersection(theirs)
    both = sorted(
        [*((change, 0) for change in ours), *((change, 1) for change in theirs if change not in same)]
    )
    merged: list[bytes] = []
    at, ends = 0, [-1, -1]
    for change, side in both:
        if change.start <= ends[1 - side]:
            return None  # no line that both keep is between them
        ends[side] = change.end
        if change in same:
            ends[1 - side] = change.end
        merged += lines[at : change.start]
        merged += change.lines
        at = change.end
    return b"".join([*merged, *lines[at:]])


def _lines(text: bytes) -> list[bytes]:
    """Return the lines of a text with their ends. Only LF ends a line."""
    *whole, last = text.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _changes(base: Sequence[bytes], version: Sequence[bytes]) -> list[_Change]:
    """Return what the version has between the lines that it keeps, where that differs from the base."""
    found: list[_Change] = []
    start = begin = 0
    for row, column in [*_kept(base, version), (len(base), len(version))]:
        lines = tuple(version[begin:column])
        if lines != tuple(base[start:row]):
            found.append(_Change(start, row, lines))
        start, begin = row + 1, column + 1
    return found


def _kept(base: Sequence[bytes], version: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the lines that every longest common subsequence matches, as indexes of both, in order.

    Of the lines that the two begin or end with, one that each has once is matched with itself by all of them,
    and so is what lies outside of it. So the tables need no more than what is between two of these.
    """
    shorter = min(len(base), len(version))
    head = 0
    while head < shorter and base[head] == version[head]:
        head += 1
    tail = 0
    while tail < shorter - head and base[-1 - tail] == version[-1 - tail]:
        tail += 1
    counts = Counter(base) | Counter(version)
    while head and counts[base[head - 1]] > 1:
        head -= 1
    while tail and counts[base[len(base) - tail]] > 1:
        tail -= 1
    ends = len(base) - tail, len(version) - tail
    return [
        *((row, row) for row in range(head)),
        *(
            (head + row, head + column)
            for row, column in _certain(base[head : ends[0]], version[head : ends[1]])
        ),
        *((ends[0] + row, ends[1] + row) for row in range(tail)),
    ]


def _certain(one: Sequence[bytes], other: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the same for two texts by tables of all pairs; nothing if these are too many.

    A pair is part of some longest common subsequence if what is before it, it and what is after it add up to
    one. All of them have a pair of each rank, so one that is alone in its rank is part of each.
    """
    if len(one) * len(other) > CELLS:
        return []
    numbers: dict[bytes, int] = {}
    rows = [numbers.setdefault(line, len(numbers)) for line in one]
    columns = [numbers.setdefault(line, len(numbers)) for line in other]
    before = _lengths(rows, columns)
    after = _lengths(rows[::-1], columns[::-1])
    longest = before[-1][-1]
    ranks: dict[int, tuple[int, int] | None] = {}
    for row, number in enumerate(rows):
        ahead, behind = before[row], after[len(rows) - 1 - row]
        for column, each in enumerate(columns):
            if each == number and ahead[column] + 1 + behind[len(columns) - 1 - column] == longest:
                rank = ahead[column]
                ranks[rank] = None if rank in ranks else (row, column)
    return sorted(pair for pair in ranks.values() if pair is not None)


def _lengths(rows: Sequence[int], columns: Sequence[int]) -> list[array[int]]:
    """Return the lengths of the longest common subsequences of every pair of prefixes."""
    last = [0] * (len(columns) + 1)
    table = [array("I", last)]
    for number in rows:
        line, best = [0], 0
        for column, each in enumerate(columns):
            if each == number:
                best = last[column] + 1
            elif last[column + 1] > best:
                best = last[column + 1]
            line.append(best)
        table.append(array("I", line))
        last = line
    return table
