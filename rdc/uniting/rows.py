"""Rows and trees of a two-way sync: what each side has, and what both sides last had in common.

A Node is one entry in a tree of entries. A rename moves a node, so whatever is below it goes along in one
step, and a path is read off the nodes above.
"""

from __future__ import annotations

from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple, TypeVar
from rdc.model.entries import Kind, little_endian_integers, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    from rdc.model.entries import Identity
    from rdc.tree.walk import WalkedDirectory

T = TypeVar("T")

LEFT, RIGHT = 0, 1
"""The two sides. Pairs of anything are in this order."""

BARRED = -1
"""The kind of an entry that takes no part: it is neither sent nor replaced nor removed. Its content is the
reason, as text."""

MODE_BITS = 0o777
"""The permissions that both sides agree on. Other bits of a mode depend on the owner."""

WHOLE_SECOND = 1_000_000_000

DIGEST_BYTES = 16
"""Bytes of a known content: the start of its BLAKE3 digest."""

DIRECTORY, FILE, SYMLINK = int(Kind.DIRECTORY), int(Kind.FILE), int(Kind.SYMLINK)


class Stamp(NamedTuple):
    """The description of an entry by one side's own file system, when both sides agreed on the entry.

    An entry with the same stamp is taken as unchanged without reading it.
    """

    size: int
    mode: int
    mtime_ns: int
    inode: int
    """0: unknown; it proves no rename."""
    ctime_ns: int
    """0: unknown, because the entry could have changed since without a new ctime."""


class ListedRow(NamedTuple):
    """One entry as its file system describes it now."""

    name: bytes
    kind: int
    target: bytes
    """The target of a symlink; b"" for other kinds."""
    size: int
    mode: int
    mtime_ns: int
    inode: int
    links: int
    ctime_ns: int


def listed_rows(directory: WalkedDirectory, device: int) -> Iterator[ListedRow]:
    """Yield the files, directories and symlinks of a listed directory that are on `device`."""
    listing, inodes = directory.listing, directory.inodes
    targets = iter(strings(listing.targets))
    columns = zip(
        strings(listing.names),
        listing.kinds,
        [next(targets) if kind == SYMLINK else b"" for kind in listing.kinds],
        little_endian_integers("Q", listing.sizes),
        little_endian_integers("H", listing.modes),
        little_endian_integers("q", listing.mtimes),
        little_endian_integers("Q", inodes.inodes),
        little_endian_integers("I", inodes.links),
        little_endian_integers("q", inodes.ctimes),
        strict=True,
    )
    for row, where in zip(columns, little_endian_integers("Q", inodes.devices), strict=True):
        if where == device and row[1] in (FILE, DIRECTORY, SYMLINK):
            yield ListedRow._make(row)


NO_STAMP = Stamp(-1, 0, 0, 0, 0)

ELSEWHERE = Stamp(-2, 0, 0, 0, 0)
"""In a journal: the other side gets a step, and its own journal has the stamp."""


TICK_NS = 10_000_000
"""Nanoseconds in which a file system may give two changes the same change time: the longest tick of Linux."""

COARSE_TICK_NS = 2_000_000_000
"""The same of a file system that keeps whole seconds, or every other one."""

FUTURE_NS = 5_000_000_000
"""A change time so far ahead is no recent one: the clock was set back since, and a further change gets
another change time."""


class Clock(Record):
    """The clock by which a file system sets change times: that of another machine may be days off.

    An entry whose change time is at most `now` - `tick_ns` gets another change time by any later change.
    """

    ahead_ns: int = 0
    tick_ns: int = TICK_NS

    def now(self, time_ns: int) -> int:
        """Return what the file system's clock shows at `time_ns` of the process's clock, or an earlier
        time."""
        return time_ns + self.ahead_ns


PROCESS_CLOCK = Clock()
"""The clock of a file system of which nothing is known."""


def clock_of(stamp_ns: int, before_ns: int, after_ns: int) -> Clock:
    """Return the clock of a file system that gave `stamp_ns` to a change between these two times.

    One with fine ticks that may be the process's own counts as that: a busy machine may take long in between.
    A clock that is behind by less than a tick then counts as the process's, too.
    """
    if stamp_ns % WHOLE_SECOND == 0:
        return Clock(stamp_ns - after_ns, COARSE_TICK_NS)
    if before_ns - TICK_NS <= stamp_ns <= after_ns:
        return Clock(0, TICK_NS)
    return Clock(stamp_ns - after_ns, TICK_NS)


class Doubt(Enum):
    """The certainty that a file has the content that it has in the ancestor, as its row says."""

    NONE = 0
    UNLESS_DISPROVED = 1
    """It is so unless a comparison with the other side's file shows another content."""
    UNTIL_PROVED = 2
    """It is so only if the other side's file is unchanged and has the same content."""


class Row(NamedTuple):
    """One entry as one side lists it."""

    kind: int
    content: bytes
    """Two entries of one kind have equal contents if these are equal. A symlink's target; b"" of a
    directory."""
    mode: int
    mtime_ns: int
    inode: int
    """0: the entry proves no rename, as it has several names or its file system's numbers are not lasting."""
    listed: Identity | None
    """The entry that a step expects to find."""
    stamp: Stamp
    doubt: Doubt
    """The certainty that `content` is that of the ancestor."""
    is_linked: bool
    """A file with several names: a rename would leave the others behind."""
    attributes: bytes
    """The digest of the set of its extended attributes (rdc.uniting.attributes); b"": it has none, or they
    take no part."""


class Ancestor(NamedTuple):
    """One entry that both sides had in common, with each side's own stamp of it."""

    kind: int
    content: bytes
    mode: int
    """0 of a symlink."""
    mtime_ns: int
    """0 unless it is a file."""
    stamps: tuple[Stamp, Stamp]
    attributes: bytes | None
    """As in Row; None: nothing was agreed about them."""

    def inode(self, side: int) -> int:
        """Return the inode number that the entry had at `side`; 0: unknown."""
        return self.stamps[side].inode


AnyRow: TypeAlias = "Row | Ancestor"


class Node:
    """One entry of a tree, or the top. `row` is None at the top, and where only something below is known."""

    __slots__ = ("above", "kids", "name", "row", "twin", "was")

    def __init__(self, name: bytes, above: Node | None, row: AnyRow | None = None) -> None:
        self.name = name
        self.above = above
        self.row = row
        self.kids: dict[bytes, Node] = {}
        self.twin: Node | None = None
        """In a copy: the node that it is a copy of."""
        self.was: bytes | None = None
        """The path on disk of a node that was taken elsewhere."""

    @property
    def origin(self) -> bytes:
        """The path of the entry on disk: that of the node before any rename was taken."""
        names: list[bytes] = []
        node = self
        while node.above is not None:
            if node.was is not None:
                return b"/".join([node.was, *reversed(names)])
            names.append(node.name)
            node = node.above
        return b"/".join(reversed(names))

    @property
    def path(self) -> bytes:
        """The path below the top; b"" at the top."""
        names = []
        node = self
        while node.above is not None:
            names.append(node.name)
            node = node.above
        return b"/".join(reversed(names))

    def find(self, path: bytes) -> Node | None:
        """Return the node at `path` if it has a row, else None."""
        node: Node | None = self
        for name in path.split(b"/") if path else ():
            node = node.kids.get(name) if node is not None else None
        return node if node is not None and node.row is not None else None

    def make(self, path: bytes, row: AnyRow | None) -> Node:
        """Put `row` at `path`, with nodes without rows above it where there are none."""
        node = self
        for name in path.split(b"/"):
            below = node.kids.get(name)
            if below is None:
                below = node.kids[name] = Node(name, node)
            node = below
        node.row = row
        return node

    def detach(self) -> None:
        """Take the node, and all below it, out of its tree."""
        if self.above is not None:
            if self.was is None:
                self.was = self.origin
            del self.above.kids[self.name]
            self.above = None

    def attach(self, top: Node, path: bytes) -> None:
        """Put the detached node at the free `path`. Nodes without rows are made above it where needed."""
        parent, _, name = path.rpartition(b"/")
        above = top
        for part in parent.split(b"/") if parent else ():
            below = above.kids.get(part)
            if below is None:
                below = above.kids[part] = Node(part, above)
            above = below
        # A node without a row may be in the way: something was attached below it before it came itself.
        empty = above.kids.get(name)
        if empty is not None:
            for kid in list(empty.kids.values()):
                if kid.name not in self.kids:
                    self.kids[kid.name] = kid
                    kid.above = self
        self.name, self.above = name, above
        above.kids[name] = self

    def copy(self) -> Node:
        """Return a copy of the tree whose nodes name theirs in `twin`."""
        top = Node(self.name, None, self.row)
        top.twin = self
        todo = [(self, top)]
        while todo:
            node, made = todo.pop()
            for name, kid in node.kids.items():
                below = Node(name, made, kid.row)
                below.twin = kid
                made.kids[name] = below
                if kid.kids:
                    todo.append((kid, below))
        return top

    def below(self) -> Iterator[Node]:
        """Yield the node and all below it that have rows, parents first, in order of names."""
        todo = [self]
        while todo:
            node = todo.pop()
            if node.row is not None:
                yield node
            todo += [node.kids[name] for name in sorted(node.kids, reverse=True)]


def required(found: T | None) -> T:
    """Return what the caller knows to be there. Raises ValueError if it is not."""
    if found is None:
        raise ValueError("a tree lacks an entry that was found in it")
    return found


def tree_of(rows: Mapping[bytes, AnyRow]) -> Node:
    """Return the tree of rows by path."""
    top = Node(b"", None)
    for path, row in rows.items():
        top.make(path, row)
    return top


def is_below(path: bytes, directory: bytes) -> bool:
    """Return whether `path` lies below `directory`, at any depth."""
    return path.startswith(directory + b"/")


def stamp_after_failure(before: Stamp, listed: Stamp, now: Stamp | None) -> Stamp:
    """Return the stamp that the next ancestor has of an entry whose step failed: `before`, but for the change
    time that the try itself gave it. `listed`: what it was before the step; `now`: what it is, if nobody else
    has changed it."""
    if now is None or not before.ctime_ns or listed != before:
        return before
    return now if now._replace(ctime_ns=before.ctime_ns) == before else before
