"""Sources that answer the questions of a block search: honest ones, and others."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable
from itertools import islice

from rdc.chunking import ChunkParams
from rdc.kernel import block_fingerprints, match_blocks, match_runs, search_gaps
from rdc.plan.descent import (
    Descent,
    Part,
    literal_rows,
)
from rdc.plan.gap_search import Match, Span, search_gap
from rdc.plan.search import NOWHERE, BlockSearch, Step, Window
from rdc.signature.codec import decode_records, encode_records
from rdc.signature.tree import SignatureTree, sign

KEY = bytes(range(16))


class Honest:
    """Both ends of the search, in memory."""

    def __init__(self, target: bytes, bases: list[bytes]) -> None:
        self.target = target
        self.bases = bases
        self.fingerprint_bytes = 0
        self.rounds = 0

    def search(
        self,
        base: int,
        size: int,
        width: int,
        smaller: int,
        gaps: array[int],
        ranges: array[int],
        matches: array[int],
        fingerprints: bytes,
    ) -> tuple[bytes, bytes, bytes]:
        data = self.bases[base]
        spans = [data[at : at + length] for at, length in zip(gaps[0::4], gaps[1::4], strict=True)]
        assert list(map(len, spans)) == list(gaps[1::4])
        return search_gaps(KEY, b"".join(spans), size, width, smaller, gaps, ranges, matches, fingerprints)

    def find(self, window: Window, size: int, width: int, fingerprints: bytes) -> list[int]:
        base = self.bases[window.base]
        assert window.offset >= 0 and window.offset + window.length <= len(base)
        found = array("Q")
        found.frombytes(
            match_blocks(KEY, base[window.offset : window.offset + window.length], size, width, fingerprints)
        )
        return [
            base_offset if base_offset == NOWHERE else window.offset + base_offset for base_offset in found
        ]

    def near(self, base: int, step: Step, width: int, runs: array[int], fingerprints: bytes) -> array[int]:
        found = array("Q")
        held = self.bases[base]
        whole = array("Q", (len(runs) // 4, 0, 0, len(held)))
        found.frombytes(match_runs(KEY, held, whole, step.size, width, step.reach, runs, fingerprints))
        return found

    def run(self, search: BlockSearch) -> tuple[Part, ...]:
        while questions := search.questions():
            self.rounds += 1
            for row, ask in enumerate(questions):
                end = 0
                for offset, length in ask.pairs:
                    assert offset >= end and length
                    end = offset + length
                answer = b"".join(
                    block_fingerprints(KEY, self.target[offset : offset + length], ask.size, ask.width)
                    for offset, length in ask.pairs
                )
                self.fingerprint_bytes += len(answer)
                assert search.take(answer, self.search, self.find, self.near) == (row + 1 == len(questions))
        return search.parts()


class Finding(Honest):
    """What is found in a gap's window is for `find` to say."""

    def search(
        self,
        base: int,
        size: int,
        width: int,
        smaller: int,
        gaps: array[int],
        ranges: array[int],
        matches: array[int],
        fingerprints: bytes,
    ) -> tuple[bytes, bytes, bytes]:
        spans = iter(map(Span, ranges[0::2], ranges[1::2]))
        known = iter(map(Match, matches[0::3], matches[1::3], matches[2::3]))
        prints = iter(fingerprints[at : at + width] for at in range(0, len(fingerprints), width))
        counts, found, left = array("Q"), array("Q"), array("Q")
        for start, length, some, held in zip(*[iter(gaps)] * 4, strict=True):
            mine = list(islice(spans, some))
            outcome = search_gap(
                [Span(start, length)],
                size,
                width,
                smaller,
                mine,
                list(islice(known, held)),
                b"".join(islice(prints, sum(-(-span.length // size) for span in mine))),
                lambda span, size, wanted: self.find(Window(base, *span), size, width, wanted),
            )
            counts.extend((len(outcome.matches), len(outcome.ranges)))
            for match in outcome.matches:
                found.extend(match)
            for span in outcome.ranges:
                left.extend(span)
        return counts.tobytes(), found.tobytes(), left.tobytes()


class Lying(Finding):
    """Finds blocks wherever it likes."""

    def __init__(self, target: bytes, bases: list[bytes], seed: int) -> None:
        super().__init__(target, bases)
        self.rng = random.Random(seed)

    def find(self, window: Window, size: int, width: int, fingerprints: bytes) -> list[int]:
        last = window.offset + window.length - size
        return [
            self.rng.choice((NOWHERE, self.rng.randint(window.offset, last), window.offset))
            for _ in range(len(fingerprints) // width)
        ]

    def near(self, base: int, step: Step, width: int, runs: array[int], fingerprints: bytes) -> array[int]:
        found = array("Q")
        for offset, length, _, _ in zip(*[iter(runs)] * 4, strict=True):
            for at in range(0, length, step.size):
                take = min(step.size, length - at)
                if self.rng.random() < 0.5 and len(self.bases[base]) >= take:
                    found.extend((offset + at, self.rng.randint(0, len(self.bases[base]) - take), take))
        return found


WIDTH = 8


def recipe(target: SignatureTree, bases: list[SignatureTree]) -> tuple[Part, ...]:
    """What the descent over both trees leaves to be fetched."""
    descent = Descent(bases, KEY, WIDTH, target.size)

    def records(level: int, rows: range) -> bytes:
        return encode_records(target.levels[level], rows, KEY, WIDTH)

    descent.start(target.height, decode_records(records(target.height, range(target.top.records)), WIDTH))
    while nodes := descent.asking:
        level = descent.level
        above = target.levels[level + 1]
        answers = [decode_records(records(level, above.children(node)), WIDTH) for node in nodes]
        descent.answer(level, nodes, answers)
    return descent.recipe()


def literal_bytes(parts: Iterable[Part]) -> int:
    return sum(literal_rows(tuple(parts))[1::2])


def searched(target: bytes, base: bytes) -> tuple[Honest, int]:
    params = ChunkParams.for_mean(16384)
    trees = [sign(base, params)]
    ends = Honest(target, [base])
    return ends, literal_bytes(ends.run(BlockSearch(recipe(sign(target, params), trees), trees)))
