"""Compares one directory as both sides list it: what to create, change, check, and what is extraneous."""

from __future__ import annotations

from array import array
from enum import Enum, IntFlag
from itertools import compress
from operator import ne

from rdc.kernel import put_rows, take_rows
from rdc.lean.records import dataclass
from rdc.model.entries import DEVICES, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.model.entries import Listing, Metadata
    from rdc.model.preserved import Preserved

__all__ = [
    "DIFFERS",
    "DIFFERS_IN_ACCESS",
    "Change",
    "Comparison",
    "Decision",
    "Difference",
    "FileDecisions",
    "compare",
    "difference",
    "row_difference",
]


class Change(Enum):
    """What to do about an entry."""

    CREATE = "create"
    """The destination has no entry of that name."""
    CONTENT = "content"
    """Same kind; the content differs or may differ. For a symlink: another link target."""
    METADATA = "metadata"
    """Same kind and same content by the quick check; only metadata differs."""
    REPLACE = "replace"
    """The destination has an entry of another kind."""
    CHECK = "check"
    """Same by the quick check; its content still has to be compared."""


class Difference(IntFlag):
    """Which columns differ: the letters of rsync's itemized output."""

    NONE = 0
    CHECKSUM = 1
    SIZE = 2
    TIME = 4
    PERMISSIONS = 8
    OWNER = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry that needs work: its row in each listing (-1: not in it)."""

    change: Change
    row: int
    existing_row: int
    difference: Difference


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a directory."""

    decisions: tuple[Decision, ...]
    """Entries that need work, in name order, without those in `touched` and `checked`."""
    extra: tuple[int, ...]
    """Rows of the destination's listing that the source's lacks."""
    touched: tuple[int, ...] = ()
    """Rows of files that differ in their mtime only: Change.CONTENT (with `checksum` Change.CHECK) and
    Difference.TIME. In a touched tree these are most files, and an object per file would dominate the
    cost."""
    checked: tuple[int, ...] = ()
    """Rows of files without a difference whose content has to be compared: Change.CHECK."""

    def __bool__(self) -> bool:
        """True if there is work besides extraneous entries."""
        return bool(self.decisions or self.touched or self.checked)


def compare(
    wanted: Listing,
    existing: Listing | None,
    *,
    preserved: Preserved,
    checksum: bool,
    unverified: Collection[int] = frozenset(),
) -> Comparison:
    """Returns what turns directory `existing` into `wanted`. Special files of the source are ignored
    and never extraneous.

    `preserved`: the metadata that count. `checksum`: contents are compared despite equal size and mtime.
    `unverified`: rows for which the same applies. Whole columns are compared first, so equal entries need no
    step of their own.
    """
    # long because it runs once for each directory, where calls cost more than the work
    if existing is None:
        rows = (i for i, kind in enumerate(wanted.kinds) if kind != Kind.SPECIAL)
        return Comparison(tuple(Decision(Change.CREATE, i, -1, Difference.NONE) for i in rows), ())
    pairs, extra, times = _paired_rows(
        wanted, existing, preserved=preserved, checksum=checksum, unverified=unverified
    )
    pairs, alike, touched, doubtful = _files_apart(wanted, existing, pairs, preserved)
    if times:
        # Only mtimes differ. In a touched tree that is most files.
        touched = [row for row in times if wanted.kinds[row] == Kind.FILE]
        pairs = [(row, row) for row in times if wanted.kinds[row] != Kind.FILE]
    checked = alike if checksum else [row for row in alike if row in unverified] if unverified else []
    checked = sorted([*checked, *doubtful]) if doubtful else checked
    links, existing_links = wanted.links(), existing.links()
    decisions = []
    for row, existing_row in pairs:
        kind = wanted.kinds[row]
        if kind == Kind.SPECIAL:
            continue
        if existing_row < 0:
            decisions.append(Decision(Change.CREATE, row, -1, Difference.NONE))
        elif existing.kinds[existing_row] != kind and not _alike(existing.kinds[existing_row], kind):
            decisions.append(Decision(Change.REPLACE, row, existing_row, Difference.NONE))
        else:
            bits = _difference_of_rows(wanted, row, existing, existing_row, preserved)
            if kind == Kind.FILE:
                doubted = row in unverified or _is_doubtful(wanted, row, existing, existing_row, preserved)
                change, bits = _change_of_file(bits, checksum=checksum, unverified=doubted)
            elif kind == Kind.SYMLINK and links[row] != existing_links[existing_row]:
                change = Change.CONTENT
            elif kind > Kind.SPECIAL and (existing.kinds[existing_row] != kind or bits & _SIZE):
                change, bits = Change.CONTENT, bits & ~_SIZE | _CHECKSUM
            else:
                change = Change.METADATA
            if bits or change is not Change.METADATA:
                decisions.append(Decision(change, row, existing_row, _DIFFERENCES[bits]))
    return Comparison(tuple(decisions), tuple(extra), tuple(touched), tuple(checked))


def _alike(kind: int, other: int) -> bool:
    """Returns whether two kinds are both devices, or both fifos or sockets: to rsync one kind, with another
    content."""
    return kind > Kind.SPECIAL < other and (kind in DEVICES) == (other in DEVICES)


def _paired_rows(
    wanted: Listing, existing: Listing, *, preserved: Preserved, checksum: bool, unverified: Collection[int]
) -> tuple[Sequence[tuple[int, int]], list[int], list[int]]:
    """Returns the pairs of rows to look at (-1: not at the destination), the rows of extraneous entries, and,
    where nothing but mtimes differs, the rows with another mtime."""
    if wanted.names != existing.names:
        existing_rows = {name: row for row, name in enumerate(existing.names)}
        pairs = [(row, existing_rows.pop(name, -1)) for row, name in enumerate(wanted.names)]
        return pairs, sorted(existing_rows.values()), []
    if checksum:
        return [(row, row) for row in range(len(wanted))], [], []
    differing, times = (
        _differing_rows(wanted, existing, preserved),
        _differing(wanted.mtimes, existing.mtimes),
    )
    if differing or unverified or not preserved.keeps_all_times:
        differing, times = sorted({*differing, *times, *unverified}), []
    return [(row, row) for row in differing], [], times


def _change_of_file(bits: int, *, checksum: bool, unverified: bool) -> tuple[Change, int]:
    """Returns what to do about a file both sides have, and `bits` with the checksum's bit where it counts."""
    if bits & (_SIZE if checksum else _SIZE | _TIME):
        return Change.CONTENT, bits | (_CHECKSUM if checksum else 0)
    return Change.CHECK if checksum or unverified else Change.METADATA, bits


def _files_apart(
    a: Listing, b: Listing, pairs: Sequence[tuple[int, int]], preserved: Preserved
) -> tuple[list[tuple[int, int]], list[int], list[int], list[int]]:
    """Splits `pairs`: other pairs, rows of files without a difference, rows of files that differ in mtime
    only, and rows of files without a difference whose mtimes do not prove that."""
    others: list[tuple[int, int]] = []
    alike: list[int] = []
    touched: list[int] = []
    doubtful: list[int] = []
    untimed, coarse = Kind.FILE in preserved.untimed, preserved.is_coarse
    file, exact, kept, group = int(Kind.FILE), preserved.keeps_all_times, preserved.modes, preserved.group
    kinds, sizes, mtimes, modes = a.kinds, a.sizes, a.mtimes, a.modes
    for pair in pairs:
        row, other = pair
        if (
            other < 0
            or not kinds[row] == b.kinds[other] == file
            or sizes[row] != b.sizes[other]
            or (modes[row] ^ b.modes[other]) & kept
            or (
                preserved.owner and (a.uids[row] != b.uids[other] or (group and a.gids[row] != b.gids[other]))
            )
        ):
            others.append(pair)
        elif mtimes[row] == b.mtimes[other]:
            alike.append(row)
        elif exact:
            touched.append(row)
        elif preserved.same_time(mtimes[row], b.mtimes[other]):
            (doubtful if coarse or untimed else alike).append(row)
        else:
            (doubtful if untimed else touched).append(row)
    return others, alike, touched, doubtful


def _differing_rows(a: Listing, b: Listing, preserved: Preserved) -> list[int]:
    """Returns the rows in which two listings of the same names differ, apart from mtimes."""
    rows: set[int] = set()
    columns: list[tuple[Sequence[int], Sequence[int]]] = [
        (a.kinds, b.kinds),
        (a.sizes, b.sizes),
        *([(a.modes, b.modes)] if preserved.modes or preserved.directory_modes else []),
        *([(a.uids, b.uids)] if preserved.owner else []),
        *([(a.gids, b.gids)] if preserved.owner and preserved.group else []),
    ]
    for wanted, existing in columns:
        rows.update(_differing(wanted, existing))
    if a.targets != b.targets:
        rows.update(a.rows_of(Kind.SYMLINK))
    return sorted(rows)


def _differing(wanted: Sequence[int], existing: Sequence[int]) -> list[int]:
    return [] if wanted == existing else list(compress(range(len(wanted)), map(ne, wanted, existing)))


_CHECKSUM, _SIZE, _TIME = int(Difference.CHECKSUM), int(Difference.SIZE), int(Difference.TIME)
_PERMISSIONS, _OWNER, _GROUP = int(Difference.PERMISSIONS), int(Difference.OWNER), int(Difference.GROUP)

# Flags are combined as integers: IntFlag's own operators take a microsecond each.
_DIFFERENCES = tuple(map(Difference, range(1 << len(Difference))))


def _difference_of_rows(a: Listing, row: int, b: Listing, other: int, preserved: Preserved) -> int:
    bits, kind = 0, a.kinds[row]
    if (
        a.mtimes[row] != b.mtimes[other]
        and preserved.is_timed(kind)
        and not preserved.same_time(a.mtimes[row], b.mtimes[other])
    ):
        bits = _TIME
    if a.sizes[row] != b.sizes[other]:
        bits |= _SIZE
    if (a.modes[row] ^ b.modes[other]) & preserved.modes_of_kind(kind):
        bits |= _PERMISSIONS
    if preserved.owner:
        if a.uids[row] != b.uids[other]:
            bits |= _OWNER
        if preserved.group and a.gids[row] != b.gids[other]:
            bits |= _GROUP
    return bits


def _is_doubtful(a: Listing, row: int, b: Listing, other: int, preserved: Preserved) -> bool:
    """Returns whether two files of one size may differ, though what is preserved of their mtimes does not."""
    if a.sizes[row] != b.sizes[other] or a.mtimes[row] == b.mtimes[other]:
        return False
    if Kind.FILE in preserved.untimed:
        return True
    return preserved.is_coarse and preserved.same_time(a.mtimes[row], b.mtimes[other])


def row_difference(a: Listing, row: int, b: Listing, other: int, preserved: Preserved) -> Difference:
    """Returns in which columns two rows of one kind differ, apart from the targets of symlinks."""
    return _DIFFERENCES[_difference_of_rows(a, row, b, other, preserved)]


def difference(kind: int, wanted: Metadata, existing: Metadata, *, preserved: Preserved) -> Difference:
    """Returns which metadata differ between two entries of one kind."""
    found = Difference.NONE
    if preserved.is_timed(kind) and not preserved.same_time(wanted.mtime_ns, existing.mtime_ns):
        found |= Difference.TIME
    if (wanted.mode ^ existing.mode) & preserved.modes_of_kind(kind):
        found |= Difference.PERMISSIONS
    if preserved.owner and wanted.uid != existing.uid:
        found |= Difference.OWNER
    if preserved.owner and preserved.group and wanted.gid != existing.gid:
        found |= Difference.GROUP
    return found


_ACCESS = int(Difference.PERMISSIONS | Difference.OWNER | Difference.GROUP)

DIFFERS = bytes(code > 0 and (code - 1) % len(_DIFFERENCES) > 0 for code in range(256))
"""For each code byte, 1 if it has any difference."""

DIFFERS_IN_ACCESS = bytes(code > 0 and ((code - 1) & _ACCESS) > 0 for code in range(256))
"""For each code byte, 1 if it has a difference in who may use the file."""


class FileDecisions:
    """Stores the decision for each file until the file is committed or found equal.

    If every file of a tree was touched, this holds as many decisions as the tree has entries.
    """

    _CHANGES = (Change.CONTENT, Change.CHECK, Change.REPLACE)

    def __init__(self) -> None:
        # 0: no decision. Otherwise 1 + the bits of the difference + len(_DIFFERENCES) * index of the change.
        self._codes = bytearray()
        self._decoded: dict[int, Decision] = {}

    def put(self, file: int, change: Change, difference: Difference) -> None:
        """Stores the decision for one file."""
        self.put_many((file,), change, difference)

    def put_many(self, files: Sequence[int], change: Change, difference: Difference) -> None:
        """Stores one decision for each of these files, which increase."""
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        code = 1 + int(difference) + len(_DIFFERENCES) * self._CHANGES.index(change)
        for file in files:
            self._codes[file] = code

    def has(self, file: int) -> bool:
        """Whether a decision is stored for this file."""
        return file < len(self._codes) and self._codes[file] != 0

    def has_any(self, first: int, stop: int) -> bool:
        """Whether a decision is stored for any file from `first` to before `stop`."""
        return any(self._codes[first:stop])

    def pop(self, file: int) -> Decision | None:
        """Removes and returns the decision for a file; None if there is none."""
        if not self.has(file):
            return None
        code, self._codes[file] = self._codes[file], 0
        return self.decision(code)

    def take(self, files: Sequence[int]) -> bytes:
        """Like `pop` for many files in increasing order.

        Returns one code byte per file (0: none); `decision` decodes it.
        """
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        rows = array("Q", files)
        codes = take_rows(self._codes, 1, rows)
        put_rows(self._codes, 1, rows, bytes(len(rows)))
        return codes

    def decision(self, code: int) -> Decision:
        """Decodes a code byte other than 0."""
        decoded = self._decoded.get(code)
        if decoded is None:
            change, difference = divmod(code - 1, len(_DIFFERENCES))
            decoded = self._decoded[code] = Decision(self._CHANGES[change], -1, -1, _DIFFERENCES[difference])
        return decoded
