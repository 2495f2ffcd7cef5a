"""A manifest folded into a tree of nodes, so that two of them are compared along what differs only.

Rows are grouped by winnowing over ranks that are hashes of their paths alone, about 16 to a node, nodes again
by the first bytes of their names digest: changed metadata moves no boundary. A node carries one digest for
each column group, so that a tree in which only mtimes changed sends only mtimes.
"""

from __future__ import annotations

from array import array
from enum import IntFlag

from blake3 import blake3

from rdc.kernel import Winnower, name_ranks, short_references
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN
from rdc.records import dataclass
from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.model.kept import Kept
    from rdc.tree.manifest import Manifest

__all__ = ["GROUPS", "Fold", "Group", "Tier"]

DIGEST_BYTES = 32

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
        manifest = self.manifest
        winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
        ends: list[int] = []
        for number, path in enumerate(manifest.directories):
            ends += winnower.feed(name_ranks(blake3(path).digest(16), manifest.names(number)))
        ends += winnower.finish()
        digests: dict[Group, list[bytes]] = {group: [] for group in GROUPS}
        for group, node in self._columns(ends):
            digests[group].append(blake3(node, key=GROUND_KEYS[group]).digest())
        bounds = array("Q", ends)
        return Tier(bounds, bounds, {group: b"".join(column) for group, column in digests.items()})

    def _columns(self, ends: list[int]) -> Iterator[tuple[Group, bytes | bytearray]]:
        """What each node's digests are over, node by node."""
        manifest = self.manifest
        text_ends, link_ends = manifest.ends_of(ends)
        mtimes = self._kept.mtimes(manifest.mtimes)
        first = text = link = 0
        for end, text_end, link_end in zip(ends, text_ends, link_ends, strict=True):
            directory = manifest.directory_of(first)
            if manifest.firsts[directory] == first:
                text = manifest.texts[directory]
            head = (end - first).to_bytes(4, "little") + b"\0" + manifest.directories[directory] + b"\0"
            # Between two directories' names the text column has the path of the second.
            names = (head, manifest.text[text:text_end], b"\0", manifest.kinds[first:end])
            yield Group.NAMES, b"".join((*names, manifest.targets[link:link_end]))
            attributes = manifest.sizes[8 * first : 8 * end]
            if self._kept.modes:
                attributes = manifest.modes[2 * first : 2 * end] + attributes
            if self._kept.owner:
                attributes += manifest.uids[4 * first : 4 * end] + manifest.gids[4 * first : 4 * end]
            yield Group.ATTRIBUTES, attributes
            yield Group.MTIMES, mtimes[8 * first : 8 * end]
            first, text, link = end, text_end, link_end


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
