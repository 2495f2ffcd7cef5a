"""Pictures of how rdc works, drawn from real data: the licence of this repository, and an edit of it."""

from __future__ import annotations

import os
import tempfile
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import rdc
from scripts.manual.notes import TOP
from scripts.manual.svg import GREY, INK, ORANGE, PALE, Drawing

PARAMS = rdc.ChunkParams.for_mean(400)
"""Small chunks, so that a file of 11 KB has a picture worth of them."""

INSERTED = b"Whoever reads this sentence has found the edit that all three pictures show.\n"
PLACE = 4_000
"""The byte before which the sentence stands in the new version."""

LEFT, WIDTH = 90, 820


class Chunk(NamedTuple):
    start: int
    length: int
    digest: bytes


def versions() -> tuple[bytes, bytes]:
    """Return the old version and the new one."""
    old = (TOP / "LICENSE").read_bytes()
    return old, old[:PLACE] + INSERTED + old[PLACE:]


def chunks_of(data: bytes) -> list[Chunk]:
    """Return the chunks that rdc makes of a file."""
    level = rdc.sign(data, PARAMS).levels[0]
    lengths = [
        length for length, count in zip(level.lengths, level.counts, strict=True) for _ in range(count)
    ]
    records = [record for record, count in enumerate(level.counts) for _ in range(count)]
    starts = accumulate(lengths, initial=0)
    return [
        Chunk(start, length, level.digest(record))
        for start, length, record in zip(starts, lengths, records, strict=False)
    ]


def blocks_of(data: bytes, size: int) -> list[Chunk]:
    """Return the same file in blocks at fixed offsets, named by their bytes."""
    return [
        Chunk(start, len(data[start : start + size]), data[start : start + size])
        for start in range(0, len(data), size)
    ]


def _row(drawing: Drawing, y: float, label: str, chunks: list[Chunk], known: set[bytes], total: int) -> None:
    drawing.text(LEFT - 8, y + 17, label, anchor="end")
    for chunk in chunks:
        x, width = LEFT + WIDTH * chunk.start / total, WIDTH * chunk.length / total
        drawing.box(x, y, max(1.0, width - 1.2), 24, PALE if chunk.digest in known else ORANGE)


def cuts() -> str:
    """Both versions, cut at fixed offsets and cut where the content says so."""
    old, new = versions()
    total = len(new)
    drawing = Drawing(930, 322, "Chunks of two versions of a file")
    drawing.text(
        14, 24, f"A sentence of {len(INSERTED)} bytes goes into a file of {len(old):,} bytes", size=15
    )
    mark = LEFT + WIDTH * PLACE / total
    y = 56.0
    for title, make in (
        ("Blocks at fixed offsets", lambda data: blocks_of(data, round(len(old) / len(chunks_of(old))))),
        ("Chunks cut where the content says so", chunks_of),
    ):
        before, after = make(old), make(new)
        known = {chunk.digest for chunk in before}
        missing = sum(chunk.length for chunk in after if chunk.digest not in known)
        drawing.text(LEFT, y, f"{title}: {missing:,} bytes of the new version are unknown", size=13)
        _row(drawing, y + 10, "old", before, known, total)
        _row(drawing, y + 44, "new", after, known, total)
        drawing.line(mark, y + 4, mark, y + 72, INK)
        y += 118
    drawing.box(LEFT, y + 2, 12, 12, PALE)
    drawing.text(LEFT + 18, y + 12, "in the old version")
    drawing.box(LEFT + 170, y + 2, 12, 12, ORANGE)
    drawing.text(LEFT + 188, y + 12, "not in the old version")
    drawing.line(LEFT + 345, y, LEFT + 345, y + 16, INK)
    drawing.text(LEFT + 352, y + 12, "where the sentence goes in")
    return drawing.markup()


class Node(NamedTuple):
    x: float
    """The middle of the bytes that it covers, 0 to 1."""
    digest: bytes
    parent: int
    """Its number in the level above; -1 at the top."""


def nodes_of(data: bytes) -> list[list[Node]]:
    """Return the levels of a signature tree from the top. Runs of equal items are one node."""
    tree = rdc.sign(data, PARAMS)
    levels: list[list[Node]] = []
    parents: dict[int, int] = {}
    for number in range(len(tree.levels) - 1, -1, -1):
        level = tree.levels[number]
        lengths = [length * count for length, count in zip(level.lengths, level.counts, strict=True)]
        starts = list(accumulate(lengths, initial=0))
        levels.append(
            [
                Node((starts[i] + length / 2) / len(data), level.digest(i), parents.get(i, -1))
                for i, length in enumerate(lengths)
            ]
        )
        parents = {}
        if number:
            for record in range(level.records):
                parents.update(dict.fromkeys(level.children(record), record))
    return levels


def tree() -> str:
    """Return the signature tree of the new version. What the old one has is pale."""
    old, new = versions()
    known = {node.digest for level in nodes_of(old) for node in level}
    levels = nodes_of(new)
    drawing = Drawing(930, 86 + 74 * len(levels), "The signature tree of the new version")
    drawing.text(14, 24, "The tree of digests over the chunks of the new version", size=15)
    drawing.text(
        14,
        44,
        "a node is the digest of the records below it; orange: the old version has no such node",
        size=11,
        fill="#666666",
    )
    middle = LEFT + WIDTH / 2
    drawing.box(middle - 22, 58, 44, 20, ORANGE, round_=4)
    drawing.text(middle, 72, "root", anchor="middle")
    for depth, level in enumerate(levels):
        y = 124.0 + 74 * depth
        last = depth == len(levels) - 1
        drawing.text(
            LEFT - 14, y + 14, "chunks" if last else f"nodes {len(levels) - 1 - depth}", anchor="end", size=11
        )
        for node in level:
            x = LEFT + WIDTH * node.x
            above = LEFT + WIDTH * levels[depth - 1][node.parent].x if node.parent >= 0 else middle
            wanted = node.digest not in known
            drawing.line(above, y - 54 if depth else 78, x, y, ORANGE if wanted else GREY)
            drawing.box(x - 8, y, 16, 20, ORANGE if wanted else PALE, round_=3)
    return drawing.markup()


DESCENT = (
    ("Manifest", "source", "All my entries have this one digest."),
    ("ListingPart", "source", "Yours differs. These are my entries: one file, its size and its time."),
    ("TreeRequest", "destination", "Mine differs. What are the records of your file's tree?"),
    ("TreeAnswer", "source", "A short reference and a length for each of its chunks."),
    ("BlockRequest", "destination", "I have all chunks but one. Which fingerprints do its blocks have?"),
    ("BlockAnswer", "source", "These."),
    ("RangeRequest", "destination", "Found at other offsets of my version. These few bytes are missing:"),
    ("Data", "source", "Here they are."),
    ("FileEnd", "source", "That was all of the file."),
)
"""The messages that decide, in the order of a session, and what each says."""


def session() -> rdc.SyncReport:
    """Return a real session over the edit of a larger file of this repository."""
    old = (TOP / "fixtures" / "signature_vectors.json").read_bytes()
    place = len(old) // 3
    with tempfile.TemporaryDirectory() as directory:
        for side, data in (("source", old[:place] + INSERTED + old[place:]), ("destination", old)):
            folder = Path(directory) / side
            folder.mkdir()
            (folder / "file").write_bytes(data)
        # The tree of a newer file would come unasked.
        os.utime(Path(directory) / "source" / "file", (0, 0))
        return rdc.sync(f"{directory}/source/", f"{directory}/destination/", fewest_bytes=True)


def descent() -> str:
    """Draw the messages of both sides in a real session, with their bytes."""
    report = session()
    costs = {cost.name: cost for cost in report.by_kind}
    drawing = Drawing(930, 118 + 34 * len(DESCENT), "The conversation about one changed file")
    drawing.text(
        14,
        24,
        f"One file of {report.total_bytes:,} bytes got a sentence of {len(INSERTED)} bytes: the messages",
        size=15,
    )
    drawing.text(20, 56, "destination", size=13)
    drawing.text(910, 56, "source", size=13, anchor="end")
    for number, (name, side, text) in enumerate(DESCENT):
        y, here, cost = 66.0 + 34 * number, side == "destination", costs[name]
        drawing.box(20 if here else 200, y, 710, 26, PALE if here else "#f6dfc6", round_=6)
        drawing.text(32 if here else 212, y + 17, f"{name}: {text}")
        sum_ = f"{cost.bytes} bytes" + (f" in {cost.count}" if cost.count > 1 else "")
        drawing.text(720 if here else 900, y + 17, sum_, size=11, fill="#666666", anchor="end")
    total = report.bytes_sent + report.bytes_received
    y = 66.0 + 34 * len(DESCENT) + 22
    text = (
        f"With the greeting and the end: {total:,} bytes both ways in {report.round_trips} round trips;"
        f" {report.reused_bytes:,} bytes came from the old version"
    )
    drawing.text(20, y, text, size=13)
    return drawing.markup()
