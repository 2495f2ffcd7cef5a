"""Solves conflicts: by --resolve, by --prefer, and by names for both versions. No clock decides unless it is
asked."""

from __future__ import annotations

import os
import time

from blake3 import blake3

from rdc.lean.records import Record
from rdc.limits import NAME_BYTES
from rdc.model.preserved import nearest_time
from rdc.uniting.plan import Choice
from rdc.uniting.records import Prefer, Resolution, UniteOptions
from rdc.uniting.rows import FILE, LEFT, RIGHT, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rdc.uniting.rows import Row

_HOST_BYTES, _ENDING_BYTES = 63, 32
"""The longest host and ending that a name keeps whole."""

COPY_MARK = b".conflict-"
"""The part of a name that marks a version which lost its own name. Such a name gets no second one."""


class Merged(Record):
    """The solution of a conflict: the version of `winner` is the merge of both."""

    winner: int
    contents: tuple[bytes, bytes]
    """The digests of both versions for which that holds."""


class Choices:
    """Chooses for one run, and counts the names that it gives."""

    def __init__(self, options: UniteOptions, merged: Mapping[bytes, Merged]) -> None:
        """Take `merged`: by path, conflicts of which one version is the merge of both."""
        self._options = options
        self._merged = merged
        self._copies = 0
        self.unmet = {resolve.path.strip(b"/") for resolve in options.resolve}
        """The paths of `resolve` at and below which there was no conflict."""

    def choose(self, path: bytes, about: str, left: Row, right: Row) -> Choice | None:
        """Return how a conflict is solved; None: it stays."""
        how = self._asked(path)
        if how in (Resolution.LEFT, Resolution.RIGHT):
            return Choice(LEFT if how is Resolution.LEFT else RIGHT)
        merged = self._merged.get(path)
        if how is None and merged is not None and (left.content, right.content) == merged.contents:
            return Choice(merged.winner)
        winner = self._preferred(left, right)
        both = how is Resolution.BOTH or (how is None and self._options.keep_both)
        if not both:
            return Choice(winner) if winner is not None else None
        return self._both(path, about, left, right, winner)

    def _asked(self, path: bytes) -> Resolution | None:
        for resolve in self._options.resolve:
            top = resolve.path.strip(b"/")
            if not top or path == top or is_below(path, top):
                self.unmet.discard(top)
                return resolve.how
        return None

    def _preferred(self, left: Row, right: Row) -> int | None:
        prefer = self._options.prefer
        if prefer in (Prefer.LEFT, Prefer.RIGHT):
            return LEFT if prefer is Prefer.LEFT else RIGHT
        if prefer in (Prefer.NEWER, Prefer.OLDER):
            values = nearest_time(left.mtime_ns), nearest_time(right.mtime_ns)
        elif prefer in (Prefer.LARGER, Prefer.SMALLER) and left.kind == right.kind == FILE:
            values = left.stamp.size, right.stamp.size
        else:
            return None
        if values[LEFT] == values[RIGHT]:
            return None
        greater = LEFT if values[LEFT] > values[RIGHT] else RIGHT
        return greater if prefer in (Prefer.NEWER, Prefer.LARGER) else 1 - greater

    def _both(self, path: bytes, about: str, left: Row, right: Row, winner: int | None) -> Choice | None:
        """Return the choice that gives one version a name of its own, or None if no further name may be
        given.

        Of two versions of a file it is the older one. Of equally old ones, that whose content sorts first is
        taken as the older one. Of a file and an entry of another kind it is the file.
        """
        name = path.rpartition(b"/")[2]
        if COPY_MARK in name or self._copies >= self._options.max_copies:
            return None
        if about == "kind":
            if FILE not in (left.kind, right.kind):
                return None
            winner = RIGHT if left.kind == FILE else LEFT
        elif about != "content" or left.kind != FILE:
            return None
        elif winner is None:
            ages = [(nearest_time(row.mtime_ns), row.content) for row in (left, right)]
            loser = LEFT if ages[LEFT] < ages[RIGHT] else RIGHT
            winner = 1 - loser
        self._copies += 1
        return Choice(winner, copy_name(path, nearest_time((left, right)[1 - winner].stamp.mtime_ns)))


def copy_name(path: bytes, mtime_ns: int) -> bytes:
    """Return `stem.conflict-HOST-YYYYMMDD-HHMMSS.ext` for a version of this time, in UTC.

    A stem for which there is no room is cut between two letters, and a digest of the whole name tells it from
    others that are cut to the same.
    """
    parent, slash, name = path.rpartition(b"/")
    stem, dot, ending = name.rpartition(b".")
    if not stem:
        stem, dot, ending = name, b"", b""
    host = os.uname().nodename.partition(".")[0].encode("ascii", "replace").replace(b"/", b"-")
    try:
        when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(mtime_ns // 1_000_000_000)).encode()
    except (OverflowError, ValueError, OSError):
        when = b"%d" % mtime_ns
    mark = COPY_MARK + host[:_HOST_BYTES] + b"-" + when
    if len(dot + ending) > _ENDING_BYTES:
        stem, dot, ending = name, b"", b""
    room = NAME_BYTES - len(mark + dot + ending)
    if len(stem) > room:
        told = b"~" + blake3(name).hexdigest()[:8].encode()
        room -= len(told)
        while room and stem[room] & 0xC0 == 0x80:
            room -= 1
        stem = stem[:room] + told
    return parent + slash + stem + mark + dot + ending
