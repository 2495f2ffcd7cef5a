"""The inputs of the digests of nodes and roots, for many streams at once, in plain Python: the definition for
root_messages.c and node_messages.c."""

from __future__ import annotations

from array import array
from itertools import pairwise

from rdc.kernel.cut.reference import Winnower

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["node_messages", "root_messages"]

DIGEST_BYTES = 32
LEVEL_MOST = 255

_Run = tuple[bytes, int, int]
"""Digest and length of one item, and the number of neighbours that are equal to it."""


def root_messages(
    head: Buffer, sizes: Buffer, counts: Buffer, lengths: Buffer, digests: Buffer, most: int, level: int, /
) -> tuple[bytes, bytes]:
    """Returns the messages of streams one after another, and a column of their lengths in bytes (native 64
    bits).

    Columns per stream: sizes (native 64 bits), number of items on `level` (native 32 bits). Columns per item:
    lengths (native 64 bits), digests of 32 bytes. A stream has a message if its items form at most `most`
    runs of equal digests; then they are one node. The message is that of signature/FORMAT.md: `head`, the
    size, the level, and per run the digest, the length of one item and the number of items, column after
    column. Other streams get b"". ValueError if columns do not fit together.
    """
    runs = _runs("root messages", counts, lengths, digests)
    try:
        of_streams = array("Q", bytes(sizes))
    except ValueError:
        of_streams = array("Q")
    if most < 0 or not 0 <= level <= LEVEL_MOST or len(of_streams) != len(runs):
        raise _misfit("root messages")
    messages = [
        b"".join((bytes(head), size.to_bytes(8, "little"), bytes([level]), _columns(own)))
        if len(own) <= most
        else b""
        for size, own in zip(of_streams, runs, strict=True)
    ]
    return b"".join(messages), array("Q", map(len, messages)).tobytes()


def node_messages(
    level: int, counts: Buffer, lengths: Buffer, digests: Buffer, min_records: int, max_records: int, /
) -> tuple[bytes, bytes, bytes, bytes]:
    """Returns the messages of the nodes of streams one after another, a column of their lengths in bytes, a
    column of the bytes that each node covers (both native 64 bits), and the number of nodes of each stream
    (native 32 bits).

    Columns as in `root_messages`. Runs of equal digests are grouped by winnowing with `min_records` and
    `max_records`. ValueError if columns do not fit together.
    """
    streams = _runs("node messages", counts, lengths, digests)
    if not 0 <= level <= LEVEL_MOST or not 1 <= min_records < max_records:
        raise _misfit("node messages")
    messages, covered, nodes = [], array("Q"), array("I")
    for runs in streams:
        winnower = Winnower(min_records, max_records)
        # The first 8 bytes of a digest, big-endian; the winnower takes little-endian ranks.
        ends = winnower.feed(b"".join([digest[7::-1] for digest, _, _ in runs])) + winnower.finish()
        for begin, end in pairwise([0, *ends]):
            messages.append(bytes([level]) + _columns(runs[begin:end]))
            covered.append(sum(length * count for _, length, count in runs[begin:end]))
        nodes.append(len(ends))
    sizes = array("Q", map(len, messages))
    return b"".join(messages), sizes.tobytes(), covered.tobytes(), nodes.tobytes()


def _columns(runs: list[_Run]) -> bytes:
    digests = [digest for digest, _, _ in runs]
    lengths = [length.to_bytes(8, "little") for _, length, _ in runs]
    counts = [count.to_bytes(8, "little") for _, _, count in runs]
    return b"".join((*digests, *lengths, *counts))


def _runs(name: str, counts: Buffer, lengths: Buffer, digests: Buffer) -> list[list[_Run]]:
    """The runs of each stream. Raises ValueError if columns do not fit together."""
    try:
        of_items, items = array("Q", bytes(lengths)), array("I", bytes(counts))
    except ValueError:
        raise _misfit(name) from None
    names = bytes(digests)
    if sum(items) != len(of_items) or len(names) != len(of_items) * DIGEST_BYTES:
        raise _misfit(name)
    streams, at = [], 0
    for count in items:
        runs: list[_Run] = []
        for row in range(at, at + count):
            digest = names[DIGEST_BYTES * row : DIGEST_BYTES * (row + 1)]
            if runs and runs[-1][0] == digest:
                runs[-1] = (digest, runs[-1][1], runs[-1][2] + 1)
            else:
                runs.append((digest, of_items[row], 1))
        streams.append(runs)
        at += count
    return streams


def _misfit(name: str) -> ValueError:
    return ValueError(f"{name}: columns of streams and of their items that fit together")
