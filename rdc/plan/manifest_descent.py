"""The descent over two folded manifests: which entries differ, what to ask for, and the source's manifest
in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rdc.errors import ProtocolError
from rdc.limits import TIER_NODES
from rdc.model.entries import PackedListing
from rdc.tree.fold import GROUPS, Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.protocol.rows import Rows
    from rdc.tree.fold import Fold, Tier
    from rdc.tree.manifest import Manifest

__all__ = ["Ask", "ManifestDescent"]

ALL = Group.NAMES | Group.ATTRIBUTES | Group.MTIMES

FIRST_NODES = 64
"""The descent starts at the finest tier with at most so many nodes: they cost about 900 bytes and save one or
two round trips."""


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
    rows: list[Rows] = field(default_factory=list)


class ManifestDescent:
    """Goes down the source's fold along what our own manifest lacks. Pure: `asks` out, answers in.

    Where names match, only differing column groups are followed; where most of a node's children differ, the
    rows below it are asked for at once.
    """

    def __init__(self, own: Fold, entries: int, key: bytes) -> None:
        self._own = own
        self._entries = entries
        self._key = key
        # About 16 to a node: the finest tier that should have few enough. The source starts at its topmost
        # where it has none so high.
        start = 0
        while entries >> 4 * (start + 1) > FIRST_NODES:
            start += 1
        self._level = start
        self._top = _Node(0, None, ALL)
        # In the order asked: what each outstanding request is about.
        self._waiting: list[tuple[Ask, list[_Node]]] = []
        self._asks: list[Ask] = []
        self._maps: dict[int, dict[bytes, int]] = {}
        self._row_node: list[_Node] = []
        self._ask(Ask(False, start, (), ALL), [self._top])

    def asks(self) -> list[Ask]:
        """Requests to be sent now, in this order."""
        asks, self._asks = self._asks, []
        return asks

    @property
    def complete(self) -> bool:
        return not self._waiting

    def take_tier(self, level: int, firsts: Sequence[int], counts: Sequence[int], references: bytes) -> None:
        """The answer to the oldest request, which was for nodes."""
        ask, parents = self._oldest(rows=False)
        if not ask.nodes:
            self._level = level
        groups = [group for group in GROUPS if group & ask.groups]
        total = sum(counts)
        if len(counts) != len(parents) or len(references) != total * sum(group.width for group in groups):
            raise ProtocolError(f"{len(references)} bytes of references for {total} manifest nodes")
        columns, at = {}, 0
        for group in groups:
            columns[group] = references[at : at + total * group.width]
            at += total * group.width
        begin = 0
        for parent, first, count in zip(parents, firsts, counts, strict=True):
            if first + count > self._entries:
                raise ProtocolError(f"manifest node {first + count} over {self._entries} entries")
            parent.children = self._children(parent, level, first, range(begin, begin + count), columns)
            begin += count
        self._descend(level, parents)

    def take_rows(self, rows: Rows, *, last: bool) -> None:
        """The next part of the answer to the oldest request, which was for rows."""
        ask, nodes = self._waiting[0]
        if not self._row_node:
            self._row_node = list(nodes)
        node = self._row_node[0]
        for group, column in (
            (Group.NAMES, rows.kinds),
            (Group.ATTRIBUTES, rows.sizes),
            (Group.MTIMES, rows.mtimes),
        ):
            if bool(column) != bool(group & ask.groups):
                raise ProtocolError("a manifest answer with other columns than were asked for")
        node.rows.append(rows)
        if last:
            del self._row_node[0]
            if node.own is not None:
                held = len(self._own.tiers[ask.level].span(node.own))
                if sum(part.count for part in node.rows) != held:
                    raise ProtocolError(f"columns for a node of {held} entries have other lengths")
            if not self._row_node:
                del self._waiting[0]

    def assemble(self, into: Manifest) -> None:
        """Appends the source's manifest, from our rows where they are the same and from what came."""
        held: range | None = None
        for span, node, level in self._leaves(self._top, self._level + 1):
            if span is not None:
                if held is not None and held.stop == span.start:
                    held = range(held.start, span.stop)
                    continue
                self._copy(held, into)
                held = span
                continue
            self._copy(held, into)
            held = None
            self._patch(node, level, into)
        self._copy(held, into)

    def _copy(self, rows: range | None, into: Manifest) -> None:
        if rows is not None:
            for path, part in self._own.manifest.parts(rows.start, rows.stop):
                into.extend(path, part)

    def _patch(self, node: _Node, level: int, into: Manifest) -> None:
        """A node whose rows came: whole, or only some columns over our own."""
        if node.own is None:
            for rows in node.rows:
                for segment, listing in zip(rows.segments, rows.listings(), strict=True):
                    into.extend(segment.path, listing)
            return
        span = self._own.tiers[level].span(node.own)
        columns = {
            name: b"".join(getattr(rows, name) for rows in node.rows)
            for name in ("modes", "sizes", "uids", "gids", "mtimes")
        }
        at = 0
        for path, part in self._own.manifest.parts(span.start, span.stop):
            to = at + part.count

            def pick(name: str, width: int, own: bytes, at: int = at, to: int = to) -> bytes:
                return columns[name][width * at : width * to] or own

            listing = PackedListing(
                part.count,
                part.names,
                part.kinds,
                pick("modes", 2, part.modes),
                pick("sizes", 8, part.sizes),
                pick("mtimes", 8, part.mtimes),
                pick("uids", 4, part.uids),
                pick("gids", 4, part.gids),
                part.targets,
            )
            into.extend(path, listing)
            at = to

    def _leaves(self, node: _Node, level: int) -> Iterator[tuple[range | None, _Node, int]]:
        """The settled nodes in order: (our rows, ...) or (None, the node whose rows came, its tier)."""
        if node.children is not None:
            for child in node.children:
                yield from self._leaves(child, level - 1)
        elif node.own is not None and not node.differing:
            yield self._own.tiers[level].span(node.own), node, level
        else:
            yield None, node, level

    def _children(
        self, parent: _Node, level: int, first: int, places: range, columns: dict[Group, bytes]
    ) -> list[_Node]:
        own = self._own.tiers[level] if level < len(self._own.tiers) else None
        if parent.own is None:
            return [self._found(own, level, first + i, place, columns) for i, place in enumerate(places)]
        # The names below match as a whole, and boundaries depend on names alone: children pair up.
        held = self._own.tiers[level + 1].children(parent.own)
        if own is None or len(held) != len(places):
            raise ProtocolError("a manifest node has other children than the one it equals")
        out = []
        for i, (mine, place) in enumerate(zip(held, places, strict=True)):
            out.append(_Node(first + i, mine, self._difference(own, mine, place, columns)))
        return out

    def _found(
        self, own: Tier | None, level: int, number: int, place: int, columns: dict[Group, bytes]
    ) -> _Node:
        width = Group.NAMES.width
        mine = self._map(level).get(columns[Group.NAMES][place * width : (place + 1) * width])
        if own is None or mine is None:
            return _Node(number, None, ALL)
        return _Node(number, mine, self._difference(own, mine, place, columns))

    def _difference(self, own: Tier, mine: int, place: int, columns: dict[Group, bytes]) -> Group:
        difference = Group(0)
        for group in (Group.ATTRIBUTES, Group.MTIMES):
            if group in columns:
                theirs = columns[group][place * group.width : (place + 1) * group.width]
                if theirs != own.references(group, self._key, range(mine, mine + 1)):
                    difference |= group
        return difference

    def _map(self, level: int) -> dict[bytes, int]:
        """Our nodes of a tier by the reference to their names."""
        if level not in self._maps:
            width = Group.NAMES.width
            places: dict[bytes, int] = {}
            if level < len(self._own.tiers):
                tier = self._own.tiers[level]
                column = tier.references(Group.NAMES, self._key, range(len(tier)))
                places = {column[i * width : (i + 1) * width]: i for i in range(len(tier))}
            self._maps[level] = places
        return self._maps[level]

    def _descend(self, level: int, parents: list[_Node]) -> None:
        """Requests for what the children in tier `level` still leave open."""
        open_: dict[tuple[bool, Group], list[_Node]] = {}
        for parent in parents:
            children = parent.children or []
            differing = [child for child in children if child.differing]
            # Where most differ, another level of references would cost more than it settles.
            dense = level == 0 or 2 * len(differing) > len(children) > 1
            for child in differing:
                open_.setdefault((dense, child.differing), []).append(child)
        for (rows, groups), nodes in open_.items():
            for start in range(0, len(nodes), TIER_NODES):
                batch = nodes[start : start + TIER_NODES]
                numbers = tuple(node.number for node in batch)
                self._ask(Ask(rows, level if rows else level - 1, numbers, groups), batch)

    def _ask(self, ask: Ask, nodes: list[_Node]) -> None:
        self._asks.append(ask)
        self._waiting.append((ask, nodes))

    def _oldest(self, *, rows: bool) -> tuple[Ask, list[_Node]]:
        if not self._waiting or self._waiting[0][0].rows != rows:
            raise ProtocolError("a manifest answer that was not asked for")
        return self._waiting.pop(0)
