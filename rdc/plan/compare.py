"""Compares one directory as both sides list it: what to create, change, check, and what is extraneous."""

from __future__ import annotations

from array import array
from functools import cache, partial
from itertools import compress
from operator import ne

from rdc.kernel import put_rows, take_rows
from rdc.lean.enums import Enum, IntFlag
from rdc.lean.records import Record, replace
from rdc.limits import BASES_PER_FILE
from rdc.model.entries import DEVICES, Kind, Listing, Metadata
from rdc.model.preserved import Preserved, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rdc.model.sync import SyncOptions


class Change(Enum):
    """The decision about an entry."""

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
    """The columns that differ: the letters of rsync's itemized output."""

    NONE = 0
    CHECKSUM = 1
    SIZE = 2
    TIME = 4
    PERMISSIONS = 8
    OWNER = 16
    GROUP = 32


class Decision(Record):
    """One entry that needs work: its row in each listing (-1: not in it)."""

    change: Change
    row: int
    existing_row: int
    difference: Difference


class Comparison(Record):
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
        """Return whether there is work besides extraneous entries."""
        return bool(self.decisions or self.touched or self.checked)


def compare(
    wanted: Listing,
    existing: Listing | None,
    *,
    preserved: Preserved,
    checksum: bool,
    unverified: Collection[int] = frozenset(),
) -> Comparison:
    """Return what turns directory `existing` into `wanted`. Special files of the source are ignored
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
                decisions.append(Decision(change, row, existing_row, _difference(bits)))
    return Comparison(tuple(decisions), tuple(extra), tuple(touched), tuple(checked))


def _alike(kind: int, other: int) -> bool:
    """Return whether two kinds are both devices, or both fifos or sockets: to rsync one kind, with another
    content."""
    return kind > Kind.SPECIAL < other and (kind in DEVICES) == (other in DEVICES)


def _paired_rows(
    wanted: Listing, existing: Listing, *, preserved: Preserved, checksum: bool, unverified: Collection[int]
) -> tuple[Sequence[tuple[int, int]], list[int], list[int]]:
    """Return the pairs of rows to look at (-1: not at the destination), the rows of extraneous entries, and,
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
    """Return what to do about a file both sides have, and `bits` with the checksum's bit where it counts."""
    if bits & (_SIZE if checksum else _SIZE | _TIME):
        return Change.CONTENT, bits | (_CHECKSUM if checksum else 0)
    return Change.CHECK if checksum or unverified else Change.METADATA, bits


def _files_apart(
    a: Listing, b: Listing, pairs: Sequence[tuple[int, int]], preserved: Preserved
) -> tuple[list[tuple[int, int]], list[int], list[int], list[int]]:
    """Split `pairs`: other pairs, rows of files without a difference, rows of files that differ in mtime
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
    """Return the rows in which two listings of the same names differ, apart from mtimes."""
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
_DIFFERENCES = 1 << len(Difference)
"""How many there are. Each is made when the first entry has it: to make all takes a hundredth of a start."""

_difference = cache(Difference)


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
    """Return whether two files of one size may differ, though what is preserved of their mtimes does not."""
    if a.sizes[row] != b.sizes[other] or a.mtimes[row] == b.mtimes[other]:
        return False
    if Kind.FILE in preserved.untimed:
        return True
    return preserved.is_coarse and preserved.same_time(a.mtimes[row], b.mtimes[other])


def row_difference(a: Listing, row: int, b: Listing, other: int, preserved: Preserved) -> Difference:
    """Return in which columns two rows of one kind differ, apart from the targets of symlinks."""
    return _difference(_difference_of_rows(a, row, b, other, preserved))


def difference(kind: int, wanted: Metadata, existing: Metadata, *, preserved: Preserved) -> Difference:
    """Return which metadata differ between two entries of one kind."""
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

DIFFERS = bytes(code > 0 and (code - 1) % _DIFFERENCES > 0 for code in range(256))
"""For each code byte, 1 if it has any difference."""

DIFFERS_IN_ACCESS = bytes(code > 0 and ((code - 1) & _ACCESS) > 0 for code in range(256))
"""For each code byte, 1 if it has a difference in who may use the file."""


class FileDecisions:
    """Stores the decision for each file until the file is committed or found equal.

    If every file of a tree was touched, this holds as many decisions as the tree has entries.
    """

    _CHANGES = (Change.CONTENT, Change.CHECK, Change.REPLACE)

    def __init__(self) -> None:
        # 0: no decision. Otherwise 1 + the bits of the difference + _DIFFERENCES * index of the change.
        self._codes = bytearray()
        self._decoded: dict[int, Decision] = {}

    def put(self, files: Sequence[int], change: Change, difference: Difference) -> None:
        """Store one decision for each of these files, which increase."""
        if files and files[-1] >= len(self._codes):
            self._codes += bytes(files[-1] + 1 - len(self._codes))
        code = 1 + int(difference) + _DIFFERENCES * self._CHANGES.index(change)
        for file in files:
            self._codes[file] = code

    def has(self, file: int) -> bool:
        """Return whether a decision is stored for this file."""
        return file < len(self._codes) and self._codes[file] != 0

    def has_any(self, first: int, stop: int) -> bool:
        """Return whether a decision is stored for any file from `first` to before `stop`."""
        return any(self._codes[first:stop])

    def pop(self, file: int) -> Decision | None:
        """Remove and return the decision for a file; None if there is none."""
        code = self._codes[file] if file < len(self._codes) else 0
        if not code:
            return None
        self._codes[file] = 0
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
        """Decode a code byte other than 0."""
        decoded = self._decoded.get(code)
        if decoded is None:
            change, difference = divmod(code - 1, _DIFFERENCES)
            decoded = self._decoded[code] = Decision(self._CHANGES[change], -1, -1, _difference(difference))
        return decoded


DELETING = "*deleting  "
RENAMING = "*renaming  "

_LETTERS = {
    Kind.FILE: "f",
    Kind.DIRECTORY: "d",
    Kind.SYMLINK: "L",
    Kind.SPECIAL: "S",
    Kind.FIFO: "S",
    Kind.SOCKET: "S",
    Kind.CHARACTER_DEVICE: "D",
    Kind.BLOCK_DEVICE: "D",
}
_COLUMNS = (
    ("c", Difference.CHECKSUM),
    ("s", Difference.SIZE),
    ("t", Difference.TIME),
    ("p", Difference.PERMISSIONS),
    ("o", Difference.OWNER),
    ("g", Difference.GROUP),
)


def itemize(kind: int, decision: Decision, *, transferred: bool, new: bool) -> str:
    """Return the code of an entry. `transferred`: its content was sent. `new`: the destination had no entry
    of its kind."""
    return _code(kind, int(decision.difference), transferred, new)


def linking_code(kind: int, difference: Difference, *, new: bool) -> str:
    """Return the code of an entry that becomes a hard link. Spaces, as in rsync, mean that only the link was
    missing."""
    if not new and difference:
        return "h" + _code(kind, int(difference), False, False)[1:]
    return f"h{_LETTERS[Kind(kind)]}" + 9 * ("+" if new else " ")


def is_new(code: str) -> bool:
    """Return whether a code says that the destination had no entry of its kind at the path."""
    return code.endswith("+++++++++")


def copying_code(kind: int, difference: Difference) -> str | None:
    """Return the code of an entry that is made from one in an alternate directory, without the source's
    content. None: it equals that one, and rsync's -i is silent about it."""
    return "c" + _code(kind, int(difference), False, False)[1:] if difference else None


def unchanged_code(kind: int) -> str:
    """Return the code of an entry that nothing happens to. Spaces, as in rsync."""
    return f".{_LETTERS[Kind(kind)]}         "


def attributes_code(kind: int, *, acl: bool, xattr: bool, time: bool) -> str:
    """Return the code of an entry that differs in ACLs, extended attributes or the access time only."""
    marks = (("u", time), ("a", acl), ("x", xattr))
    return f".{_LETTERS[Kind(kind)]}......" + "".join(mark if differs else "." for mark, differs in marks)


@cache
def _code(kind: int, difference: int, transferred: bool, new: bool) -> str:
    letter = _LETTERS[Kind(kind)]
    if new:
        return (">" if kind == Kind.FILE else "c") + letter + "+++++++++"
    sign = "." if not transferred else ">" if kind == Kind.FILE else "c"
    flags = "".join(mark if difference & flag else "." for mark, flag in _COLUMNS)
    return f"{sign}{letter}{flags}..."


# Times that differ and are taken as equal: within --modify-window, and beyond what a file system can hold.
#
# For a time that the destination's file system cannot hold, the kernel stores the nearest one that it can, in
# whole seconds. Such a time says no more about a file than that its time lies beyond the limit. So an entry
# whose time is a limit counts as having any wanted time beyond it, and the content of a file is compared, as
# with --checksum. A second run changes nothing, and no changed content is missed. The same holds on the way
# back: a limit of the source's file system replaces no time beyond it.

_SECOND = 10**9


class TimeLimits(Record):
    """The whole seconds that a file system may store for earlier and for later times."""

    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()


_INT32_FIRST, _INT32_LAST = -(1 << 31), (1 << 31) - 1
_EXT4_LAST, _XFS_LAST = (1 << 34) - 1 - (1 << 31), 16_299_260_424

_BY_TYPE = {
    0xEF53: TimeLimits(frozenset((_INT32_FIRST,)), frozenset((_INT32_LAST, _EXT4_LAST))),
    0x58465342: TimeLimits(frozenset((_INT32_FIRST,)), frozenset((_INT32_LAST, _XFS_LAST))),
    0x482B: TimeLimits(frozenset((-2_082_844_800,)), frozenset((2_212_122_495,))),
    0x4D44: TimeLimits(frozenset((315_532_800,)), frozenset((4_354_819_198,))),
    0x2011BAB0: TimeLimits(frozenset((315_532_800,)), frozenset((4_354_819_199,))),
    0x9123683E: TimeLimits(),
    0x01021994: TimeLimits(),
}
"""By f_type of statfs(2): ext4 with small and with large inodes, XFS without and with bigtime, HFS+, FAT,
exFAT; btrfs and tmpfs hold all. Source: s_time_min and s_time_max of the file systems in Linux 6.1."""

_ANY = TimeLimits(
    frozenset((0, *(second for one in _BY_TYPE.values() for second in one.first))),
    frozenset(((1 << 32) - 1, *(second for one in _BY_TYPE.values() for second in one.last))),
)
"""Limits of any other type: a file server may store on any of the file systems above, and NFS 3 sends 32 bits
without a sign."""

_EARLY_NS, _LATE_NS = max(_ANY.first) * _SECOND, min(_ANY.last) * _SECOND


def time_limits(type_: int) -> TimeLimits:
    """Return the limits of a file system of this f_type of statfs(2)."""
    return _BY_TYPE.get(type_, _ANY)


_AMBIGUOUS = frozenset((0, 315_532_800))
"""Limits that are also usual times: of the epoch, and of archives, which count from 1980 as FAT does."""


def source_limits(preserved: Preserved) -> TimeLimits:
    """Return the limits that the source's file system may have, whose type nobody tells.

    Where it keeps all nanoseconds it is none of those that begin in 1980.
    """
    exact = preserved.source_granularity.step == 1
    usual = _AMBIGUOUS if exact else frozenset((0,))
    return TimeLimits(_ANY.first - usual, _ANY.last)


class Clamped(Record):
    """A listing compared with what exists at the destination."""

    wanted: Listing
    """The wanted listing, with the existing mtimes where one of the two is a limit and the other one lies
    beyond it."""
    files: frozenset[int]
    """Rows of the files among them."""


def is_clamped(existing: int, wanted: int, limits: TimeLimits) -> bool:
    """Return whether a file system of these limits may have stored `existing` when it was given `wanted`;
    both are packed."""
    there, time = real_time(existing), real_time(wanted)
    seconds, rest = divmod(there, _SECOND)
    return not rest and (
        (time > there and seconds in limits.last) or (time < there and seconds in limits.first)
    )


def with_clamped_times(
    wanted: Listing, existing: Listing, limits_of: Callable[[], TimeLimits], preserved: Preserved
) -> Clamped:
    """Compare the times of the entries of two listings of one directory that have one name and kind.

    `limits_of`: returns those of the file system of `existing`; called only for times that may be affected.
    `preserved`: what both ends preserve.
    """
    found = wanted.mtimes
    # Packed times are in order but for stamps among each other.
    if not found or (min(found) > _EARLY_NS and max(found) < _LATE_NS):
        return Clamped(wanted, frozenset())
    limits, limits_there = limits_of(), source_limits(preserved)
    rows = {name: row for row, name in enumerate(existing.names)}
    mtimes = array("q", found)
    clamped = []
    for row, (name, kind) in enumerate(zip(wanted.names, wanted.kinds, strict=True)):
        other = rows.get(name)
        if other is None or existing.kinds[other] != kind or kind in DEVICES:
            continue
        there = existing.mtimes[other]
        time = mtimes[row]
        if there != time and (is_clamped(there, time, limits) or is_clamped(time, there, limits_there)):
            mtimes[row] = there
            clamped.append(row)
    files = frozenset(row for row in clamped if wanted.kinds[row] == Kind.FILE)
    return Clamped(replace(wanted, mtimes=mtimes) if clamped else wanted, files)


def with_clamped_time(
    existing: Metadata, wanted: Metadata, limits_of: Callable[[], TimeLimits], preserved: Preserved
) -> Metadata:
    """Return `existing` with the mtime of `wanted` if one of the two is the limit that stands for the other.
    `limits_of`, `preserved`: as in `with_clamped_times`."""
    there, time = existing.mtime_ns, wanted.mtime_ns
    if there != time and (
        is_clamped(there, time, limits_of()) or is_clamped(time, there, source_limits(preserved))
    ):
        return replace(existing, mtime_ns=time)
    return existing


def with_equal_times(wanted: Listing, existing: Listing, options: SyncOptions) -> Listing:
    """Return `wanted` with the mtimes of `existing` where both have an entry of one kind and --modify-window
    takes the two for one time. What is compared, or set without new content, then keeps the existing time."""
    window = options.modify_window
    if window is None:
        return wanted
    rows = {name: row for row, name in enumerate(existing.names)}
    mtimes = array("q", wanted.mtimes)
    links, existing_links = wanted.links(), existing.links()
    changed = False
    for row, (name, kind, mtime) in enumerate(zip(wanted.names, wanted.kinds, mtimes, strict=True)):
        other = rows.get(name)
        if other is None or existing.kinds[other] != kind:
            continue
        # A re-created entry gets the time of its source.
        if kind == Kind.SYMLINK and links[row] != existing_links[other]:
            continue
        if kind in DEVICES and wanted.sizes[row] != existing.sizes[other]:
            continue
        if existing.mtimes[other] != mtime and _are_close(existing.mtimes[other], mtime, window):
            mtimes[row], changed = existing.mtimes[other], True
    return replace(wanted, mtimes=mtimes) if changed else wanted


def with_equal_time(existing: Metadata, wanted: Metadata, options: SyncOptions) -> Metadata:
    """Return `existing` with the mtime of `wanted` if --modify-window takes the two for one time."""
    window = options.modify_window
    if window is None or not _are_close(existing.mtime_ns, wanted.mtime_ns, window):
        return existing
    return replace(existing, mtime_ns=wanted.mtime_ns)


def _are_close(a_ns: int, b_ns: int, window: int) -> bool:
    """Return whether `window` seconds or less lie between two times, in whole seconds as in rsync."""
    return abs(real_time(a_ns) // _SECOND - real_time(b_ns) // _SECOND) <= window


# Finds names that a file system may take for one, because it folds case, normalises, or drops what it calls
# insignificant.
#
# No table can tell what a file system does. So the keys here are equal too often rather than too seldom, and
# the file system is asked about the names with equal keys.

_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Code points that Unicode calls Default_Ignorable, as a set of a regular expression."""


def name_clashes(names: Sequence[bytes]) -> list[list[int]]:
    """Return the groups of rows, two or more each, whose names some file system may take for one.

    `names` differ. Nearly all directories have no such names, so nothing is done per name before that is
    known.
    """
    joined = b"\0".join(names)
    if joined.isascii() and b".\0" not in joined and b" \0" not in joined and joined[-1:] not in b". ":
        folded = joined.lower()
        if folded == joined:
            return []
        keys: Sequence[bytes | str] = folded.split(b"\0")
    else:
        keys = _keys(joined)
    if len(set(keys)) == len(names):
        return []
    groups: dict[bytes | str, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def _keys(joined: bytes) -> list[str]:
    """Return what is equal for names that may be one. NUL separates the names before and after each step."""
    import re
    from unicodedata import normalize

    text = normalize("NFKD", joined.decode("utf-8", "surrogateescape"))
    # Dotless i has an i as its capital, sharp s two: so capitals first, then what stands for both cases.
    text = normalize("NFKD", text.upper().casefold())
    text = re.sub(f"[{_IGNORABLE}]+", "", text)
    # FAT drops dots and spaces at the end.
    return re.sub(r"[. ]+(?=\0|\Z)", "", text).split("\0")


ROTATED_BYTES = 2048
"""Smaller files are not searched for: fetching one costs about as much as comparing it with another file."""

NAMED_BYTES = 8 << 10
"""Smaller files are not searched for by name alone: most such guesses are wrong, and each takes two round
trips more than a whole file, which is compressed."""

ROTATED_FILES = 16_384
"""Skip directories with more changed files than this; such a change is no rotation. Each file takes about 300
bytes of memory."""


def rotated(
    wanted: Listing, existing: Listing, comparison: Comparison, preserved: Preserved
) -> dict[int, tuple[bytes, ...]]:
    """Return, by row of `wanted`, names of files in `existing` that may have its content, best first.

    Candidates are files of `existing` whose own name now has other content or is gone. A file with the wanted
    size and mtime most likely is the wanted content. Otherwise a numbered name may continue the file with the
    number before it, if it has NAMED_BYTES. A wrong candidate costs one needless read at the destination.
    """
    # long because each candidate rules others out, so the steps share their sets
    if not 1 < len(comparison.decisions) + len(comparison.touched) + len(comparison.extra) <= ROTATED_FILES:
        return {}  # a single file has no other name to move to
    if not existing.names:
        return {}  # as in a first copy
    renumbered = list(filter(partial(_may_be_rotated, wanted), comparison.decisions))
    if not renumbered:
        return {}
    left = {
        decision.existing_row: False for decision in comparison.decisions if decision.change is Change.CONTENT
    }
    if comparison.touched:
        rows_by_name = {name: row for row, name in enumerate(existing.names)}
        left |= {rows_by_name[wanted.names[row]]: False for row in comparison.touched}
    left |= dict.fromkeys(comparison.extra, True)
    here, there = preserved.at_source, preserved.at_destination
    stamps: dict[tuple[int, int], list[int]] = {}
    names: dict[bytes, int] = {}
    for row in left:
        if existing.kinds[row] == Kind.FILE and existing.sizes[row] >= ROTATED_BYTES:
            stamp = existing.sizes[row], there.mtime(existing.mtimes[row])
            stamps.setdefault(stamp, []).append(row)
            names[existing.names[row]] = row
    found = {}
    for decision in renumbered:
        row = decision.row
        stamp = wanted.sizes[row], here.mtime(wanted.mtimes[row])
        rows = stamps.get(stamp) or []
        if not rows and wanted.sizes[row] >= NAMED_BYTES:
            before = filter(names.__contains__, _names_before(wanted.names[row]))
            rows = list(map(names.__getitem__, before))
        # A new file whose old name is gone is left to the later search of the whole tree.
        new = decision.change is Change.CREATE
        bases: list[bytes] = []
        for one in rows:
            if one != decision.existing_row and not (new and left[one]):
                bases.append(existing.names[one])
        if bases:
            found[row] = tuple(bases[:BASES_PER_FILE])
    return found


def _may_be_rotated(wanted: Listing, decision: Decision) -> bool:
    """Accept new files and files of another size. Files of equal size are usually just touched."""
    if wanted.kinds[decision.row] != Kind.FILE or wanted.sizes[decision.row] < ROTATED_BYTES:
        return False
    return decision.change is Change.CREATE or (
        decision.change is Change.CONTENT and Difference.SIZE in decision.difference
    )


def _names_before(name: bytes) -> list[bytes]:
    """Return the names that this file may have had before its number was increased."""
    stem, number, suffix = _numbered(name)
    if not number:
        return []
    before = b"%0*d" % (len(number), max(0, int(number) - 1))
    shorter = b"%d" % max(0, int(number) - 1)
    separator = name[len(stem) : len(stem) + 1]
    names = [stem + separator + one + suffix for one in (before, shorter)]
    return list(dict.fromkeys([*names, stem + suffix, stem]))


NUMBER_DIGITS = 14
"""A date and a time, as in mbox-20240131235959."""


def _numbered(name: bytes) -> tuple[bytes, bytes, bytes]:
    """Split app.log.2.gz into app.log, 2 and .gz, app.log-20240131 and mbox.3 without a suffix. The number is
    empty for other names.

    Regular expressions take 3 ms to load, and hardly an update has such a file.
    """
    front, dot, suffix = name.rpartition(b".")
    splits = [(name, b"")]
    if suffix.isalnum() and len(suffix) <= 4:
        splits.append((front, dot + suffix))
    for numbered, rest in splits:
        start = numbered.rstrip(b"0123456789")
        number = numbered[len(start) :]
        if len(start) > 1 and start[-1:] in (b".", b"-") and 0 < len(number) <= NUMBER_DIGITS:
            return start[:-1], number, rest
    return name, b"", b""
