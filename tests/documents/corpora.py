"""Documents with known resemblance, and the definition of what a search finds among them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from rdc.model.similar import DocumentReport


def words(seed: int, count: int = 60) -> list[str]:
    chosen = random.Random(seed)
    return [f"word{chosen.randrange(50_000)}" for _ in range(count)]


def edited(seed: int, count: int, edits: int, variant: int) -> list[str]:
    """words(seed, count) with some words replaced."""
    found = words(seed, count)
    chosen = random.Random(f"{seed} {variant}")
    for at in chosen.sample(range(count), edits):
        found[at] = f"edit{variant}"
    return found


def families(count: int, size: int = 60) -> list[str]:
    """Documents in families: an original, an equal one, and some with a few words replaced."""
    texts = []
    for seed in range(count):
        texts.append(" ".join(words(seed, size)))
        if seed % 3 == 0:
            texts += [" ".join(edited(seed, size, 1, variant)) for variant in range(1, 4)]
        if seed % 5 == 0:
            texts.append(" ".join(words(seed, size)))
    random.Random(7).shuffle(texts)
    return texts


def write_jsonl(path: Path, texts: Iterable[object], field: str = "text") -> Path:
    path.write_text("".join(json.dumps({"id": at, field: text}) + "\n" for at, text in enumerate(texts)))
    return path


def shingles(text: str, size: int = 5) -> frozenset[tuple[str, ...]]:
    found = text.split()
    return frozenset(tuple(found[at : at + size]) for at in range(max(1, len(found) - size + 1)))


def jaccard(one: str, other: str) -> float:
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b)


def defined_clusters(texts: Sequence[str], threshold: float) -> set[frozenset[int]]:
    """The clusters of two or more texts, numbered from 1, by comparison of all pairs."""
    above = list(range(len(texts)))

    def top(number: int) -> int:
        while above[number] != number:
            number = above[number]
        return number

    for one, other in combinations(range(len(texts)), 2):
        if texts[one] == texts[other] or jaccard(texts[one], texts[other]) >= threshold:
            above[max(top(one), top(other))] = min(top(one), top(other))
    found: dict[int, set[int]] = {}
    for number in range(len(texts)):
        found.setdefault(top(number), set()).add(number + 1)
    return {frozenset(group) for group in found.values() if len(group) > 1}


def found_clusters(report: DocumentReport) -> set[frozenset[int]]:
    """The groups of a report by row."""
    return {
        frozenset(document.row for one in group.documents for document in (one.document, *one.copies))
        for group in report.groups
    }


def everything(report: DocumentReport) -> tuple[object, ...]:
    """All results of a report, to be compared."""
    return (
        list(report.groups),
        list(report.matches),
        list(report.kept),
        report.summary,
        report.exit,
    )
