"""Rings of pairs, which never settle: a deletion and the entry that comes back chase each other around.

Stars and chains of pairs settle. So the first meeting of two directories is refused if other pairs connect
them already. An edge is two directories that form a pair. Each root knows its own edges from its pairs, and
keeps those that others told when they met, in the file `edges` (STATE.md). A longer ring is found if one of
its last two directories has heard of the rest of it.
"""

from __future__ import annotations

import os

from rdc.errors import UsageError, printable
from rdc.files.facts.file_systems import path_of
from rdc.limits import UNITE_EDGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from rdc.files.root.root import Root

NODE_BYTES = 8
EDGE_BYTES = 2 * NODE_BYTES


def location_here(path: bytes) -> bytes:
    """Return the location of a path of this machine, which is absolute and without symlinks: it is the same
    whichever side dials, and stays when a directory gets another id."""
    return os.fsencode(f"{os.uname().nodename}:") + path


def location_of(root: Root) -> bytes:
    """Return the location of a root that another machine asked for. A module is what it is called: nobody
    learns its path."""
    path = path_of(root.fileno())
    return location_here(path) if os.path.realpath(root.label) == path else root.label


def location_in(told: bytes) -> bytes:
    """Return the location that the other side told; b"" if it is the name of a module, which others have."""
    return told if b":/" in told else b""


def same_place(one: bytes, other: bytes) -> bool:
    """Return whether two places are one, however they end: `nas:work` is `nas:work/`."""
    return one.rstrip(b"/") == other.rstrip(b"/")


def node_of_root(root: bytes) -> bytes:
    """Return the name of a directory in edges: the start of its id."""
    return root[:NODE_BYTES]


def edge_of(one: bytes, other: bytes) -> bytes:
    """Return the edge between two directories, by their ids. It has no direction."""
    return b"".join(sorted((node_of_root(one), node_of_root(other))))


def is_at(edge: bytes, root: bytes) -> bool:
    """Return whether an edge begins or ends at a directory."""
    return node_of_root(root) in (edge[:NODE_BYTES], edge[NODE_BYTES:])


def unpack_edges(data: bytes) -> frozenset[bytes]:
    """Read edges, one after the other. Raises ValueError if they are none that `pack_edges` writes."""
    found = [data[at : at + EDGE_BYTES] for at in range(0, len(data), EDGE_BYTES)]
    ends = [(edge[:NODE_BYTES], edge[NODE_BYTES:]) for edge in found]
    if len(data) % EDGE_BYTES or len(found) > UNITE_EDGES or any(one >= other for one, other in ends):
        raise ValueError(f"expected at most {UNITE_EDGES} edges of {EDGE_BYTES} bytes")
    return frozenset(found)


def pack_edges(edges: Iterable[bytes]) -> bytes:
    """Return at most UNITE_EDGES edges as bytes."""
    return b"".join(sorted(edges)[:UNITE_EDGES])


def merged_edges(one: bytes, ones: Set[bytes], other: bytes, others: Set[bytes]) -> frozenset[bytes]:
    """Return the edges that two directories know. Each knows its own edges best: one that only others still
    list no longer exists."""
    return frozenset(
        edge
        for edge in ones | others
        if (edge in ones or not is_at(edge, one)) and (edge in others or not is_at(edge, other))
    )


def closes_ring(one: bytes, other: bytes, edges: Iterable[bytes]) -> bool:
    """Return whether edges connect two directories without the edge between them."""
    own = edge_of(one, other)
    left = {edge for edge in edges if edge != own}
    reached, todo = {node_of_root(one)}, [node_of_root(one)]
    while todo:
        node = todo.pop()
        for edge in left:
            ends = edge[:NODE_BYTES], edge[NODE_BYTES:]
            if node in ends:
                far = ends[ends[0] == node]
                if far not in reached:
                    reached.add(far)
                    todo.append(far)
    return node_of_root(other) in reached


def check_ring(shown: Sequence[bytes], one: bytes, other: bytes, edges: Iterable[bytes]) -> None:
    """Raise UsageError if the pair of two directories would close a ring. `shown`: both, as the user wrote
    them."""
    if closes_ring(one, other, edges):
        raise UsageError(
            f"{printable(shown[0])} and {printable(shown[1])} are connected already, by other pairs: expected"
            " no ring of pairs, in which deleted entries come back without end; nothing was done: unite along"
            " the other pairs, end one of them with rdc unite --forget, or use --ring"
        )
