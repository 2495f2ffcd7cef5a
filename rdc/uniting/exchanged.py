"""The pages that two sides exchange: a tree against what both had in common, steps, what was agreed.

A page is an array of columns in msgpack. Its bytes come compressed, so columns are plain: text ended by NUL,
and integers of fixed width. Whatever a peer sends is checked here, before anybody relies on it: a tree has no
entry without its directory, no path leads out of it or is reserved, and no number is out of its range.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgpack
from blake3 import blake3

from rdc.errors import ProtocolError
from rdc.files.base.paths import refused_component
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple, TypeVar
from rdc.limits import MESSAGE_BYTES, PATH_BYTES, SIZE_LIMIT
from rdc.model.entries import little_endian_integers
from rdc.model.preserved import nearest_time, packed_times
from rdc.protocol.wire.fields import check_inner, column_with_times, column_without_times
from rdc.uniting.ancestor_file import whole_digest
from rdc.uniting.columns import Common, SharedRow, parents
from rdc.uniting.journal import OpenPlan
from rdc.uniting.path_texts import terminated
from rdc.uniting.rows import (
    DIGEST_BYTES,
    DIRECTORY,
    ELSEWHERE,
    FILE,
    NO_STAMP,
    SYMLINK,
    Ancestor,
    Doubt,
    Row,
    Stamp,
)
from rdc.uniting.state import OpenConflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rdc.uniting.describe import Listing
    from rdc.uniting.file_systems import Kept
    from rdc.uniting.plan import Intent

T = TypeVar("T")

MODE_LIMIT = 0o7777
CONTENT_BYTES = PATH_BYTES
ABOUT = ("content", "kind", "unit", "mode", "attributes", "links")


# Columns


def int_column(code: str, values: Sequence[int]) -> bytes:
    column = array(code, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _times(values: Sequence[int]) -> bytes:
    """Packed times, with the times of their stamps: those of this process mean nothing to another one."""
    return column_with_times(int_column("q", packed_times([nearest_time(value) for value in values])))


def path_column(values: Sequence[bytes]) -> bytes:
    return b"".join([value + b"\0" for value in values])


def parts_columns(values: Sequence[bytes]) -> list[bytes]:
    return [int_column("I", [len(value) for value in values]), b"".join(values)]


class Columns:
    """The columns of a page that came, taken in order. Raises ValueError for what is none."""

    def __init__(self, page: bytes, count: int) -> None:
        raw: Any = msgpack.unpackb(
            page,
            use_list=False,
            raw=False,
            max_bin_len=len(page),
            max_array_len=64,
            max_map_len=0,
            max_str_len=0,
            max_ext_len=0,
        )
        if not isinstance(raw, tuple) or len(raw) != count or any(type(each) is not bytes for each in raw):
            raise ValueError(f"expected {count} columns")
        self._raw: list[bytes] = list(raw[::-1])

    def blob(self, length: int) -> bytes:
        found = self._raw.pop()
        if len(found) != length:
            raise ValueError(f"{len(found)} bytes, expected {length}")
        return found

    def ints(self, code: str, count: int | None = None, *, least: int = 0, most: int) -> array[int]:
        column = array(code)
        column.frombytes(self._raw.pop())
        if sys.byteorder == "big":
            column.byteswap()
        if count is not None and len(column) != count:
            raise ValueError(f"{len(column)} numbers, expected {count}")
        if column and not (least <= min(column) and max(column) <= most):
            raise ValueError(f"a number is not in {least}..{most}")
        return column

    def times(self, count: int) -> array[int]:
        """Packed times."""
        column = little_endian_integers("q", column_without_times(self._raw.pop(), count))
        if len(column) != count:
            raise ValueError(f"{len(column)} times, expected {count}")
        return column

    def rising(self, below: int) -> tuple[int, ...]:
        """Numbers that rise strictly, below a limit."""
        found = self.ints("I", most=below - 1)
        if any(one >= other for one, other in pairwise(found)):
            raise ValueError("numbers do not rise")
        return tuple(found)

    def paths(self, count: int | None = None) -> list[bytes]:
        """Return paths inside a tree, none of which has a reserved name."""
        blob = self._raw.pop()
        if blob and blob[-1]:
            raise ValueError("text does not end in NUL")
        found = blob[:-1].split(b"\0") if blob else []
        if count is not None and len(found) != count:
            raise ValueError(f"{len(found)} paths, expected {count}")
        for path in found:
            if not path or len(path) > PATH_BYTES:
                raise ValueError(f"a path of {len(path)} bytes")
            check_inner(path)
            if refused_component(path) is not None:
                raise ValueError("a path has a reserved name")
        return found

    def parts(self, count: int, longest: int) -> list[bytes]:
        lengths, blob = self.ints("I", count, most=longest), self._raw.pop()
        if sum(lengths) != len(blob):
            raise ValueError("lengths do not add up")
        found, at = [], 0
        for length in lengths:
            found.append(blob[at : at + length])
            at += length
        return found


def packed_columns(*columns: bytes) -> bytes:
    data: bytes = msgpack.packb(columns, use_bin_type=True)
    return data


def pack_texts(texts: Sequence[bytes | None]) -> bytes:
    """Return texts as a page; None: it cannot be read, or is too long."""
    lengths = array("q", [-1 if text is None else len(text) for text in texts])
    if sys.byteorder == "big":
        lengths.byteswap()
    return packed_columns(lengths.tobytes(), b"".join(text for text in texts if text is not None))


def unpack_texts(page: bytes, count: int, most: int) -> list[bytes | None]:
    """Read `count` texts of at most `most` bytes each."""
    columns = Columns(page, 2)
    lengths = columns.ints("q", count, least=-1, most=most)
    blob = columns.blob(sum(length for length in lengths if length > 0))
    found: list[bytes | None] = []
    at = 0
    for length in lengths:
        found.append(None if length < 0 else blob[at : at + length])
        at += max(length, 0)
    return found


def checked(what: str, read: Callable[[bytes], T], page: bytes) -> T:
    """Read a page. Raises ProtocolError if it is not one that rdc writes."""
    try:
        return read(page)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ProtocolError(f"{what}: {error}") from error


# Paths


def pack_paths(paths: Sequence[bytes]) -> bytes:
    """Return paths as a page."""
    return packed_columns(path_column(paths))


def unpack_paths(page: bytes) -> list[bytes]:
    """Read paths."""
    return Columns(page, 1).paths()


# Digests


def pack_digests(digests: Sequence[bytes | None]) -> bytes:
    """Return digests as a page; None: the file cannot be read."""
    return packed_columns(
        bytes(digest is not None for digest in digests),
        b"".join(digest for digest in digests if digest is not None),
    )


def unpack_digests(page: bytes, count: int) -> list[bytes | None]:
    """Read digests of `count` files."""
    columns = Columns(page, 2)
    known = columns.blob(count)
    if set(known) - {0, 1}:
        raise ValueError("whether each is known")
    digests = columns.blob(DIGEST_BYTES * known.count(1))
    found: list[bytes | None] = []
    at = 0
    for each in known:
        found.append(digests[at : at + DIGEST_BYTES] if each else None)
        at += DIGEST_BYTES * each
    return found


# One side's tree


class Told(Record):
    """One side's tree against the ancestor's rows, which are named by their numbers in order of paths."""

    gone: tuple[int, ...]
    """Rows at whose paths nothing takes part."""
    linked: tuple[int, ...]
    """Rows of unchanged files that have several names."""
    dropped: tuple[int, ...]
    """Rows that an undo made worthless."""
    rows: Mapping[bytes, Row]
    """Entries that are not as the ancestor's row at their path says, sorted by path. Inode numbers are those
    of `number_of`."""
    barred: Mapping[bytes, str]
    plans: tuple[OpenPlan, ...]
    """The plans in the journal. A stamp that an unchanged entry has is that of `same_stamp`."""


def same_stamp(number: int, row: Ancestor, side: int) -> Stamp:
    """Return the stamp of an unchanged entry of the other side, whose true one only that side knows."""
    before = row.stamps[side]
    return Stamp(before.size, row.mode, row.mtime_ns, number + 1, int(row.kind != DIRECTORY))


def tell(
    rows: Mapping[bytes, Row],
    barred: Mapping[bytes, str],
    plans: Sequence[OpenPlan],
    common: Common,
    dropped: Sequence[bytes],
    side: int,
    linked: Iterable[int] = (),
) -> Told:
    """Describe `side`. `rows`: in the directories in which the ancestor's rows were made. `dropped`: paths of
    rows that an undo made worthless. `linked`: rows of files with several names in other directories."""
    original, numbers = common.rows, common.numbers
    inodes: dict[tuple[int, int], int] = {}
    for path, base in original.items():
        if base.inode(side):
            inodes.setdefault((base.kind, base.inode(side)), numbers[path] + 1)
    changed: dict[bytes, Row] = {}
    # What cannot be listed has a row of its own, and below it nothing can be said.
    barred = {path: why for path, why in barred.items() if not any(map(barred.__contains__, _above(path)))}
    rows = taking_part(rows, barred)
    linked = list(linked)
    known: dict[Stamp, int] = {}  # by what no step leaves as it was
    for path, row in rows.items():
        found = original.get(path)
        if found is not None and _is_same(row, found, side):
            known[_lasting(row.stamp, row.kind == DIRECTORY)] = numbers[path]
            if row.is_linked:
                linked.append(numbers[path])
            continue
        token = 0
        if row.inode:
            token = inodes.setdefault((row.kind, row.inode), common.count + len(inodes) + 1)
        changed[path] = row._replace(inode=token)
    return Told(
        tuple(sorted(numbers[path] for path in original if path not in rows)),
        tuple(sorted(linked)),
        tuple(sorted(numbers[path] for path in dropped)),
        dict(sorted(changed.items())),
        barred,
        tuple(_translated(plan, known, common, side) for plan in plans),
    )


def taking_part(rows: Mapping[bytes, Row], barred: Mapping[bytes, str]) -> dict[bytes, Row]:
    """Return the rows of entries that are neither barred nor below such a directory."""
    found = {path: row for path, row in rows.items() if path not in barred}
    if any(path in rows and rows[path].kind == DIRECTORY for path in barred):
        found = {path: row for path, row in found.items() if not any(map(barred.__contains__, _above(path)))}
    return found


def _above(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _is_same(row: Row, base: Ancestor, side: int) -> bool:
    before, now = base.stamps[side], row.stamp
    if (row.kind, row.content, row.mode) != (base.kind, base.content, base.mode):
        return False
    if row.doubt is not Doubt.NONE:
        return False
    if row.kind == DIRECTORY:
        return (now.mode, now.inode) == (before.mode, before.inode)
    return now == before and (row.kind != FILE or row.mtime_ns == base.mtime_ns)


def _lasting(stamp: Stamp, is_directory: bool) -> Stamp:
    """Return what a step at an entry changes of its stamp: see _is_untouched_since in rdc.uniting.plan."""
    return stamp._replace(ctime_ns=0, mtime_ns=0 if is_directory else stamp.mtime_ns)


def _known_as(own: Stamp, known: Mapping[Stamp, int]) -> int | None:
    """Return the number of the unchanged entry that a journal noted as `own`; None: no such one is
    unchanged."""
    number = known.get(_lasting(own, False))
    return known.get(_lasting(own, True)) if number is None and own.inode and not own.size else number


def _translated(plan: OpenPlan, known: Mapping[Stamp, int], common: Common, side: int) -> OpenPlan:
    """Return the plan as the other side can compare it. A plan of a run on one machine names no side: all of
    its paths are in doubt."""
    intents: dict[bytes, Intent] = {}
    for path, (own, other) in plan.intents.items():
        if not plan.is_own:
            intents[path] = None, None
        elif own is not None and (number := _known_as(own, known)) is not None:
            intents[path] = same_stamp(number, common.rows[common.path(number)], side), other
        else:
            intents[path] = own, other
    return OpenPlan(plan.generation, intents, plan.renames, True)


def told_directories(told: Told, common: Common) -> set[bytes]:
    """Return the directories of which a plan needs the entries, as the other side tells them apart from the
    ancestor's."""
    missing = [common.path(number) for number in (*told.gone, *told.dropped)]
    named = [*told.rows, *told.barred, *missing]
    return parents(named).union(named)


def rows_of(
    told: Told,
    original: Mapping[bytes, Ancestor],
    numbers: Mapping[bytes, int],
    side: int,
    *,
    keeps_inodes: bool,
) -> tuple[dict[bytes, Row], dict[bytes, Ancestor]]:
    """Return the rows of the other side, which is `side`, and the ancestor with its stamps in place.

    `original`: the ancestor's rows in the directories that differ, each with its number in `numbers`. Raises
    ProtocolError if the rows make no tree.
    """
    gone, linked = frozenset(told.gone), frozenset(told.linked)
    rows: dict[bytes, Row] = {}
    base: dict[bytes, Ancestor] = {}
    for path, row in original.items():
        number = numbers[path]
        stamp = same_stamp(number, row, side)
        stamps = (stamp, row.stamps[1]) if side == 0 else (row.stamps[0], stamp)
        base[path] = row._replace(stamps=stamps)
        if number in gone or path in told.rows or path in told.barred:
            continue
        several = number in linked
        proves = keeps_inodes and row.kind != SYMLINK and not several
        rows[path] = Row(
            row.kind, row.content, row.mode, row.mtime_ns, number + 1 if proves else 0, None, stamp,
            Doubt.NONE, several, b"",
        )  # fmt: skip
    rows.update(told.rows)
    for path in (*rows, *told.barred):
        parent = path.rpartition(b"/")[0]
        if parent and (parent not in rows or rows[parent].kind != DIRECTORY):
            raise ProtocolError("a tree has an entry without its directory")
    return dict(sorted(rows.items())), base


def as_both_keep(rows: dict[bytes, Row], side: int, kept: Kept) -> dict[bytes, Row]:
    """Return the rows of a side, where the times of new files say no more than both file systems keep."""
    if kept.is_plain:
        return rows
    found = dict(rows)
    for path, row in rows.items():
        size, mtime_ns = row.stamp.size, row.mtime_ns
        if row.kind == FILE and row.content == new_content(size, mtime_ns):
            content = new_content(size, kept.granularity.of(mtime_ns))
            if not kept.timed:
                content = b"new, at side %d: %s" % (side, path)
            found[path] = row._replace(content=content)
    return found


_NEW = b""
"""Stands for the content of a file without an ancestor, which its size and time say."""


def new_content(size: int, mtime_ns: int) -> bytes:
    """Return the content of a file without an ancestor that nobody read."""
    return b"new, of %d bytes at %d" % (size, mtime_ns)


def _content(row: Row) -> bytes:
    is_new = row.kind == FILE and row.content == new_content(row.stamp.size, row.mtime_ns)
    return _NEW if is_new else row.content


def pack_told(told: Told) -> bytes:
    """Return a tree as a page."""
    rows = list(told.rows.values())
    stamps = [row.stamp for row in rows]
    journal = [
        (number, path, own, other)
        for number, plan in enumerate(told.plans)
        for path, (own, other) in plan.intents.items()
    ]
    renames = [(number, *pair) for number, plan in enumerate(told.plans) for pair in sorted(plan.renames)]
    owns = [own if own is not None else Stamp(-3, 0, 0, 0, 0) for _, _, own, _ in journal]
    return packed_columns(
        int_column("I", told.gone),
        int_column("I", told.linked),
        int_column("I", told.dropped),
        path_column(list(told.rows)),
        bytes(row.kind for row in rows),
        *parts_columns([_content(row) for row in rows]),
        int_column("H", [row.mode for row in rows]),
        _times([row.mtime_ns for row in rows]),
        int_column("Q", [row.inode for row in rows]),
        bytes(row.doubt.value for row in rows),
        bytes(row.is_linked for row in rows),
        *_stamp_columns(stamps),
        path_column(list(told.barred)),
        *parts_columns([text.encode()[:MESSAGE_BYTES] for text in told.barred.values()]),
        b"".join(plan.generation for plan in told.plans),
        int_column("I", [number for number, *_ in journal]),
        path_column([path for _, path, *_ in journal]),
        *_stamp_columns(owns),
        bytes(other is not None for *_, other in journal),
        int_column("I", [number for number, *_ in renames]),
        path_column([old for _, old, _ in renames]),
        path_column([new for *_, new in renames]),
    )


def _stamp_columns(stamps: Sequence[Stamp]) -> list[bytes]:
    return [
        int_column("q", [stamp.size for stamp in stamps]),
        int_column("H", [stamp.mode for stamp in stamps]),
        _times([stamp.mtime_ns for stamp in stamps]),
        int_column("Q", [stamp.inode for stamp in stamps]),
        _times([stamp.ctime_ns for stamp in stamps]),
    ]


def _stamps(columns: Columns, count: int, least: int) -> list[Stamp]:
    sizes = columns.ints("q", count, least=least, most=SIZE_LIMIT)
    modes = columns.ints("H", count, most=MODE_LIMIT)
    mtimes = columns.times(count)
    inodes = columns.ints("Q", count, most=(1 << 64) - 1)
    ctimes = columns.times(count)
    return [Stamp(*fields) for fields in zip(sizes, modes, mtimes, inodes, ctimes, strict=True)]


def unpack_told(page: bytes, count: int) -> Told:
    """Read a tree, told against an ancestor of `count` rows."""
    columns = Columns(page, 32)
    gone, linked, dropped = columns.rising(count), columns.rising(count), columns.rising(count)
    paths = columns.paths()
    if any(one >= other for one, other in pairwise(paths)):
        raise ValueError("paths do not rise")
    number = len(paths)
    kinds = columns.blob(number)
    contents = columns.parts(number, CONTENT_BYTES)
    modes = columns.ints("H", number, most=0o777)
    mtimes = columns.times(number)
    inodes = columns.ints("Q", number, most=(1 << 64) - 1)
    doubts, several = columns.blob(number), columns.blob(number)
    stamps = _stamps(columns, number, 0)
    rows: dict[bytes, Row] = {}
    for at, path in enumerate(paths):
        kind, content = kinds[at], contents[at]
        if kind not in (DIRECTORY, FILE, SYMLINK) or several[at] > 1:
            raise ValueError("a row of no known kind")
        if kind == DIRECTORY and content:
            raise ValueError("a directory with content")
        if kind == SYMLINK and (not content or b"\0" in content):
            raise ValueError("a symlink without a target")
        if kind == FILE and content == _NEW:
            content = new_content(stamps[at].size, mtimes[at])
        rows[path] = Row(
            kind, content, modes[at], mtimes[at], inodes[at], None, stamps[at], Doubt(doubts[at]),
            bool(several[at]), b"",
        )  # fmt: skip
    barred = columns.paths()
    reasons = columns.parts(len(barred), MESSAGE_BYTES)
    if set(barred) & rows.keys():
        raise ValueError("an entry takes part, and does not")
    plans = _plans(columns)
    return Told(
        gone,
        linked,
        dropped,
        rows,
        {path: reason.decode("utf-8", "replace") for path, reason in zip(barred, reasons, strict=True)},
        plans,
    )


def _plans(columns: Columns) -> tuple[OpenPlan, ...]:
    generations = columns._raw.pop()
    if len(generations) % 8:
        raise ValueError("a generation is cut off")
    plans: list[tuple[dict[bytes, Intent], set[tuple[bytes, bytes]]]] = [
        ({}, set()) for _ in range(len(generations) // 8)
    ]
    at = columns.ints("I", most=len(plans) - 1)
    paths = columns.paths(len(at))
    owns = _stamps(columns, len(at), -3)
    others = columns.blob(len(at))
    for number, path, own, other in zip(at, paths, owns, others, strict=True):
        plans[number][0][path] = (
            None if own.size == -3 else own._replace() if own.size >= 0 else NO_STAMP,
            ELSEWHERE if other else None,
        )
    at = columns.ints("I", most=len(plans) - 1)
    olds, news = columns.paths(len(at)), columns.paths(len(at))
    for number, old, new in zip(at, olds, news, strict=True):
        plans[number][1].add((old, new))
    return tuple(
        OpenPlan(generations[8 * number : 8 * number + 8], intents, frozenset(renames), True)
        for number, (intents, renames) in enumerate(plans)
    )


def tree_digest(listing: Listing) -> bytes:
    """Return the digest of a tree without an ancestor: equal ones need no rows."""
    whole = whole_digest(listing.agreed_digests().values())
    return blake3(whole + terminated(sorted(listing.barred))).digest(16)


# Steps


class Action(NamedTuple):
    """One step at the other side, as that side can do it: it knows its own entries."""

    what: int
    path: bytes
    new: bytes
    """The new path of a rename or a copy, the name that a hard link is made of; otherwise b""."""
    kind: int
    target: bytes
    mode: int
    mtime_ns: int
    size: int
    """The size of a file that is to arrive, as its source listed it, as is the time below."""
    listed_mtime_ns: int


MAKE, RENAME, COPY, ADD, REPLACE, SET, REMOVE, PART, LINK, RELINK, TIE = range(11)
"""The kind of an Action. The last three make a hard link: where nothing is, in place of a file, and in place
of one that has the same content."""

LINKS = frozenset({LINK, RELINK, TIE})


class Order(Record):
    """The steps that a run is about to do at one side."""

    generation: bytes
    intents: Mapping[bytes, tuple[bool, bool]]
    """The journal: whether the side that gets the order has a step at a path, and whether the other has."""
    renames: frozenset[tuple[bytes, bytes]]
    actions: tuple[Action, ...]
    wanted: tuple[bytes, ...]
    """Files that the other side takes from here, sorted by directory and name."""


def pack_order(order: Order) -> bytes:
    """Return an order as a page."""
    actions = order.actions
    return packed_columns(
        order.generation,
        path_column(list(order.intents)),
        bytes(own | other << 1 for own, other in order.intents.values()),
        path_column([old for old, _ in sorted(order.renames)]),
        path_column([new for _, new in sorted(order.renames)]),
        bytes(action.what for action in actions),
        path_column([action.path for action in actions]),
        *parts_columns([action.new for action in actions]),
        bytes(action.kind for action in actions),
        *parts_columns([action.target for action in actions]),
        int_column("H", [action.mode for action in actions]),
        _times([action.mtime_ns for action in actions]),
        int_column("Q", [action.size for action in actions]),
        _times([action.listed_mtime_ns for action in actions]),
        path_column(order.wanted),
    )


def unpack_order(page: bytes) -> Order:
    """Read an order."""
    columns = Columns(page, 17)
    generation = columns.blob(8)
    paths = columns.paths()
    sides = columns.blob(len(paths))
    if sides and max(sides) > 3:
        raise ValueError("a path of no side")
    olds = columns.paths()
    renames = frozenset(zip(olds, columns.paths(len(olds)), strict=True))
    whats = columns._raw.pop()
    count = len(whats)
    if whats and max(whats) > TIE:
        raise ValueError("an unknown step")
    places = columns.paths(count)
    news = columns.parts(count, PATH_BYTES)
    kinds = columns.blob(count)
    targets = columns.parts(count, PATH_BYTES)
    modes = columns.ints("H", count, most=MODE_LIMIT)
    mtimes = columns.times(count)
    sizes = columns.ints("Q", count, most=SIZE_LIMIT)
    listed = columns.times(count)
    actions: list[Action] = []
    for number, what in enumerate(whats):
        new, kind, target = news[number], kinds[number], targets[number]
        if bool(new) != (what in (RENAME, COPY, *LINKS)) or kind not in (DIRECTORY, FILE, SYMLINK):
            raise ValueError("a step of no known form")
        if what in (PART, *LINKS) and kind != FILE:
            raise ValueError("a hard link of something that is no file")
        if new:
            _check_path(new)
        if bool(target) != (what in (ADD, REPLACE) and kind == SYMLINK) or b"\0" in target:
            raise ValueError("a step with a wrong target")
        actions.append(
            Action(
                what,
                places[number],
                new,
                kind,
                target,
                modes[number],
                mtimes[number],
                sizes[number],
                listed[number],
            )
        )
    wanted = columns.paths()
    if len(set(wanted)) != len(wanted):
        raise ValueError("a file is wanted twice")
    return Order(
        generation,
        {path: (bool(side & 1), bool(side & 2)) for path, side in zip(paths, sides, strict=True)},
        renames,
        tuple(actions),
        tuple(wanted),
    )


def _check_path(path: bytes) -> None:
    if b"\0" in path:
        raise ValueError("a path with NUL")
    check_inner(path)
    if refused_component(path) is not None:
        raise ValueError("a path has a reserved name")


# Outcome


class Outcome(Record):
    """The outcome of an order."""

    failed: tuple[bytes, ...]
    """Paths at which a step was not done; of a rename both."""
    problems: tuple[tuple[bytes, str], ...]
    """Paths and texts."""
    digests: Mapping[bytes, bytes]
    """The contents of files that came, as far as they are known."""


def pack_outcome(outcome: Outcome) -> bytes:
    """Return an outcome as a page."""
    texts = [text.encode()[:MESSAGE_BYTES] for _, text in outcome.problems]
    return packed_columns(
        path_column(sorted(outcome.failed)),
        *parts_columns([path for path, _ in outcome.problems]),
        *parts_columns(texts),
        path_column(list(outcome.digests)),
        b"".join(outcome.digests.values()),
    )


def unpack_outcome(page: bytes) -> Outcome:
    """Read an outcome."""
    columns = Columns(page, 7)
    failed = columns.paths()
    lengths = columns._raw[-1]
    count = len(lengths) // 4
    paths = columns.parts(count, PATH_BYTES)
    texts = columns.parts(count, MESSAGE_BYTES)
    problems = tuple((path, text.decode("utf-8", "replace")) for path, text in zip(paths, texts, strict=True))
    known = columns.paths()
    blob = columns.blob(DIGEST_BYTES * len(known))
    digests = {path: blob[DIGEST_BYTES * at : DIGEST_BYTES * (at + 1)] for at, path in enumerate(known)}
    return Outcome(tuple(failed), problems, digests)


# What is agreed


class Agreed(Record):
    """The new common ancestor after a run, against what each can tell for itself (`expected_rows`)."""

    generation: bytes
    shared: bytes
    """The first half of the digest of all rows, by which both sides find that they keep the same."""
    moves: tuple[tuple[bytes, bytes], ...]
    """Old and new paths of the ancestor's rows, with what lies below them; all at once."""
    gone: tuple[bytes, ...]
    """Rows that are not agreed, by paths after the moves."""
    rows: Mapping[bytes, SharedRow]
    kept: tuple[bytes, ...]
    """Rows that stay as they were, with each side's own stamps: their entries are in conflict, or held."""
    torn: tuple[bytes, ...]
    """Entries whose permissions are in conflict."""
    conflicts: tuple[OpenConflict, ...]


def pack_agreed(agreed: Agreed) -> bytes:
    """Return it as a page."""
    rows, conflicts = list(agreed.rows.values()), agreed.conflicts
    return packed_columns(
        agreed.generation,
        agreed.shared,
        path_column([old for old, _ in agreed.moves]),
        path_column([new for _, new in agreed.moves]),
        path_column(agreed.gone),
        path_column(list(agreed.rows)),
        bytes(row.kind for row in rows),
        *parts_columns([row.target if row.kind == SYMLINK else row.digest or b"" for row in rows]),
        int_column("H", [row.mode for row in rows]),
        _times([row.mtime_ns for row in rows]),
        path_column(agreed.kept),
        path_column(agreed.torn),
        path_column([each.path for each in conflicts]),
        bytes(ABOUT.index(each.about) for each in conflicts),
        int_column("q", [size for each in conflicts for size in each.sizes]),
        _times([mtime for each in conflicts for mtime in each.mtimes_ns]),
    )


def unpack_agreed(page: bytes) -> Agreed:
    """Read what is agreed."""
    columns = Columns(page, 17)
    generation, shared = columns.blob(8), columns.blob(16)
    olds = columns.paths()
    news = columns.paths(len(olds))
    gone = columns.paths()
    paths = columns.paths()
    count = len(paths)
    kinds = columns.blob(count)
    contents = columns.parts(count, PATH_BYTES)
    modes = columns.ints("H", count, most=0o777)
    mtimes = columns.times(count)
    rows: dict[bytes, SharedRow] = {}
    for path, kind, content, mode, mtime_ns in zip(paths, kinds, contents, modes, mtimes, strict=True):
        is_file, is_link = kind == FILE, kind == SYMLINK
        if not (is_file or is_link or kind == DIRECTORY) or b"\0" in content * is_link:
            raise ValueError("a row of no known kind")
        if len(content) not in ((0, DIGEST_BYTES) if is_file else range(1, PATH_BYTES) if is_link else (0,)):
            raise ValueError("a row with a wrong content")
        digest = content if is_file and content else None
        rows[path] = SharedRow(kind, digest, content if is_link else b"", mode, mtime_ns)
    kept = columns.paths()
    torn = columns.paths()
    places = columns.paths()
    abouts = columns.blob(len(places))
    if abouts and max(abouts) >= len(ABOUT):
        raise ValueError("a conflict about nothing")
    sizes = columns.ints("q", 2 * len(places), least=-1, most=SIZE_LIMIT)
    times = columns.times(2 * len(places))
    conflicts = tuple(
        OpenConflict(
            path,
            ABOUT[abouts[at]],
            (sizes[2 * at], sizes[2 * at + 1]),
            (times[2 * at], times[2 * at + 1]),
        )
        for at, path in enumerate(places)
    )
    return Agreed(
        generation,
        shared,
        tuple(zip(olds, news, strict=True)),
        tuple(gone),
        rows,
        tuple(kept),
        tuple(torn),
        conflicts,
    )


def expected_rows(
    base: Mapping[bytes, SharedRow] | None,
    moves: Sequence[tuple[bytes, bytes]],
    rows: Mapping[bytes, Row],
) -> dict[bytes, SharedRow]:
    """Return what either side expects to be agreed, before it is told otherwise.

    With an ancestor that is the ancestor, relabelled. Without one it is all that the answerer had when it was
    listed, which is `rows`.
    """
    if base is None:
        return {
            path: SharedRow(
                row.kind,
                row.content if row.kind == FILE and len(row.content) == DIGEST_BYTES else None,
                row.content if row.kind == SYMLINK else b"",
                row.mode if row.kind != SYMLINK else 0,
                row.mtime_ns if row.kind == FILE else 0,
            )
            for path, row in rows.items()
        }
    return {new: base[old] for new, old in relabelled(base, moves).items()}


def relabelled(paths: Iterable[bytes], moves: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the old path of each path after the moves."""
    new_path = dict(moves)
    cache: dict[bytes, bytes] = {b"": b""}
    return {_moved(path, new_path, cache): path for path in paths}


def _moved(path: bytes, moves: Mapping[bytes, bytes], cache: dict[bytes, bytes]) -> bytes:
    """Return where a path is after the moves: below the nearest directory above it that moved."""
    known = cache.get(path)
    if known is None:
        known = moves.get(path)
        if known is None:
            parent, slash, name = path.rpartition(b"/")
            known = _moved(parent, moves, cache) + slash + name if parent else name
        cache[path] = known
    return known
