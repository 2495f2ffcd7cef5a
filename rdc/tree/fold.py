"""A manifest folded into a tree of nodes, so that two of them are compared along what differs only.

Rows are grouped by winnowing over ranks that are hashes of their paths alone, about 16 to a node, nodes again
by the first bytes of their names digest: changed metadata moves no boundary. A node carries one digest for
each column group, so that a tree in which only mtimes changed sends only mtimes.
"""

from __future__ import annotations

from array import array
from enum import IntFlag
from operator import sub

from blake3 import blake3

from rdc.kernel import Winnower, name_ranks, node_columns, node_names, short_references
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.model.kept import Kept
    from rdc.tree.manifest import Manifest

__all__ = ["GROUPS", "Fold", "Group", "Tier"]

DIGEST_BYTES = 32

NODES_AT_ONCE = 4096
"""Nodes whose rows are gathered to be hashed, some 60 bytes a row: 4 MB beside any manifest."""

NODE_KEY = blake3(b"rdc 1 manifest node").digest()


class Group(IntFlag):
    """Columns that are compared, and travel, together."""

    NAMES = 1
    """Paths, kinds, link targets."""
    ATTRIBUTES = 2
    """Modes, sizes; owners where they are kept."""
    MTIMES = 4
    WHOLE = 8
    """All of them in one: which nodes differ, and not in what."""

    @property
    def width(self) -> int:
        """Bytes of a short reference to this group of a node.

        Names are looked up among all nodes of a level; the others are compared with one candidate only. The
        whole manifest's root is compared in the end, so a collision costs a repetition and no more.
        """
        return _WIDTHS[self]


_WIDTHS = {Group.NAMES: 5, Group.ATTRIBUTES: 3, Group.MTIMES: 3, Group.WHOLE: 4}

GROUPS = (Group.NAMES, Group.ATTRIBUTES, Group.MTIMES)

GROUND_KEYS = {
    Group.NAMES: blake3(b"rdc 1 manifest names").digest(),
    Group.ATTRIBUTES: blake3(b"rdc 1 manifest attributes").digest(),
    Group.MTIMES: blake3(b"rdc 1 manifest mtimes").digest(),
}


@dataclass(frozen=True, slots=True)
class Tier:
    """One level's nodes. Tier 0's children are rows of the manifest, another's are the nodes below."""

    ends: array[int]
    """Typecode 'Q': number after each node's last child."""
    rows: array[int]
    """Typecode 'Q': number after each node's last row."""
    digests: dict[Group, bytes]
    """32 bytes a node for each group."""

    def __len__(self) -> int:
        return len(self.ends)

    def children(self, node: int) -> range:
        return range(self.ends[node - 1] if node else 0, self.ends[node])

    def span(self, node: int) -> range:
        """Rows of the manifest below a node."""
        return range(self.rows[node - 1] if node else 0, self.rows[node])

    def references(self, group: Group, key: bytes, nodes: range) -> bytes:
        """Short keyed references to one group of these nodes, `group.width` bytes each."""
        digests = self._whole(nodes) if group is Group.WHOLE else self._digests(group, nodes)
        return short_references(key, digests, DIGEST_BYTES, group.width)

    def _digests(self, group: Group, nodes: range) -> memoryview:
        return memoryview(self.digests[group])[nodes.start * DIGEST_BYTES : nodes.stop * DIGEST_BYTES]

    def _whole(self, nodes: range) -> bytes:
        return b"".join(
            blake3(b"".join(self._digests(group, range(node, node + 1)) for group in GROUPS)).digest()
            for node in nodes
        )


class Fold:
    """The tiers over a manifest, from rows upwards, until one has at most 26 nodes; none for no rows.

    Made when they are first asked for: most manifests equal their counterpart and are never folded.
    """

    def __init__(self, manifest: Manifest, kept: Kept) -> None:
        self.manifest = manifest
        self._kept = kept
        self._tiers: list[Tier] | None = None

    @property
    def tiers(self) -> list[Tier]:
        """Tier 0 first."""
        return self.prepare()

    def prepare(self) -> list[Tier]:
        """Folds now, unless that was done."""
        if self._tiers is None:
            self._tiers = tiers = []
            if len(self.manifest):
                tiers.append(self._ground())
                while len(tiers[-1]) > NODE_RECORDS_MAX:
                    tiers.append(_above(tiers[-1]))
        return self._tiers

    def _ground(self) -> Tier:
        # Not loaded where manifests are equal, or come whole.
        from rdc.kernel.naming import name_parts

        manifest = self.manifest
        winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
        ends: list[int] = []
        for number, path in enumerate(manifest.directories):
            ends += winnower.feed(name_ranks(blake3(path).digest(16), manifest.names(number)))
        ends += winnower.finish()
        bounds = array("Q", ends)
        digests = {group: bytearray() for group in GROUPS}
        fixed = tuple(self._columns())
        first, place = 0, (0, 0, 0)
        for at in range(0, len(bounds), NODES_AT_ONCE):
            some = bounds[at : at + NODES_AT_ONCE]
            names, sizes, place = node_names(
                manifest.text, manifest.texts, manifest.firsts, manifest.kinds, manifest.targets, some, place
            )
            digests[Group.NAMES] += name_parts(names, array("Q", sizes), GROUND_KEYS[Group.NAMES])
            for group, columns in fixed:
                width = sum([wide for _, wide in columns])
                lengths = array("Q", [width * rows for rows in map(sub, some, (first, *some))])
                digests[group] += name_parts(node_columns(some, first, columns), lengths, GROUND_KEYS[group])
            first = some[-1]
        return Tier(bounds, bounds, {group: bytes(column) for group, column in digests.items()})

    def _columns(self) -> Iterator[tuple[Group, tuple[tuple[bytes | bytearray, int], ...]]]:
        """What the other digests are over: columns and their widths in bytes."""
        manifest, kept = self.manifest, self._kept
        modes = ((manifest.modes, 2),) if kept.modes else ()
        owners = ((manifest.uids, 4), (manifest.gids, 4)) if kept.owner else ()
        yield Group.ATTRIBUTES, (*modes, (manifest.sizes, 8), *owners)
        yield Group.MTIMES, ((kept.mtimes(manifest.mtimes), 8),)


def _above(below: Tier) -> Tier:
    winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
    ranks = array("Q", below.digests[Group.NAMES])[:: DIGEST_BYTES // 8]
    ranks.byteswap()
    ends = winnower.feed(ranks) + winnower.finish()
    digests = {}
    for group in GROUPS:
        column = below.digests[group]
        digests[group] = b"".join(
            blake3(column[first * DIGEST_BYTES : end * DIGEST_BYTES], key=NODE_KEY).digest()
            for first, end in zip([0, *ends], ends, strict=False)
        )
    return Tier(array("Q", ends), array("Q", (below.rows[end - 1] for end in ends)), digests)
