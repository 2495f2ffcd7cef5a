"""The descent over two folded manifests: finds differing entries, and rebuilds the source's manifest."""

from __future__ import annotations

from collections import deque
from itertools import accumulate, compress

from rdc.errors import ProtocolError
from rdc.lean.records import Record
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN, TIER_NODES
from rdc.tree.manifest import GROUPS, Fold, Group, Manifest, Tier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.protocol.messages.field_types import Rows


ALL = Group.NAMES | Group.ATTRIBUTES | Group.MTIMES

COMPARED_GROUPS = (Group.ATTRIBUTES, Group.MTIMES)
"""The column groups compared for nodes with the same names."""

_AMENDED = ("modes", "sizes", "mtimes", "uids", "gids")
"""Columns that may arrive without names, for entries that the destination has."""

RUN_NODES = 4096
"""Nodes whose arrived columns are joined at a time: half a megabyte of mtimes."""

FIRST_NODES = 64
"""The descent starts at the finest tier with at most this many nodes. They cost about 700 bytes and save one
or two round trips."""

FIRST_TIER = 2
"""Above a quarter of a million entries the first tier may have more nodes: 11 bytes per 4,096 entries. Four
exchanges then always suffice."""

FEW_NODES = 16
"""Up to this many nodes of the lowest tier, all columns of their entries are requested at once. That costs
about 100 bytes per node and saves the round trip that would tell which columns differ, and cost 11 bytes for
each node of the tier."""

FIRST_NODES_MAX = 16_384
"""Upper limit for nodes of the first tier: 180 KB, in one answer."""


def first_tier(entries: int) -> int:
    """Return the tier at which a descent over this many entries starts. A node has about 16 children."""
    level = 0
    while entries >> 4 * (level + 1) > (FIRST_NODES if level < FIRST_TIER else FIRST_NODES_MAX):
        level += 1
    return level


class Ask(Record):
    """One request for nodes or rows.

    Without `rows`: the children in tier `level` of `nodes` of the tier above, or the whole tier if `nodes` is
    empty. With `rows`: the entries below `nodes` of tier `level`.
    """

    rows: bool
    level: int
    nodes: tuple[int, ...]
    groups: Group


class _Node(Record, frozen=False):
    """A node of the source's fold: equal to one of ours, or to be expanded, or to be replaced by rows."""

    number: int
    own: int | None
    """Our node of the same tier with the same names."""
    differing: Group
    children: list[_Node] | None = None
    rows: list[Rows] | None = None
    """Arrived parts in order. It is a list because the peer chooses their number; a tuple would be copied for
    each part."""


class ManifestDescent:
    """Descends the source's fold where it differs from our own manifest. Pure: `questions` out, answers in.

    Where names match, only differing column groups are followed. The descent always goes down to the lowest
    tier. References on the way cost 3 bytes per 16 entries, or 11 bytes where names differ. Asking for
    entries earlier would save these bytes where all entries differ, but cost several times as much where some
    do.

    A hostile source cannot make the descent ask for more than its announced size. Each tier has at most as
    many nodes as `entries` can have, and at most `entries` entries are accepted.
    """

    def __init__(self, own: Fold, entries: int, key: bytes, *, owner: bool) -> None:
        """`entries`: number of entries in the source's manifest, at least 1. `key`: the session's key for
        short references."""
        self._own = own
        self._entries = entries
        self._key = key
        self._owner = owner
        self._level = first_tier(entries)
        self._top = _Node(0, None, ALL)
        # Outstanding requests in the order asked, each with the nodes that still lack their answer.
        self._waiting: deque[tuple[Ask, deque[_Node]]] = deque()
        self._questions: list[Ask] = []
        self._maps: dict[tuple[int, Group], dict[bytes, int]] = {}
        self._nodes_left: dict[int, int] = {}
        self._rows_left = entries
        self.collided = False
        """True if two nodes have the same short reference. `assemble` would be wrong then, and nothing more
        is asked for."""
        self._ask(Ask(False, self._level, (), ALL), [self._top])

    def prepare(self) -> None:
        """Fold our manifest, if not done yet. Useful work while the first answer is on its way."""
        self._own.prepare()

    def questions(self) -> list[Ask]:
        """Return the requests to send now, in this order."""
        questions, self._questions = self._questions, []
        return questions

    @property
    def complete(self) -> bool:
        """True if every request was answered and none is left to send."""
        return not self._waiting

    @property
    def awaits_rows(self) -> bool:
        """True if only rows are outstanding, so the descent asks for nothing more."""
        return bool(self._waiting) and all(ask.rows for ask, _ in self._waiting)

    def take_top(self, level: int, references: bytes) -> None:
        """Take the finest tier of few nodes, which the source sent unasked. It replaces the request for a
        first tier."""
        total = len(references) // Group.WHOLE.width
        if total > self._most(level):
            raise ProtocolError(f"{total} manifest nodes in tier {level} of {self._entries} entries")
        children = self._children(self._top, level, 0, range(total), {Group.WHOLE: references})
        self._questions = []
        self._waiting.clear()
        if level == 0 and sum(bool(child.differing) for child in children) > FEW_NODES:
            # Entries come next. First find out in which columns they differ: that saves more than it costs.
            self._ask(Ask(False, 0, (), ALL), [self._top])
            return
        self._level, self._top.children = level, children
        self._descend(level, [self._top])

    def take_tier(self, level: int, firsts: Sequence[int], counts: Sequence[int], references: bytes) -> None:
        """Take the answer to the oldest request, which asked for nodes. Raises ProtocolError if the answer
        does not fit it."""
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
        """Check that the nodes are in order and no more than a fold can have."""
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
        """Return how many nodes a tier can have. All nodes but the last of each tier have more than
        NODE_RECORDS_MIN children."""
        most = self._entries
        for _ in range(level + 1):
            most = (most - 1) // (NODE_RECORDS_MIN + 1) + 1
        return most

    def take_rows(self, rows: Rows, counts: Sequence[int], *, last: bool) -> None:
        """Take the next part of the answer to the oldest request, which asked for rows.

        `counts`: rows of each of the next nodes. Unless `last`, the last of these nodes continues in the next
        part.
        """
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
                if node.rows is None:
                    node.rows = []
                node.rows.append(part)
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
        """Return whether the columns that arrived for one of our nodes can belong to its entries."""
        if node.own is None or self.collided:
            return True
        span = self._own.tiers[level].span(node.own)
        parts = node.rows or ()
        if sum(rows.count for rows in parts) != len(span):
            return False
        # Kind.FILE is 0, so the kinds select the entries that are no regular files. Their size must be 0.
        sizes = memoryview(b"".join(rows.sizes for rows in parts)).cast("Q")
        return not any(compress(sizes, self._own.manifest.kinds[span.start : span.stop]))

    def differing(self) -> list[range]:
        """Return our rows that may differ from the source's: those in no node that was found equal."""
        equal = sorted(
            (span.start, span.stop)
            for node, level in self._leaves(self._top, self._level + 1)
            if node.own is not None and not node.differing
            for span in (self._own.tiers[level].span(node.own),)
        )
        found, at = [], 0
        for start, stop in (*equal, (len(self._own.manifest), 0)):
            if at < start:
                found.append(range(at, start))
            at = max(at, stop)
        return found

    def assemble(self, into: Manifest) -> None:
        """Append the source's manifest to `into`: our rows where they are equal, arrived rows elsewhere."""
        # Consecutive nodes that are ours, or differ from ours in the same columns, are taken together.
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
                for rows in node.rows or ():
                    for segment, listing in zip(rows.segments, rows.listings(), strict=True):
                        into.extend(segment.path, listing)
            else:
                run.append(node)
                span = range(span.start, own.stop)
        self._take_run(run, span, into)

    def _take_run(self, nodes: Sequence[_Node], span: range, into: Manifest) -> None:
        """Append nodes with the names of our rows in `span`, with nothing or the same arrived columns for
        each."""
        if nodes and not nodes[0].differing:
            into.take(self._own.manifest, span.start, span.stop)
        elif nodes:
            columns = {
                name: b"".join([getattr(rows, name) for node in nodes for rows in node.rows or ()])
                for name in _AMENDED
            }
            into.take_amended(self._own.manifest, span.start, span.stop, columns)

    def _leaves(self, node: _Node, level: int) -> Iterator[tuple[_Node, int]]:
        """Yield the nodes without children in order, each with its tier. The recursion is as deep as there
        are tiers."""
        if node.children is None:
            yield node, level
        else:
            for child in node.children:
                yield from self._leaves(child, level - 1)

    def _children(
        self, parent: _Node, level: int, first: int, rows: range, columns: dict[Group, bytes]
    ) -> list[_Node]:
        tiers = self._own.tiers
        own = tiers[level] if level < len(tiers) else None
        if parent.own is None or own is None:
            return [self._found(own, level, first + i, row, columns) for i, row in enumerate(rows)]
        # All names below match, and boundaries depend on names alone. So the children pair up.
        paired = tiers[level + 1].children(parent.own)
        if len(paired) != len(rows):
            self._collide()
            return []
        ours = {
            group: own.references(group, self._key, paired) for group in COMPARED_GROUPS if group in columns
        }
        nodes = [_Node(first + i, mine, Group(0)) for i, mine in enumerate(paired)]
        for group, references in ours.items():
            width, at = group.width, rows.start * group.width
            announced = columns[group][at : at + len(references)]
            if announced != references:
                for i, node in enumerate(nodes):
                    if announced[i * width : (i + 1) * width] != references[i * width : (i + 1) * width]:
                        node.differing |= group
        return nodes

    def _found(
        self, own: Tier | None, level: int, number: int, row: int, columns: dict[Group, bytes]
    ) -> _Node:
        group = Group.NAMES if Group.NAMES in columns else Group.WHOLE
        width = group.width
        mine = self._map(level, group).get(columns[group][row * width : (row + 1) * width])
        if own is None or mine is None:
            return _Node(number, None, ALL)
        return _Node(number, mine, self._difference(own, mine, row, columns))

    def _difference(self, own: Tier, mine: int, row: int, columns: dict[Group, bytes]) -> Group:
        difference = Group(0)
        for group in COMPARED_GROUPS:
            if group in columns:
                announced = columns[group][row * group.width : (row + 1) * group.width]
                if announced != own.references(group, self._key, range(mine, mine + 1)):
                    difference |= group
        return difference

    def _map(self, level: int, group: Group) -> dict[bytes, int]:
        """Return our nodes of a tier by reference, to their names or to everything."""
        if (level, group) not in self._maps:
            width = group.width
            rows: dict[bytes, int] = {}
            if level < len(self._own.tiers):
                tier = self._own.tiers[level]
                column = tier.references(group, self._key, range(len(tier)))
                rows = {column[i * width : (i + 1) * width]: i for i in range(len(tier))}
            self._maps[level, group] = rows
        return self._maps[level, group]

    def _descend(self, level: int, parents: Sequence[_Node]) -> None:
        """Request what the children in tier `level` leave open."""
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
        """Stop asking. Outstanding answers are still awaited; requests not sent yet are dropped."""
        self.collided = True
        for _ in self._questions:
            self._waiting.pop()
        self._questions = []

    def _ask(self, ask: Ask, nodes: Sequence[_Node]) -> None:
        self._questions.append(ask)
        self._waiting.append((ask, deque(nodes)))

    def _oldest(self, *, rows: bool) -> tuple[Ask, deque[_Node]]:
        if not self._waiting or self._waiting[0][0].rows != rows:
            raise ProtocolError("a manifest answer that was not asked for")
        return self._waiting[0]
