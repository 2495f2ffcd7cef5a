"""The descent over two folded manifests: which entries differ, what to ask for, and the source's manifest
in the end.
"""

from __future__ import annotations

from collections import deque
from itertools import accumulate, compress

from rdc.errors import ProtocolError
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN, TIER_NODES
from rdc.records import dataclass
from rdc.tree.fold import GROUPS, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.protocol.rows import Rows
    from rdc.tree.fold import Fold, Tier
    from rdc.tree.manifest import Manifest

__all__ = ["Ask", "ManifestDescent", "first_tier"]

ALL = Group.NAMES | Group.ATTRIBUTES | Group.MTIMES

COMPARED_GROUPS = (Group.ATTRIBUTES, Group.MTIMES)
"""What is compared of nodes with the same names."""

_AMENDED = ("modes", "sizes", "mtimes", "uids", "gids")
"""Columns that may come without names, for entries of ours."""

RUN_NODES = 4096
"""Of which the columns that came are joined at a time: half a megabyte of mtimes."""

FIRST_NODES = 64
"""The descent starts at the finest tier with at most so many nodes: they cost about 700 bytes and save one or
two round trips."""

FIRST_TIER = 2
"""Above a quarter of a million entries the first tier may have more nodes instead, 11 bytes for each 4,096
entries, so that four exchanges always suffice."""

FEW_NODES = 8
"""Nodes of the lowest tier whose entries are asked for with all their columns: about 400 bytes each, where
another round trip would tell which columns are needed."""

FIRST_NODES_MAX = 16_384
"""Nodes of the first tier in any case: 180 KB, in one answer."""


def first_tier(entries: int) -> int:
    """The tier at which a descent over a manifest of so many entries starts: about 16 to a node."""
    level = 0
    while entries >> 4 * (level + 1) > (FIRST_NODES if level < FIRST_TIER else FIRST_NODES_MAX):
        level += 1
    return level


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: for the children in tier `level` of `nodes` of the tier above (none: the whole tier), or,
    with `rows`, for the entries below `nodes` of tier `level`.
    """

    rows: bool
    level: int
    nodes: tuple[int, ...]
    groups: Group


@dataclass(slots=True)
class _Node:
    """A node of the source's fold: settled as one of ours, or to be expanded, or to be replaced by rows."""

    number: int
    own: int | None
    """Our node of the same tier with the same names."""
    differing: Group
    children: list[_Node] | None = None
    rows: tuple[Rows, ...] = ()


class ManifestDescent:
    """Goes down the source's fold along what our own manifest lacks. Pure: `asks` out, answers in.

    Where names match, only differing column groups are followed. It goes down to the lowest tier whatever
    differs: the references on the way cost 3 bytes (11 where names differ) for each 16 entries, and asking
    for entries earlier would save them where all differ, but cost several times as much where some do.

    A manifest that nobody has cannot make it ask for more: of each tier at most as many nodes are taken as
    `entries` can have, and of entries at most `entries`.
    """

    def __init__(self, own: Fold, entries: int, key: bytes, *, owner: bool) -> None:
        """`entries`: of the source's manifest, at least 1. `key`: the session's, for short references."""
        self._own = own
        self._entries = entries
        self._key = key
        self._owner = owner
        self._level = first_tier(entries)
        self._top = _Node(0, None, ALL)
        # In the order asked: what each outstanding request is about, and how far its answer is.
        self._waiting: deque[tuple[Ask, deque[_Node]]] = deque()
        self._asks: list[Ask] = []
        self._maps: dict[tuple[int, Group], dict[bytes, int]] = {}
        self._nodes_left: dict[int, int] = {}
        self._rows_left = entries
        self.collided = False
        """Two nodes had one short reference: `assemble` would be wrong, and nothing more is asked for."""
        self._ask(Ask(False, self._level, (), ALL), [self._top])

    def prepare(self) -> None:
        """Folds our manifest, if that was not done yet: work for the time until the first answer comes."""
        self._own.prepare()

    def asks(self) -> list[Ask]:
        """Requests to be sent now, in this order."""
        asks, self._asks = self._asks, []
        return asks

    @property
    def complete(self) -> bool:
        """Every request was answered, and there is none to send."""
        return not self._waiting

    def take_top(self, level: int, references: bytes) -> None:
        """The source's finest tier of few nodes, which came unasked: in place of asking for a first tier."""
        total = len(references) // Group.WHOLE.width
        if total > self._most(level):
            raise ProtocolError(f"{total} manifest nodes in tier {level} of {self._entries} entries")
        children = self._children(self._top, level, 0, range(total), {Group.WHOLE: references})
        self._asks = []
        self._waiting.clear()
        if level == 0 and sum(bool(child.differing) for child in children) > FEW_NODES:
            # Entries come next: it pays to know first in which columns they differ.
            self._ask(Ask(False, 0, (), ALL), [self._top])
            return
        self._level, self._top.children = level, children
        self._descend(level, [self._top])

    def take_tier(self, level: int, firsts: Sequence[int], counts: Sequence[int], references: bytes) -> None:
        """The answer to the oldest request, which was for nodes."""
        ask, parents = self._oldest(rows=False)
        if level != ask.level and (ask.nodes or level > ask.level):
            raise ProtocolError(f"manifest nodes of tier {level} where {ask.level} was asked for")
        if not ask.nodes:
            self._level = level
        self._check_shape(ask, level, firsts, counts)
        groups = [group for group in GROUPS if group & ask.groups]
        total = sum(counts)
        if len(references) != total * sum(group.width for group in groups):
            raise ProtocolError(f"{len(references)} bytes of references for {total} manifest nodes")
        del self._waiting[0]
        if self.collided:
            return
        columns, at = {}, 0
        for group in groups:
            columns[group] = references[at : at + total * group.width]
            at += total * group.width
        begins = accumulate(counts, initial=0)
        for parent, first, count, begin in zip(parents, firsts, counts, begins, strict=False):
            parent.children = self._children(parent, level, first, range(begin, begin + count), columns)
        self._descend(level, parents)

    def _check_shape(self, ask: Ask, level: int, firsts: Sequence[int], counts: Sequence[int]) -> None:
        """Which nodes they are: as many as a fold can have, in order."""
        asked = len(ask.nodes) or 1
        if len(firsts) != asked or len(counts) != asked:
            raise ProtocolError(f"manifest nodes below {len(counts)} of {asked} nodes that were asked for")
        if not ask.nodes and firsts[0]:
            raise ProtocolError(f"manifest tier {level} starts at node {firsts[0]}")
        if ask.nodes and not 0 < min(counts) <= max(counts) <= NODE_RECORDS_MAX:
            raise ProtocolError(f"a manifest node of {min(counts)} or {max(counts)} nodes")
        ends = [first + count for first, count in zip(firsts, counts, strict=True)]
        most = self._most(level)
        if ends[-1] > most or any(end > first for end, first in zip(ends, firsts[1:], strict=False)):
            raise ProtocolError(
                f"manifest nodes out of order or past {most}, which {self._entries} entries have"
            )
        left = self._nodes_left.get(level, most) - sum(counts)
        if left < 0:
            raise ProtocolError(f"more nodes of manifest tier {level} than {self._entries} entries can have")
        self._nodes_left[level] = left

    def _most(self, level: int) -> int:
        """Nodes that a tier can have: all but the last of each tier have more than NODE_RECORDS_MIN."""
        most = self._entries
        for _ in range(level + 1):
            most = (most - 1) // (NODE_RECORDS_MIN + 1) + 1
        return most

    def take_rows(self, rows: Rows, counts: Sequence[int], *, last: bool) -> None:
        """The next part of the answer to the oldest request, which was for rows: so many of each of the next
        nodes. Not `last`: the last of these goes on."""
        ask, nodes = self._oldest(rows=True)
        self._check_columns(ask, rows)
        self._rows_left -= rows.count
        if self._rows_left < 0:
            raise ProtocolError(f"more rows than the manifest's {self._entries}")
        if not 0 < len(counts) <= len(nodes) or not rows.splits(counts):
            raise ProtocolError(f"rows of {len(counts)} manifest nodes where {len(nodes)} are awaited")
        for i, part in enumerate(rows.split(counts), 1):
            node = nodes[0]
            if not self.collided:
                node.rows += (part,)
            if i < len(counts) or last:
                nodes.popleft()
                if not self._fits(node, ask.level):
                    self._collide()
        if not nodes:
            del self._waiting[0]

    def _check_columns(self, ask: Ask, rows: Rows) -> None:
        for group, column in (
            (Group.NAMES, rows.kinds),
            (Group.ATTRIBUTES, rows.modes),
            (Group.MTIMES, rows.mtimes),
        ):
            if bool(column) != bool(group & ask.groups):
                raise ProtocolError("a manifest answer with other columns than were asked for")
        if bool(rows.uids) != bool(self._owner and Group.ATTRIBUTES & ask.groups):
            raise ProtocolError("a manifest answer with owners that are not kept, or without")

    def _fits(self, node: _Node, level: int) -> bool:
        """Whether columns that came for a node of ours can be columns of its entries."""
        if node.own is None or self.collided:
            return True
        span = self._own.tiers[level].span(node.own)
        if sum(rows.count for rows in node.rows) != len(span):
            return False
        # Kind.FILE is 0, so the kinds themselves select what is no regular file and has no size.
        sizes = memoryview(b"".join(rows.sizes for rows in node.rows)).cast("Q")
        return not any(compress(sizes, self._own.manifest.kinds[span.start : span.stop]))

    def assemble(self, into: Manifest) -> None:
        """Appends the source's manifest, from our rows where they are the same and from what came."""
        # A run of nodes that are ours, or differ from ours in the same columns, is taken at once.
        run: list[_Node] = []
        span = range(0)
        for node, level in self._leaves(self._top, self._level + 1):
            own = None if node.own is None else self._own.tiers[level].span(node.own)
            goes_on = bool(run) and own is not None and span.stop == own.start
            full = bool(node.differing) and len(run) >= RUN_NODES
            if not goes_on or full or node.differing != run[0].differing:
                self._take_run(run, span, into)
                run, span = [], range(0) if own is None else own
            if own is None:
                for rows in node.rows:
                    for segment, listing in zip(rows.segments, rows.listings(), strict=True):
                        into.extend(segment.path, listing)
            else:
                run.append(node)
                span = range(span.start, own.stop)
        self._take_run(run, span, into)

    def _take_run(self, nodes: Sequence[_Node], span: range, into: Manifest) -> None:
        """Nodes with the names of our rows in `span`, of which nothing came, or the same columns of each."""
        if nodes and not nodes[0].differing:
            into.take(self._own.manifest, span.start, span.stop)
        elif nodes:
            columns = {
                name: b"".join([getattr(rows, name) for node in nodes for rows in node.rows])
                for name in _AMENDED
            }
            into.take_amended(self._own.manifest, span.start, span.stop, columns)

    def _leaves(self, node: _Node, level: int) -> Iterator[tuple[_Node, int]]:
        """The nodes without children in order, each with its tier. Recursion: as deep as there are tiers."""
        if node.children is None:
            yield node, level
        else:
            for child in node.children:
                yield from self._leaves(child, level - 1)

    def _children(
        self, parent: _Node, level: int, first: int, places: range, columns: dict[Group, bytes]
    ) -> list[_Node]:
        tiers = self._own.tiers
        own = tiers[level] if level < len(tiers) else None
        if parent.own is None or own is None:
            return [self._found(own, level, first + i, place, columns) for i, place in enumerate(places)]
        # The names below match as a whole, and boundaries depend on names alone: children pair up.
        held = tiers[level + 1].children(parent.own)
        if len(held) != len(places):
            self._collide()
            return []
        ours = {
            group: own.references(group, self._key, held) for group in COMPARED_GROUPS if group in columns
        }
        nodes = [_Node(first + i, mine, Group(0)) for i, mine in enumerate(held)]
        for group, references in ours.items():
            width, at = group.width, places.start * group.width
            theirs = columns[group][at : at + len(references)]
            if theirs != references:
                for i, node in enumerate(nodes):
                    if theirs[i * width : (i + 1) * width] != references[i * width : (i + 1) * width]:
                        node.differing |= group
        return nodes

    def _found(
        self, own: Tier | None, level: int, number: int, place: int, columns: dict[Group, bytes]
    ) -> _Node:
        group = Group.NAMES if Group.NAMES in columns else Group.WHOLE
        width = group.width
        mine = self._map(level, group).get(columns[group][place * width : (place + 1) * width])
        if own is None or mine is None:
            return _Node(number, None, ALL)
        return _Node(number, mine, self._difference(own, mine, place, columns))

    def _difference(self, own: Tier, mine: int, place: int, columns: dict[Group, bytes]) -> Group:
        difference = Group(0)
        for group in COMPARED_GROUPS:
            if group in columns:
                theirs = columns[group][place * group.width : (place + 1) * group.width]
                if theirs != own.references(group, self._key, range(mine, mine + 1)):
                    difference |= group
        return difference

    def _map(self, level: int, group: Group) -> dict[bytes, int]:
        """Our nodes of a tier by the reference to their names, or to all they have."""
        if (level, group) not in self._maps:
            width = group.width
            places: dict[bytes, int] = {}
            if level < len(self._own.tiers):
                tier = self._own.tiers[level]
                column = tier.references(group, self._key, range(len(tier)))
                places = {column[i * width : (i + 1) * width]: i for i in range(len(tier))}
            self._maps[level, group] = places
        return self._maps[level, group]

    def _descend(self, level: int, parents: Sequence[_Node]) -> None:
        """Requests for what the children in tier `level` still leave open."""
        if self.collided:
            return
        open_: dict[Group, list[_Node]] = {}
        for parent in parents:
            for child in parent.children or ():
                if child.differing:
                    open_.setdefault(child.differing, []).append(child)
        for groups, nodes in open_.items():
            for start in range(0, len(nodes), TIER_NODES):
                batch = nodes[start : start + TIER_NODES]
                numbers = tuple(node.number for node in batch)
                self._ask(Ask(level == 0, max(level - 1, 0), numbers, groups), batch)

    def _collide(self) -> None:
        """What is on its way is still awaited, what was not sent yet is not asked any more."""
        self.collided = True
        for _ in self._asks:
            self._waiting.pop()
        self._asks = []

    def _ask(self, ask: Ask, nodes: Sequence[_Node]) -> None:
        self._asks.append(ask)
        self._waiting.append((ask, deque(nodes)))

    def _oldest(self, *, rows: bool) -> tuple[Ask, deque[_Node]]:
        if not self._waiting or self._waiting[0][0].rows != rows:
            raise ProtocolError("a manifest answer that was not asked for")
        return self._waiting[0]
