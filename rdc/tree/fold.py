"""Fold: a manifest folded into a tree of nodes, so that two manifests are compared only where they differ.

Rows are grouped by winnowing over hashes of their paths, about 16 to a node. Nodes are grouped by the first
bytes of their names digest. So changed metadata moves no boundary. A node has one digest per column group, so
a tree in which only mtimes changed sends only mtimes. MANIFEST.md has the format.
"""

from __future__ import annotations

from array import array
from enum import IntFlag
from operator import sub

from blake3 import blake3

from rdc.kernel import Winnower, name_ranks, node_columns, node_names, short_references
from rdc.lean.records import dataclass
from rdc.limits.wire import NODE_RECORDS_MAX, NODE_RECORDS_MIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.model.preserved import Preserved
    from rdc.tree.manifest import Manifest


DIGEST_BYTES = 32

NODES_AT_ONCE = 4096
"""Nodes whose rows are gathered and hashed together. At about 60 bytes per row they take 4 MB."""

NODE_KEY = blake3(b"rdc 1 manifest node").digest()


class Group(IntFlag):
    """Columns that are compared and sent together."""

    NAMES = 1
    """Paths, kinds and link targets."""
    ATTRIBUTES = 2
    """Modes, sizes, and owners if they are preserved."""
    MTIMES = 4
    WHOLE = 8
    """All groups as one, to find which nodes differ rather than in what."""

    @property
    def width(self) -> int:
        """Bytes of a short reference to this group of a node.

        Names are looked up among all nodes of a tier; other groups are compared with one candidate. The root
        digests are compared in the end, so a collision only costs a repetition.
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
    """The nodes of one level. Children of tier 0 are rows of the manifest; children of other tiers are nodes
    below."""

    ends: array[int]
    """Typecode 'Q': the number after each node's last child."""
    rows: array[int]
    """Typecode 'Q': the row after each node's last row."""
    digests: dict[Group, bytes]
    """32 bytes per node for each group."""

    def __len__(self) -> int:
        return len(self.ends)

    def children(self, node: int) -> range:
        return range(self.ends[node - 1] if node else 0, self.ends[node])

    def span(self, node: int) -> range:
        """Return the rows of the manifest below a node."""
        return range(self.rows[node - 1] if node else 0, self.rows[node])

    def references(self, group: Group, key: bytes, nodes: range) -> bytes:
        """Return short keyed references to one group of `nodes`, `group.width` bytes each."""
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
    """The tiers over a manifest, from rows upwards, until one has at most 26 nodes. A manifest without rows
    has none.

    They are computed on first use: most manifests equal their counterpart and are never folded.
    """

    def __init__(self, manifest: Manifest, preserved: Preserved) -> None:
        """`preserved`: of what both ends preserve, `at_source` or `at_destination`."""
        self.manifest = manifest
        self._preserved = preserved
        self._tiers: list[Tier] | None = None

    @property
    def tiers(self) -> list[Tier]:
        """All tiers, tier 0 first."""
        return self.prepare()

    def prepare(self) -> list[Tier]:
        """Compute the tiers unless that was done, and return them."""
        if self._tiers is None:
            self._tiers = tiers = []
            if len(self.manifest):
                tiers.append(self._ground())
                while len(tiers[-1]) > NODE_RECORDS_MAX:
                    tiers.append(_above(tiers[-1]))
        return self._tiers

    def _ground(self) -> Tier:
        # Imported here: manifests that are equal or sent whole do not need it.
        from rdc.kernel.blake3_many import name_parts

        manifest = self.manifest
        winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
        ends: list[int] = []
        for number, path in enumerate(manifest.directories):
            ends += winnower.feed(name_ranks(blake3(path).digest(16), manifest.names(number)))
        ends += winnower.finish()
        bounds = array("Q", ends)
        digests = {group: bytearray() for group in GROUPS}
        fixed = tuple(self._columns())
        first, position = 0, (0, 0, 0)
        for at in range(0, len(bounds), NODES_AT_ONCE):
            some = bounds[at : at + NODES_AT_ONCE]
            names, sizes, position = node_names(
                manifest.text,
                manifest.texts,
                manifest.firsts,
                manifest.kinds,
                manifest.targets,
                some,
                position,
            )
            digests[Group.NAMES] += name_parts(names, array("Q", sizes), GROUND_KEYS[Group.NAMES])
            for group, columns in fixed:
                width = sum([wide for _, wide in columns])
                lengths = array("Q", [width * rows for rows in map(sub, some, (first, *some))])
                digests[group] += name_parts(node_columns(some, first, columns), lengths, GROUND_KEYS[group])
            first = some[-1]
        return Tier(bounds, bounds, {group: bytes(column) for group, column in digests.items()})

    def _columns(self) -> Iterator[tuple[Group, tuple[tuple[bytes | bytearray, int], ...]]]:
        """Yield the groups besides NAMES, each with its columns and their widths in bytes."""
        manifest, preserved = self.manifest, self._preserved
        modes = preserved.compared_modes(manifest.modes, manifest.kinds)
        uids = ((manifest.uids, 4),) if preserved.owner else ()
        gids = ((manifest.gids, 4),) if preserved.owner and preserved.group else ()
        yield Group.ATTRIBUTES, ((modes, 2), (manifest.sizes, 8), *uids, *gids)
        yield Group.MTIMES, ((preserved.mtimes(manifest.mtimes, manifest.kinds), 8),)


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
