"""A source that answers a manifest descent, row by row and slowly, and counts what it costs on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from rdc.kernel import short_references
from rdc.limits import TIER_NODES, TREE_HEIGHT
from rdc.model.entries import Kind
from rdc.model.preserved import Preserved
from rdc.plan.manifest_descent import Ask, ManifestDescent
from rdc.protocol.messages import Message, RowsPart, RowsRequest, TierAnswer, TierRequest, decode, encode
from rdc.protocol.messages.field_types import Rows, Segment
from rdc.protocol.wire.stream import frame_head
from rdc.tree.manifest import GROUPS, Entry, Fold, Group, Manifest
from tests.support.trees.manifests import build, parent_of

__all__ = ["KEY", "Answer", "Driven", "SourceModel", "descend", "feed", "found", "request", "start"]

KEY = b"k" * 16

Answer = TierAnswer | RowsPart


def request(ask: Ask) -> TierRequest | RowsRequest:
    return (RowsRequest if ask.rows else TierRequest)(ask.level, ask.nodes, int(ask.groups))


class SourceModel:
    """Answers as PROTOCOL.md says; entries come through Manifest.entry, one by one."""

    def __init__(self, manifest: Manifest, *, owner: bool, key: bytes = KEY, part: int = 4096) -> None:
        self.manifest = manifest
        self.fold = Fold(manifest, Preserved(owner))
        self.owner = owner
        self.key = key
        self.part = part

    def answers(self, asked: Message) -> list[Answer]:
        if isinstance(asked, TierRequest):
            return [self._tier(asked)]
        assert isinstance(asked, RowsRequest)
        return self._parts(asked)

    def _tier(self, asked: TierRequest) -> TierAnswer:
        tiers = self.fold.tiers
        assert asked.level <= TREE_HEIGHT
        level = asked.level if asked.nodes else min(asked.level, len(tiers) - 1)
        tier = tiers[level]
        spans = [range(len(tier))]
        if asked.nodes:
            spans = [tiers[level + 1].children(node) for node in asked.nodes]
        references = b"".join(
            short_references(self.key, tier.digests[group][32 * node : 32 * node + 32], 32, group.width)
            for group in GROUPS
            if group & asked.groups
            for span in spans
            for node in span
        )
        return TierAnswer(
            level, tuple(span.start for span in spans), tuple(len(span) for span in spans), references
        )

    def _parts(self, asked: RowsRequest) -> list[Answer]:
        """`part` entries at most in each, nodes cut where it is full."""
        pieces: list[tuple[range, bool]] = []
        for node in asked.nodes:
            span = self.fold.tiers[asked.level].span(node)
            at = span.start
            while at < span.stop:
                room = self.part - sum(len(rows) for rows, _ in pieces) % self.part
                stop = min(at + room, span.stop)
                pieces.append((range(at, stop), stop == span.stop))
                at = stop
        parts: list[Answer] = []
        while pieces:
            taken: list[tuple[range, bool]] = []
            while pieces and sum(len(rows) for rows, _ in taken) < self.part and len(taken) < TIER_NODES:
                taken.append(pieces.pop(0))
            counts = tuple(len(rows) for rows, _ in taken)
            parts.append(RowsPart(counts, taken[-1][1], self.rows([rows for rows, _ in taken], asked.groups)))
        return parts

    def rows(self, nodes: list[range], wanted: int) -> Rows:
        """The columns of these stretches of rows, names of each beginning with its directory."""
        groups = Group(wanted)
        segments = []
        for rows in nodes:
            here = [self.manifest.entry(row) for row in rows]
            for path, found in groupby(here, lambda e: parent_of(e.path)):
                same = list(found)
                names_ = b"".join(e.path.rpartition(b"/")[2] + b"\0" for e in same)
                targets = b"".join(e.target + b"\0" for e in same if e.kind == Kind.SYMLINK)
                segments.append(Segment(path, len(same), names_, targets))
        entries = [self.manifest.entry(row) for rows in nodes for row in rows]
        names, attributes, mtimes = (bool(groups & group) for group in GROUPS)

        def column(wanted: bool, values: list[int], width: int) -> bytes:
            return b"".join(v.to_bytes(width, "little", signed=v < 0) for v in values) if wanted else b""

        metadata = [e.metadata for e in entries]
        return Rows(
            len(entries),
            tuple(segments) if names else (),
            bytes(e.kind for e in entries) if names else b"",
            column(attributes, [m.mode for m in metadata], 2),
            column(attributes, [e.size for e in entries], 8),
            column(attributes and self.owner, [m.uid for m in metadata], 4),
            column(attributes and self.owner, [m.gid for m in metadata], 4),
            column(mtimes, [m.mtime_ns for m in metadata], 8),
        )


@dataclass(slots=True)
class Driven:
    """The cost of a descent."""

    exchanges: int = 0
    bytes: int = 0
    """Frames of requests and answers, before compression."""
    row_bytes: int = 0
    """Those of answers with rows."""
    groups: int = 0
    """Column groups of which rows came."""
    rows: int = 0
    asked: list[Ask] | None = None


def travelled(message: Message) -> tuple[Message, int]:
    """Return a message as it arrives, and the bytes of its frame."""
    payload = encode(message)
    return decode(message.kind, payload), len(frame_head(message.kind, 5, len(payload))) + len(payload)


def feed(descent: ManifestDescent, answer: Answer) -> None:
    if isinstance(answer, TierAnswer):
        descent.take_tier(answer.level, answer.firsts, answer.counts, answer.references)
    else:
        descent.take_rows(answer.rows, answer.counts, last=answer.last)


def descend(descent: ManifestDescent, source: SourceModel) -> Driven:
    """Drive it to its end, everything through the wire's codecs."""
    done = Driven(asked=[])
    assert done.asked is not None
    while questions := descent.questions():
        done.exchanges += 1
        done.asked += questions
        for ask in questions:
            message, size = travelled(request(ask))
            done.bytes += size
            for sent in source.answers(message):
                answer, size = travelled(sent)
                assert isinstance(answer, TierAnswer | RowsPart)
                done.bytes += size
                if isinstance(answer, RowsPart):
                    done.row_bytes += size
                    done.rows += answer.rows.count
                    done.groups |= int(ask.groups)
                assert not descent.complete
                feed(descent, answer)
    assert descent.complete
    return done


def start(held: dict[bytes, Entry], entries: int, *, owner: bool = True, key: bytes = KEY) -> ManifestDescent:
    """Start the descent of a destination that holds this tree, towards a manifest of `entries` entries."""
    return ManifestDescent(Fold(build(held), Preserved(owner)), entries, key, owner=owner)


def found(descent: ManifestDescent) -> Manifest:
    """Return the manifest that the descent found."""
    manifest = Manifest()
    descent.assemble(manifest)
    return manifest
